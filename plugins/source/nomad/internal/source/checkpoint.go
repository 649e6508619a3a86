package source

import (
	"encoding/json"
	"fmt"
	"time"
)

// checkpoint is how far the source has come. What it knows of allocations is in the
// journal that it names.
type checkpoint struct {
	Index   uint64    // changes up to it have been sent
	Look    time.Time // when all allocations were listed last
	Journal string
	Told    told
}

// told are the digests of the facts that were sent last; "" for none.
type told struct {
	Capacity  string `json:"capacity,omitempty"`
	Directory string `json:"directory,omitempty"`
}

const (
	checkpointVersion = 1
	maxCheckpoint     = 64 << 10
)

// The written form: {"v":1,"index":47,"look":1795239926160807,"journal":"9f86…"}.
type wireCheckpoint struct {
	Version int    `json:"v"`
	Index   uint64 `json:"index"`
	Look    int64  `json:"look"` // microseconds since 1970
	Journal string `json:"journal,omitempty"`
	Told    told   `json:"told,omitzero"`
}

func (c checkpoint) encode() []byte {
	w := wireCheckpoint{Version: checkpointVersion, Index: c.Index, Journal: c.Journal, Told: c.Told}
	if !c.Look.IsZero() {
		w.Look = c.Look.UnixMicro()
	}
	text, err := json.Marshal(w)
	if err != nil { // cannot be: text and numbers
		return nil
	}
	return text
}

// decodeCheckpoint reads what encode wrote. Nothing gives the zero checkpoint; a
// checkpoint that cannot be understood is an error, because to start over or to
// skip are both wrong.
func decodeCheckpoint(b []byte) (checkpoint, error) {
	if len(b) == 0 {
		return checkpoint{}, nil
	}
	if len(b) > maxCheckpoint {
		return checkpoint{}, fmt.Errorf("checkpoint: %d bytes are too many", len(b))
	}
	var w wireCheckpoint
	if err := json.Unmarshal(b, &w); err != nil {
		return checkpoint{}, fmt.Errorf("checkpoint: %w", err)
	}
	if w.Version != checkpointVersion {
		return checkpoint{}, fmt.Errorf("checkpoint: version %d is not known, only %d", w.Version, checkpointVersion)
	}
	if w.Look < 0 || w.Look > maxLook {
		return checkpoint{}, fmt.Errorf("checkpoint: %d is not a time", w.Look)
	}
	c := checkpoint{Index: w.Index, Journal: w.Journal, Told: w.Told}
	if w.Look > 0 {
		c.Look = time.UnixMicro(w.Look).UTC()
	}
	return c, nil
}

const maxLook = 253402300799e6 // the end of the year 9999
