package buffer

import (
	"encoding/binary"
	"sync"
	"time"
)

// Clock is a hybrid clock: it follows the wall clock in microseconds, never
// goes back and never says the same twice. Every append writes down how far it
// has come, so that it does not go back over a restart either.
type Clock struct {
	now func() time.Time

	mu   sync.Mutex
	last int64
}

// Observe returns the next reading, microseconds since 1970.
func (c *Clock) Observe() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last+1, c.now().UnixMicro())
	return c.last
}

// Last returns the highest reading so far.
func (c *Clock) Last() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// Advance makes all later readings greater than observed.
func (c *Clock) Advance(observed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, observed)
}

func (c *Clock) clockBytes() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(c.Last()))
}
