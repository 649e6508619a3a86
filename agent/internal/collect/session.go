package collect

import (
	"github.com/bursar-accounting/bursar/plugins/session"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Session is a plugin that runs, knows its configuration and has a mapping.
type Session = session.Session

// says reports whether there is something in a message.
func says(r *bursarv1.CollectResponse) bool { return session.Says(r) }
