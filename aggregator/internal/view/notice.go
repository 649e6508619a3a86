package view

import (
	"strings"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Notice is what people should know of something in a list, and what to do about it.
type Notice struct {
	Tone  Tone
	What  string  // such as "apel/site has had no plan"
	Since v1.Time // zero: not said
	Why   string  // "": not said
	Do    string  // a command; "": none
	// Action names the action that it is about, and Run its run, 0 for none.
	Action string
	Run    uint64
}

// Text is the notice as a sentence, by the clock of a zone.
func (n *Notice) Text(zone *time.Location) string {
	text := n.What
	if !n.Since.IsZero() {
		text += " since " + n.Since.In(zone).Format(time.DateTime)
	}
	if n.Why != "" {
		text += ": " + n.Why
	}
	return strings.TrimSuffix(text, ".") + "."
}
