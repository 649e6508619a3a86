package main

import (
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// checkpoint says how far a file was read.
type checkpoint struct {
	Format int `json:"format"`
	follow.State
	At int64 `json:"at"` // the latest time of a job, microseconds; 0: none
}

func readCheckpoint(data []byte) (c checkpoint, err error) {
	err = sdk.DecodeCheckpoint(data, 1, &c)
	return c, err
}

func (c *checkpoint) encodeCheckpoint() []byte {
	c.Format = 1
	return sdk.EncodeCheckpoint(c)
}

func (c *checkpoint) lastTime() time.Time {
	if c.At == 0 {
		return time.Time{}
	}
	return time.UnixMicro(c.At).UTC()
}

func (c *checkpoint) noteSeen(t time.Time) { c.At = max(c.At, t.UnixMicro()) }
