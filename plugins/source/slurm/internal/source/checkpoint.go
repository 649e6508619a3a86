package source

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// checkpoint is how far the source has come.
type checkpoint struct {
	Done time.Time // all runs that ended before it have been seen, but for those that slurmdbd got late
	Open []openRun // long runs that went on at Done
	Half []halfRun // runs that were sent while slurmdbd had only half of them
	Told facts.Told
}

// openRun is a run that was seen while it went on.
type openRun struct {
	job.Key
	Start int64  // seconds since the epoch
	JobID string // as sacct shows it
	Later bool   // the job had an earlier run
}

// halfRun is a run that was sent under a name that may not be its last one: see
// [job.Run.Incomplete].
type halfRun struct {
	job.Key
	Since int64  // seconds since the epoch
	Name  string // under which it was sent
}

const (
	checkpointVersion = 1
	maxOpen           = 5000      // runs in a checkpoint
	maxOpenBytes      = 200 << 10 // that they take; the daemon keeps checkpoints of up to 256 KiB
	maxHalfBytes      = 40 << 10  // that half runs take
)

// The written form: {"v":1,"done":1795248797,"open":[["rig",7,1795248797,1795248799,"7",false]],
// "half":[["rig",11,1795248797,1795249400,"11"]],"told":{"capacity":"…"}}.
type wireCheckpoint struct {
	Version int        `json:"v"`
	Done    int64      `json:"done"`
	Open    []openRun  `json:"open,omitempty"`
	Half    []halfRun  `json:"half,omitempty"`
	Told    facts.Told `json:"told,omitzero"`
}

// Check says what no plugin has written.
func (w *wireCheckpoint) Check() error {
	if w.Done < 0 || w.Done > maxDone {
		return fmt.Errorf("%d is not a time", w.Done)
	}
	for _, o := range w.Open {
		if o.Raw < 0 || o.Submit < 0 || o.Start < 0 {
			return fmt.Errorf("the open job %d of %d, started %d, cannot be", o.Raw, o.Submit, o.Start)
		}
	}
	for _, h := range w.Half {
		if h.Raw < 0 || h.Submit < 0 || h.Since < 0 || h.Name == "" {
			return fmt.Errorf("the job %d of %d, sent as %q at %d, cannot be", h.Raw, h.Submit, h.Name, h.Since)
		}
	}
	return nil
}

// MarshalJSON writes the run as a list.
func (h halfRun) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.Cluster, h.Raw, h.Submit, h.Since, h.Name})
}

// UnmarshalJSON reads the list.
func (h *halfRun) UnmarshalJSON(b []byte) error {
	return unmarshalList(b, &h.Cluster, &h.Raw, &h.Submit, &h.Since, &h.Name)
}

// MarshalJSON writes the run as a list.
func (o openRun) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{o.Cluster, o.Raw, o.Submit, o.Start, o.JobID, o.Later})
}

// UnmarshalJSON reads the list.
func (o *openRun) UnmarshalJSON(b []byte) error {
	return unmarshalList(b, &o.Cluster, &o.Raw, &o.Submit, &o.Start, &o.JobID, &o.Later)
}

// unmarshalList reads a list with one element for each target.
func unmarshalList(b []byte, into ...any) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != len(into) {
		return fmt.Errorf("a run has %d parts instead of %d", len(parts), len(into))
	}
	for i, p := range parts {
		if err := json.Unmarshal(p, into[i]); err != nil {
			return err
		}
	}
	return nil
}

// encodeCheckpoint writes c. Of too many open or half runs it keeps those that began, or were
// sent, last: the others are found by the overlaps like any run.
func (c checkpoint) encodeCheckpoint() []byte {
	byKey := func(a, b job.Key) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Raw, b.Raw), cmp.Compare(a.Submit, b.Submit))
	}
	open := slices.SortedFunc(slices.Values(c.Open), func(a, b openRun) int { return cmp.Or(cmp.Compare(b.Start, a.Start), byKey(a.Key, b.Key)) })
	half := slices.SortedFunc(slices.Values(c.Half), func(a, b halfRun) int { return cmp.Or(cmp.Compare(b.Since, a.Since), byKey(a.Key, b.Key)) })
	return sdk.EncodeCheckpoint(wireCheckpoint{
		Version: checkpointVersion, Done: c.Done.Unix(), Told: c.Told,
		Open: fittingFirst(open[:min(len(open), maxOpen)], maxOpenBytes), Half: fittingFirst(half, maxHalfBytes),
	})
}

// fittingFirst are the first of a list that take at most so many bytes.
func fittingFirst[T any](list []T, most int) []T {
	size := 0
	for i := range list {
		text, err := json.Marshal(list[i])
		if size += len(text) + 1; err != nil || size > most {
			return list[:i]
		}
	}
	return list
}

// decodeCheckpoint reads what encode wrote. Nothing gives the zero checkpoint.
func decodeCheckpoint(b []byte) (checkpoint, error) {
	var w wireCheckpoint
	if err := sdk.DecodeCheckpoint(b, checkpointVersion, &w); err != nil || len(b) == 0 {
		return checkpoint{}, err
	}
	return checkpoint{Done: time.Unix(w.Done, 0).UTC(), Open: w.Open, Half: w.Half, Told: w.Told}, nil
}

const maxDone = 253402300799 // the end of the year 9999
