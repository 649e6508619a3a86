package source

import (
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// checkpoint is how far the source has come. What it knows of pods is in the journal that
// it names.
type checkpoint struct {
	Versions map[string]string // by namespace, "" for all: every change up to this resource version has been sent
	Look     time.Time         // when everything was last known to be sent
	First    time.Time         // when they were listed first; zero: not known
	Journal  string
	Told     facts.Told
	Granted  []string // rights beside that to pods which were there
	Batches  uint64   // how many told of something that is told once
}

const (
	checkpointVersion = 1
	maxLook           = 253402300799e6 // the end of the year 9999
)

// The written form: {"v":1,"versions":{"":"4711"},"look":1795239926160807,"journal":"9f86…"}.
type wireCheckpoint struct {
	Version  int               `json:"v"`
	Versions map[string]string `json:"versions,omitempty"`
	Look     int64             `json:"look"` // microseconds since 1970
	First    int64             `json:"first,omitempty"`
	Journal  string            `json:"journal,omitempty"`
	Told     facts.Told        `json:"told,omitzero"`
	Granted  []string          `json:"granted,omitempty"`
	Batches  uint64            `json:"batches,omitempty"`
}

// Check says what no plugin has written.
func (w *wireCheckpoint) Check() error {
	for _, at := range []int64{w.Look, w.First} {
		if at < 0 || at > maxLook {
			return fmt.Errorf("%d is not a time", at)
		}
	}
	return nil
}

func (c checkpoint) encode() []byte {
	w := wireCheckpoint{Version: checkpointVersion, Versions: c.Versions, Journal: c.Journal, Told: c.Told, Batches: c.Batches, Granted: c.Granted}
	if !c.Look.IsZero() {
		w.Look = c.Look.UnixMicro()
	}
	if !c.First.IsZero() {
		w.First = c.First.UnixMicro()
	}
	return sdk.EncodeCheckpoint(w)
}

// decodeCheckpoint reads what encode wrote. Nothing gives the zero checkpoint.
func decodeCheckpoint(b []byte) (checkpoint, error) {
	var w wireCheckpoint
	if err := sdk.DecodeCheckpoint(b, checkpointVersion, &w); err != nil {
		return checkpoint{}, err
	}
	c := checkpoint{Versions: w.Versions, Journal: w.Journal, Told: w.Told, Batches: w.Batches, Granted: w.Granted}
	if w.Look > 0 {
		c.Look = time.UnixMicro(w.Look).UTC()
	}
	if w.First > 0 {
		c.First = time.UnixMicro(w.First).UTC()
	}
	return c, nil
}

// withBatches is a written checkpoint with another number of batches.
func withBatches(b []byte, n uint64) ([]byte, error) {
	c, err := decodeCheckpoint(b)
	c.Batches = n
	return c.encode(), err
}

// journalForm says how what is known of pods is kept.
func journalForm() journal.Form[*run.Entry] {
	return journal.Form[*run.Entry]{
		File: "pods.db", Bucket: "pods", Version: 1, New: run.New, Key: (*run.Entry).UID, Check: (*run.Entry).Check,
		Remedy: "the source then lists what Kubernetes still has",
	}
}
