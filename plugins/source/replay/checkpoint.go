package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// headBytes is how much of a file's head tells it from others.
const headBytes = 1024

// checkpoint says how far a file was read, and how to know the file again: by
// its head, since a rotation keeps neither the name nor, with copytruncate, the
// inode.
type checkpoint struct {
	Format int    `json:"format"`
	Offset int64  `json:"offset"`
	Length int64  `json:"head_length"` // of the head that Head is the hash of; 0: any file
	Head   string `json:"head"`
	At     int64  `json:"at"` // the latest time of a job, microseconds; 0: none
}

func readCheckpoint(data []byte) (checkpoint, error) {
	var c checkpoint
	if len(data) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("checkpoint: %w", err)
	}
	if c.Format != 1 || c.Offset < 0 || c.Length < 0 || c.Length > headBytes {
		return c, fmt.Errorf("checkpoint: format %d is unknown to this version of the plugin", c.Format)
	}
	return c, nil
}

func (c *checkpoint) encode() []byte {
	c.Format = 1
	data, _ := json.Marshal(c) // numbers and text only
	return data
}

func (c *checkpoint) last() time.Time {
	if c.At == 0 {
		return time.Time{}
	}
	return time.UnixMicro(c.At).UTC()
}

func (c *checkpoint) seen(t time.Time) { c.At = max(c.At, t.UnixMicro()) }

// errCut says that a file changed under our hands. The next Collect goes on from
// the last checkpoint and finds the rest where the rotation put it.
var errCut = errors.New("it was truncated while it was read")

// look takes the head of the file that is being read.
func (c *checkpoint) look(f io.ReaderAt) error {
	head := make([]byte, min(c.Offset, headBytes))
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n < len(head) || c.Length > 0 && sum(head[:c.Length]) != c.Head {
		return errCut
	}
	c.Length, c.Head = int64(len(head)), sum(head)
	return nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:16])
}

// matches reports whether path is the file that the checkpoint speaks of.
func (c *checkpoint) matches(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() < c.Offset {
		return false, err
	}
	if c.Length == 0 {
		return true, nil
	}
	head := make([]byte, c.Length)
	if _, err := io.ReadFull(f, head); err != nil {
		return false, err
	}
	return sum(head) == c.Head, nil
}

// suffix is what rotations put behind a file's name.
var suffix = regexp.MustCompile(`^[.-][0-9][0-9.T:-]*$`)

// siblings returns the older files of a rotation, the oldest first.
func siblings(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	type file struct {
		path     string
		modified time.Time
	}
	var files []file
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), filepath.Base(path))
		if !ok || !suffix.MatchString(rest) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, file{filepath.Join(filepath.Dir(path), e.Name()), info.ModTime()})
	}
	slices.SortStableFunc(files, func(a, b file) int { return a.modified.Compare(b.modified) })
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = f.path
	}
	return out, nil
}
