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

// markFormat is the version of a mark. Those of version 1 have the digests of documents of
// format 1.
const (
	markFormat    = 2
	oldMarkFormat = 1
)

// renewedFrom is a mark with the digests that this program has. What an old one says of other
// documents than the committed one is not known any more.
func (m mark) renewedFrom(now *Committed) mark {
	if m.Format != oldMarkFormat {
		return m
	}
	out := mark{}
	if now == nil {
		if m.Base == noBase { // the files changed, and nothing is committed yet
			out = mark{Files: m.Files, Base: noBase}
		}
		return out
	}
	known := func(old string) string {
		if d, err := ParseDigest(old); err == nil && now.Is(d) {
			return now.Digest.String()
		}
		return ""
	}
	out.Files, out.Base = known(m.Files), known(m.Base)
	if out.Base != "" && out.Files == "" {
		out.Files = m.Files // the change waits
	}
	return out
}

// decodeMark reads a mark. The error says why it cannot be read.
func decodeMark(raw []byte) (m mark, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return mark{}, err
	}
	if m.Format != markFormat && m.Format != oldMarkFormat {
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
