package archive

import (
	"errors"
	"fmt"
	"github.com/bursar-accounting/bursar/proto/durable"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Format is the version of the archive that this program writes.
const Format = 1

// The members of an archive.
const (
	metaName = "meta.json"
	sumsName = "SHA256SUMS"
	stateDir = "state/"
)

// Limits of an archive. They bound what a hostile one can cost.
const (
	maxMeta  = 64 << 10
	maxName  = 94      // below state/, so that a tar header holds it
	maxFiles = 1 << 18 // Pebble has a few thousand in a store of 50 million records
	maxSums  = maxFiles * (64 + 2 + 100 + 1)
)

// Errors of this package, matched with errors.Is.
var (
	// ErrDamaged: what was read is no whole archive.
	ErrDamaged = errors.New("damaged archive")
	// ErrState: what was to be archived is not sound itself.
	ErrState = errors.New("the state of this node is not sound")
	// ErrFormat: a newer program wrote the archive.
	ErrFormat = errors.New("unknown format version")
)

// Meta is meta.json: what an archive holds and where it comes from.
type Meta struct {
	Format int `json:"format"`
	// Cluster is the id of the cluster that was saved, and Incarnation tells its
	// lives apart: each restore begins another one.
	Cluster     string `json:"cluster"`
	Incarnation string `json:"incarnation"`
	// ClusterVersion is the protocol version that the cluster had agreed on.
	ClusterVersion uint32 `json:"cluster_version"`
	// Index and Term are of the last command in the archive.
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	// Hash is the state hash at Index, in hexadecimal digits.
	Hash string `json:"hash"`
	// Records are shown; Changes is the place in the feed.
	Records uint64 `json:"records"`
	Changes uint64 `json:"changes"`
	// Node made the archive with this Version of the program.
	Node    string    `json:"node"`
	Version string    `json:"version"`
	Made    time.Time `json:"made"`
	// Files are so many, and so large together.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

func (m *Meta) validate() error {
	switch {
	case m.Format == 0:
		return fmt.Errorf("%s names no format", metaName)
	case m.Format != Format:
		return fmt.Errorf("%w: %d, this program knows %d", ErrFormat, m.Format, Format)
	case m.Files < 1 || m.Files > maxFiles || m.Bytes < 0:
		return fmt.Errorf("%s speaks of %d files with %d bytes", metaName, m.Files, m.Bytes)
	}
	return nil
}

// file is one file of the image.
type file struct {
	name string // with slashes, below the directory
	size int64
}

// list returns the files below dir in the order in which they are archived.
func list(dir string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if !info.Mode().IsRegular() || !fit(name) {
			return fmt.Errorf("%s cannot be archived: it is no regular file, or its name is too long or too odd", p)
		}
		files = append(files, file{name, info.Size()})
		return nil
	})
	slices.SortFunc(files, func(a, b file) int { return order(a.name, b.name) })
	return files, err
}

// order is by the parts of the path.
func order(a, b string) int { return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) }

// fit reports whether name stays below the directory that it is unpacked into
// and needs one tar header and one line of the checksums.
func fit(name string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || c == '\\' {
			return false
		}
	}
	return len(name) <= maxName && filepath.IsLocal(name) && path.Clean(name) == name && name != "."
}

// Unpack reads an archive to its end, verifies it and leaves its files in dir,
// which must not exist and is made; after an error it is gone. The files are
// synced. approve is called before the first of them, and may refuse.
func Unpack(r io.Reader, dir string, approve func(Meta) error) (Meta, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return Meta{}, err
	}
	meta, err := Read(r, approve, func(name string, _ int64, content io.Reader) error {
		return keep(filepath.Join(dir, filepath.FromSlash(name)), content)
	})
	if err == nil {
		err = durable.SyncDir(dir)
	}
	if err != nil {
		return Meta{}, errors.Join(err, os.RemoveAll(dir))
	}
	return meta, nil
}

func keep(path string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Sync(), f.Close(), durable.SyncDir(filepath.Dir(path)))
}
