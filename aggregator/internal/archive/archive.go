package archive

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/bursar-accounting/bursar/proto/durable"
	"github.com/bursar-accounting/bursar/proto/image"
)

// Format is the version of the archive that this program writes.
const Format = 1

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

func (m *Meta) validateMeta() error {
	switch {
	case m.Format == 0:
		return fmt.Errorf("%s has no format", image.MetaName)
	case m.Format != Format:
		return fmt.Errorf("%w: %d, this program knows %d", ErrFormat, m.Format, Format)
	case m.Bytes < 0:
		return fmt.Errorf("%s has %d bytes of files", image.MetaName, m.Bytes)
	}
	return nil
}

// Unpack reads an archive to its end, verifies it and leaves its files in dir,
// which must not exist and is made; after an error it is gone. The files are
// synced. approve is called before the first of them, and may refuse.
func Unpack(r io.Reader, dir string, approve func(Meta) error) (Meta, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return Meta{}, err
	}
	meta, err := Read(r, approve, image.Into(dir))
	if err == nil {
		err = durable.SyncDir(dir)
	}
	if err != nil {
		return Meta{}, errors.Join(err, os.RemoveAll(dir))
	}
	return meta, nil
}
