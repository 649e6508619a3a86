package store

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// ComplainEvery is how often a [Complaint] is logged.
const ComplainEvery = time.Minute

// Complaint logs one kind of event at most once in [ComplainEvery], and then says how
// many it has kept quiet about. The zero value is ready.
type Complaint struct {
	mu     sync.Mutex
	last   time.Time
	silent int
}

// Tell logs the event, or keeps quiet about it. What and the keys are constant where it
// is called, except where what repeats the words of others.
func (c *Complaint) Tell(log *slog.Logger, level slog.Level, what string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.last) >= ComplainEvery {
		log.Log(context.Background(), level, what, append(args, "suppressed", c.silent)...) //nolint:sloglint // see above
		c.last, c.silent = now, 0
		return
	}
	c.silent++
}

// Silent returns how often it has kept quiet since it last spoke.
func (c *Complaint) Silent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent
}
