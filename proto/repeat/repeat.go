// Package repeat does something again and again.
package repeat

import (
	"context"
	"time"
)

// Every calls work now and then every so often, until ctx ends or work returns false.
func Every(ctx context.Context, every time.Duration, work func() bool) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for work() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
