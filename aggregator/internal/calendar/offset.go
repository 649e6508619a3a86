//go:build !faults

package calendar

import "time"

// offset is how far the node's clock is ahead of the machine's.
func offset() time.Duration { return 0 }
