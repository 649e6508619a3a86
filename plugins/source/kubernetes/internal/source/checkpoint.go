package source

import (
	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// checkpoint is how far the source has come. What it knows of pods is in the journal that
// it names.
type checkpoint struct {
	Versions map[string]string // by namespace, "" for all: every change up to this resource version was sent
	journal.Reach
	Granted []string // rights beside that to pods which were there
}

const checkpointVersion = 1

// The written form: {"v":1,"versions":{"":"4711"},"look":1795239926160807,"journal":"9f86…"}.
type wireCheckpoint struct {
	Version  int               `json:"v"`
	Versions map[string]string `json:"versions,omitempty"`
	journal.WrittenReach
	Granted []string `json:"granted,omitempty"`
}

func (c *checkpoint) encodeWire() []byte {
	return sdk.EncodeCheckpoint(wireCheckpoint{Version: checkpointVersion, Versions: c.Versions, WrittenReach: c.Written(), Granted: c.Granted})
}

// decodeCheckpoint reads what encode wrote. Nothing gives the zero checkpoint.
func decodeCheckpoint(b []byte) (checkpoint, error) {
	var w wireCheckpoint
	if err := sdk.DecodeCheckpoint(b, checkpointVersion, &w); err != nil {
		return checkpoint{}, err
	}
	return checkpoint{Versions: w.Versions, Reach: w.Reach(), Granted: w.Granted}, nil
}

// withBatches is a written checkpoint with another number of batches.
func withBatches(b []byte, n uint64) ([]byte, error) {
	c, err := decodeCheckpoint(b)
	c.Batches = n
	return c.encodeWire(), err
}

// journalForm says how what is known of pods is kept.
func journalForm() journal.Form[*run.Entry] {
	return journal.Form[*run.Entry]{
		File: "pods.db", Bucket: "pods", Version: 1, New: run.New, Key: (*run.Entry).UID, Check: (*run.Entry).Check,
		Remedy: "the source then lists what Kubernetes still has",
	}
}
