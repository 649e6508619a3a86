// Package ratelog logs one kind of event at most once a minute, so that what happens
// often does not fill the log.
package ratelog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Every is how often a [Logger] logs at most.
const Every = time.Minute

// Logger logs one kind of event at most once in [Every], and then says how
// many it has kept quiet about. The zero value is ready.
type Logger struct {
	mu     sync.Mutex
	last   time.Time
	silent int
}

// Tell logs the event, or keeps quiet about it. What and the keys are constant where it
// is called, except where what repeats the words of others.
func (c *Logger) Tell(log *slog.Logger, level slog.Level, what string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.last) >= Every {
		log.Log(context.Background(), level, what, append(args, "suppressed", c.silent)...) //nolint:sloglint // see above
		c.last, c.silent = now, 0
		return
	}
	c.silent++
}

// Silent returns how often it has kept quiet since it last spoke.
func (c *Logger) Silent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent
}
