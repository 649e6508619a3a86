package host

import "github.com/bursar-accounting/bursar/proto/text"

// clip shortens foreign text in an error.
func clip(s string) string { return text.Clip(s, 200) }

// trim bounds texts that come from a plugin.
func trim(s string) string { return text.Clip(s, 4<<10) }
