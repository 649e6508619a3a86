package clusterconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/bursar-accounting/bursar/proto/durable"
	"io/fs"
	"os"
	"path/filepath"
)

// markName is the file in the data directory that says which files this node
// has seen, so that it notices across a restart that they have changed.
const markName = "config.seen"

// mark is what a node remembers of its files.
type mark struct {
	Format int `json:"format"`
	// Files is the digest of the files that were seen last.
	Files string `json:"files"`
	// Base is what was committed when the files changed, as a digest, or "none".
	// "" says that there is nothing to commit: the change has been committed, or
	// something else has been since.
	Base string `json:"base"`
}

// noBase is the base of a change that was made before anything was committed.
const noBase = "none"

// markFormat is the version of a mark.
const markFormat = 2

// decodeMark reads a mark. The error says why it cannot be read.
func decodeMark(raw []byte) (m mark, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return mark{}, err
	}
	if m.Format != markFormat {
		return mark{}, fmt.Errorf("format version %d, this program knows %d", m.Format, markFormat)
	}
	return m, nil
}

// readMark returns the mark in dir; the zero one when there is none.
func readMark(dir string) (mark, error) {
	name := filepath.Join(dir, markName)
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return mark{}, nil
	}
	if err != nil {
		return mark{}, err
	}
	m, err := decodeMark(raw)
	if err != nil {
		return m, fmt.Errorf("%s: %w; without this file the node waits for a change of its files", name, err)
	}
	return m, nil
}

// writeMark replaces the mark in dir, whole or not at all.
func writeMark(dir string, m mark) error {
	m.Format = markFormat
	return durable.Replace(filepath.Join(dir, markName), append(mustJSON(m), '\n'))
}
