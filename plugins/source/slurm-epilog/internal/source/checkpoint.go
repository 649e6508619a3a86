package source

import (
	"fmt"
	"math"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const checkpointVersion = 1

// checkpoint is the written form: {"v":1,"done":1795248797000000}. Done is a stamp of the
// journal: what came of all entries up to it is with the daemon.
type checkpoint struct {
	Version int   `json:"v"`
	Done    int64 `json:"done"`
}

// Check says what no plugin has written.
func (c *checkpoint) Check() error {
	if c.Done < 0 || c.Done > math.MaxInt64/2 {
		return fmt.Errorf("%d is not a stamp", c.Done)
	}
	return nil
}

func encodeCheckpoint(done int64) []byte {
	return sdk.EncodeCheckpoint(checkpoint{checkpointVersion, done})
}

// decodeCheckpoint reads what encodeCheckpoint wrote; nothing is 0.
func decodeCheckpoint(b []byte) (done int64, err error) {
	var c checkpoint
	err = sdk.DecodeCheckpoint(b, checkpointVersion, &c)
	return c.Done, err
}
