package calendar

import "time"

// Now returns the time of this node's clock, which it writes into the log and tells its
// peers. It is the machine's clock; a program built with the tag faults can be told to
// have a wrong one.
func Now() time.Time { return ByClock(time.Now()) }

// ByClock returns what this node's clock shows at an instant of the machine's.
func ByClock(t time.Time) time.Time { return t.Add(clockOffset()) }
