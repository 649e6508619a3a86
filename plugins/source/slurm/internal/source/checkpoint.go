package source

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
)

// checkpoint is how far the source has come.
type checkpoint struct {
	Done time.Time // all runs that ended before it have been seen, but for those that slurmdbd got late
	Open []openRun // long runs that went on at Done
	Half []halfRun // runs that were sent while slurmdbd had only half of them
	Told told
}

// told are the digests of the facts that were sent last; "" for none.
type told struct {
	Capacity  string `json:"capacity,omitempty"`
	Directory string `json:"directory,omitempty"`
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
	maxCheckpoint     = 4 << 20
)

// The written form: {"v":1,"done":1795248797,"open":[["rig",7,1795248797,1795248799,"7",false]],
// "half":[["rig",11,1795248797,1795249400,"11"]],"told":{"capacity":"…"}}. Told and half
// came later; an older plugin sends facts again and does not rename half runs.
type wireCheckpoint struct {
	Version int        `json:"v"`
	Done    int64      `json:"done"`
	Open    []wireRun  `json:"open,omitempty"`
	Half    []wireHalf `json:"half,omitempty"`
	Told    told       `json:"told,omitzero"`
}

type wireHalf struct{ halfRun }

// MarshalJSON writes the run as a list.
func (w wireHalf) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{w.Cluster, w.Raw, w.Submit, w.Since, w.Name})
}

// UnmarshalJSON reads the list.
func (w *wireHalf) UnmarshalJSON(b []byte) error {
	return unmarshalList(b, &w.Cluster, &w.Raw, &w.Submit, &w.Since, &w.Name)
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

type wireRun struct{ openRun }

// MarshalJSON writes the run as a list.
func (w wireRun) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{w.Cluster, w.Raw, w.Submit, w.Start, w.JobID, w.Later})
}

// UnmarshalJSON reads the list.
func (w *wireRun) UnmarshalJSON(b []byte) error {
	return unmarshalList(b, &w.Cluster, &w.Raw, &w.Submit, &w.Start, &w.JobID, &w.Later)
}

// encode writes c. Of too many open or half runs it keeps those that began, or were
// sent, last: the others are found by the overlaps like any run.
func (c checkpoint) encode() []byte {
	open := slices.Clone(c.Open)
	slices.SortFunc(open, func(a, b openRun) int {
		return cmp.Or(cmp.Compare(b.Start, a.Start), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Raw, b.Raw), cmp.Compare(a.Submit, b.Submit))
	})
	w := wireCheckpoint{Version: checkpointVersion, Done: c.Done.Unix(), Told: c.Told}
	size := 0
	for _, o := range open[:min(len(open), maxOpen)] {
		text, err := wireRun{o}.MarshalJSON()
		if size += len(text) + 1; err != nil || size > maxOpenBytes {
			break
		}
		w.Open = append(w.Open, wireRun{o})
	}
	half := slices.SortedFunc(slices.Values(c.Half), func(a, b halfRun) int {
		return cmp.Or(cmp.Compare(b.Since, a.Since), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Raw, b.Raw), cmp.Compare(a.Submit, b.Submit))
	})
	size = 0
	for _, h := range half {
		text, err := wireHalf{h}.MarshalJSON()
		if size += len(text) + 1; err != nil || size > maxHalfBytes {
			break
		}
		w.Half = append(w.Half, wireHalf{h})
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(w) != nil { // cannot be: text and numbers
		return nil
	}
	return bytes.TrimSpace(out.Bytes())
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
	if w.Done < 0 || w.Done > maxDone {
		return checkpoint{}, fmt.Errorf("checkpoint: %d is not a time", w.Done)
	}
	c := checkpoint{Done: time.Unix(w.Done, 0).UTC(), Told: w.Told}
	for _, o := range w.Open {
		if o.Raw < 0 || o.Submit < 0 || o.Start < 0 {
			return checkpoint{}, fmt.Errorf("checkpoint: the open job %d of %d, started %d, cannot be", o.Raw, o.Submit, o.Start)
		}
		c.Open = append(c.Open, o.openRun)
	}
	for _, h := range w.Half {
		if h.Raw < 0 || h.Submit < 0 || h.Since < 0 || h.Name == "" {
			return checkpoint{}, fmt.Errorf("checkpoint: the job %d of %d, sent as %q at %d, cannot be", h.Raw, h.Submit, h.Name, h.Since)
		}
		c.Half = append(c.Half, h.halfRun)
	}
	return c, nil
}

const maxDone = 253402300799 // the end of the year 9999
