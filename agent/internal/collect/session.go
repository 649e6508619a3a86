package collect

import "github.com/bursar-accounting/bursar/plugins/session"

// Session is a plugin that runs, knows its configuration and has a mapping.
type Session = session.Session
