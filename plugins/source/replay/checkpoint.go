package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/follow"
)

// checkpoint says how far a file was read.
type checkpoint struct {
	Format int `json:"format"`
	follow.State
	At int64 `json:"at"` // the latest time of a job, microseconds; 0: none
}

func readCheckpoint(data []byte) (checkpoint, error) {
	var c checkpoint
	if len(data) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("checkpoint: %w", err)
	}
	if c.Format != 1 {
		return c, fmt.Errorf("checkpoint: format %d is unknown to this version of the plugin", c.Format)
	}
	if err := c.Check(); err != nil {
		return c, fmt.Errorf("checkpoint: %w", err)
	}
	return c, nil
}

func (c *checkpoint) encode() []byte {
	c.Format = 1
	data, _ := json.Marshal(c) // numbers and text only
	return data
}

func (c *checkpoint) last() time.Time {
	if c.At == 0 {
		return time.Time{}
	}
	return time.UnixMicro(c.At).UTC()
}

func (c *checkpoint) seen(t time.Time) { c.At = max(c.At, t.UnixMicro()) }
