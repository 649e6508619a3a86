// Package clock tells the time that a node writes into the log and tells its
// peers. It is the machine's clock; a program built with the tag faults can be
// told to have a wrong one.
package clock

import "time"

// Now returns the time of this node's clock.
func Now() time.Time { return Of(time.Now()) }

// Of returns what this node's clock shows at an instant of the machine's.
func Of(t time.Time) time.Time { return t.Add(offset()) }
