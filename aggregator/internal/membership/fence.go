package membership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/bursar-accounting/bursar/proto/durable"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ErrFenced is wrapped by the errors that say that this node's state differs
// from that of the other nodes. It must neither read nor vote.
var ErrFenced = errors.New("this node is fenced")

// fenceName is the file in the data directory that keeps a node from starting.
const fenceName = "fenced"

const fenceFormat = 1

// Fence is why a node may not go on.
type Fence struct {
	Format int       `json:"format"`
	At     time.Time `json:"at"`
	// Index is the place in the log at which the node's state, Own, was not that
	// of the majority.
	Index    uint64 `json:"index"`
	Own      string `json:"own"`
	Majority string `json:"majority"`
}

// Error says what has happened and what to do; dir is the node's data directory.
func (f *Fence) fenceError(dir string) error {
	return fmt.Errorf(`%w: at index %d of the log its state was %s, and that of the majority was %s (noticed %s).
Its data are damaged or were changed, and nothing of them may be used. The other nodes go on without it, and have all that is right.
To bring it back: stop it, move %s away (keep it: it shows what went wrong), and start it. It then joins as a new node and gets its state from the others.
If this happens again, look for bad memory or a bad disk in this machine, and report it as a defect with the output of "bursar operator check"`,
		ErrFenced, f.Index, f.Own, f.Majority, f.At.UTC().Format(time.RFC3339), dir)
}

// Fenced returns an error that wraps [ErrFenced] and names the remedy when the
// node in that data directory is fenced, and nil when it may start.
func Fenced(dir string) error {
	name := filepath.Join(dir, fenceName)
	raw, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	f, err := decodeFence(raw)
	if err != nil {
		return fmt.Errorf("%w: %s cannot be read (%w), so what happened is not known", ErrFenced, name, err)
	}
	return f.fenceError(dir)
}

func decodeFence(raw []byte) (*Fence, error) {
	f := &Fence{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(f); err != nil {
		return nil, err
	}
	if f.Format != fenceFormat {
		return nil, fmt.Errorf("format version %d, this program knows %d", f.Format, fenceFormat)
	}
	return f, nil
}

// raiseFence makes the fence durable: the node in dir does not start any more.
func (f *Fence) raiseFence(dir string) error {
	f.Format = fenceFormat
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, fenceName), append(text, '\n'))
}
