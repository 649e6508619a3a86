//go:build e2e

package faults

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Target is a file that has a line for each effect that happened, and a gate at
// which effects wait.
type Target struct {
	path   string
	closed int // how often the gate was
}

// Happened is an effect that has happened, or has begun.
type Happened struct {
	Key     string `json:"key"`
	Fence   uint64 `json:"fence"`
	Attempt int    `json:"attempt"`
	Name    string `json:"name"`
	Value   string `json:"value"`
}

func (t *Target) gatePath() string { return t.path + ".gate" }

// The points at which an effect can be stopped.
const (
	Before = "before" // it happens
	After  = "after"  // it has happened, and no one knows
)

// begunPath is where effects write that they wait at the gate. Each closing has a file of its own:
// an effect that saw an earlier one may write so late.
func (t *Target) begunPath() string { return fmt.Sprint(t.gatePath(), ".begun-", t.closed) }

// Close lets effects wait at a point.
func (t *Target) Close(point string) error {
	t.closed++
	if err := os.WriteFile(t.gatePath()+".new", []byte(point+" "+t.begunPath()), 0o644); err != nil {
		return err
	}
	return os.Rename(t.gatePath()+".new", t.gatePath())
}

// Open lets effects go on.
func (t *Target) Open() error {
	err := os.Remove(t.gatePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Begun are the effects that have come to the gate since it was last closed.
func (t *Target) Begun() ([]Happened, error) { return readTarget(t.begunPath()) }

// Happened are the effects that have happened, in order.
func (t *Target) Happened() ([]Happened, error) { return readTarget(t.path) }

func readTarget(path string) (all []Happened, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var h Happened
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, lines.Err()
}
