package source

import (
	"encoding/json"
	"fmt"
	"math"
)

const (
	checkpointVersion = 1
	maxCheckpoint     = 1 << 10
)

// wireCheckpoint is the written form: {"v":1,"done":1795248797000000}. Done is a
// stamp of the journal: what came of all entries up to it is with the daemon.
type wireCheckpoint struct {
	Version int   `json:"v"`
	Done    int64 `json:"done"`
}

func encodeCheckpoint(done int64) []byte {
	return fmt.Appendf(nil, `{"v":%d,"done":%d}`, checkpointVersion, done)
}

// decodeCheckpoint reads what encodeCheckpoint wrote; nothing is 0.
func decodeCheckpoint(b []byte) (done int64, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	if len(b) > maxCheckpoint {
		return 0, fmt.Errorf("checkpoint: %d bytes are too many", len(b))
	}
	var w wireCheckpoint
	if err := json.Unmarshal(b, &w); err != nil {
		return 0, fmt.Errorf("checkpoint: %w", err)
	}
	if w.Version != checkpointVersion {
		return 0, fmt.Errorf("checkpoint: version %d is not known, only %d; upgrade the plugin", w.Version, checkpointVersion)
	}
	if w.Done < 0 || w.Done > math.MaxInt64/2 {
		return 0, fmt.Errorf("checkpoint: %d is not a stamp", w.Done)
	}
	return w.Done, nil
}
