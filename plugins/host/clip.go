package host

import "github.com/bursar-accounting/bursar/proto/text"

// clipText shortens foreign text in an error.
func clipText(s string) string { return text.Clip(s, 200) }
