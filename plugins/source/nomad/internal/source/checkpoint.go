package source

import (
	"maps"

	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// checkpoint is how far the source has come. What it knows of allocations is in the
// journal that it names.
type checkpoint struct {
	Index uint64 // changes up to it have been sent
	journal.Reach
}

const checkpointVersion = 1

// The written form: {"v":1,"index":47,"look":1795239926160807,"journal":"9f86…"}.
type wireCheckpoint struct {
	Version int    `json:"v"`
	Index   uint64 `json:"index"`
	journal.WrittenReach
}

func (c *checkpoint) encodeWire() []byte {
	return sdk.EncodeCheckpoint(wireCheckpoint{Version: checkpointVersion, Index: c.Index, WrittenReach: c.Written()})
}

// decodeCheckpoint reads what encode wrote. Nothing gives the zero checkpoint.
func decodeCheckpoint(b []byte) (checkpoint, error) {
	var w wireCheckpoint
	if err := sdk.DecodeCheckpoint(b, checkpointVersion, &w); err != nil {
		return checkpoint{}, err
	}
	return checkpoint{Index: w.Index, Reach: w.Reach()}, nil
}

// withBatches is a written checkpoint with another number of batches.
func withBatches(b []byte, n uint64) ([]byte, error) {
	c, err := decodeCheckpoint(b)
	c.Batches = n
	return c.encodeWire(), err
}

// journalForm says how what is known of allocations is kept.
func journalForm() journal.Form[*run.Entry] {
	return journal.Form[*run.Entry]{
		File: "allocations.db", Bucket: "allocations", Version: 1, New: run.New,
		Key: func(e *run.Entry) string { return e.Alloc.ID },
		Check: func(e *run.Entry) error {
			maps.DeleteFunc(e.Tasks, func(_ string, t *run.Task) bool { return t == nil })
			return nil
		},
		Remedy: "the source then asks Nomad for what ran meanwhile",
	}
}
