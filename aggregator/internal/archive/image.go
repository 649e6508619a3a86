package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// Checkpointer is what the archiver needs of the store.
type Checkpointer interface {
	// Checkpoint writes a consistent image into dir, which must not exist.
	Checkpoint(dir string) error
}

// Archiver makes archives of a node's store and takes archives in. Its scratch
// directory is emptied by [Archiver.Sweep], and lies on the file system of the store,
// so that images are hard links.
type Archiver struct {
	Store   Checkpointer
	Scratch string
	// Node and Version are written into archives.
	Node, Version string
	// Applied returns the index of the last command in the store; an image that ends
	// before it is refused, since Pebble takes a log that is cut for a shorter one.
	// Nil: no one knows.
	Applied func() uint64
	// Free returns the bytes that may be used in Scratch; nil: there is no limit.
	Free func() (int64, error)
	Now  func() time.Time
	// Amend, which may be nil, returns what a restore changes in the image of an archive
	// before it is installed, beside the incarnation.
	Amend func(image *store.Image, m Meta) ([]store.Document, error)
}

// Sweep removes what a crash has left.
func (s *Archiver) Sweep() error {
	if err := os.RemoveAll(s.Scratch); err != nil {
		return fmt.Errorf("backup: scratch directory: %w", err)
	}
	if err := os.MkdirAll(s.Scratch, 0o700); err != nil {
		return fmt.Errorf("backup: scratch directory: %w", err)
	}
	return nil
}

// Image is a consistent image of the store that waits to be archived. It holds
// no memory, but old data on the disk, until it is closed.
type Image struct {
	Meta Meta
	dir  string
}

// Image makes an image of now. The caller closes it.
func (s *Archiver) Image() (*Image, error) {
	parent, err := os.MkdirTemp(s.Scratch, "out-*")
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	var least uint64
	if s.Applied != nil {
		least = s.Applied()
	}
	m := &Image{dir: parent}
	state := filepath.Join(parent, "state")
	if err = s.Store.Checkpoint(state); err == nil {
		m.Meta, err = readImageMeta(state)
	}
	if err == nil && m.Meta.Index < least {
		err = fmt.Errorf("%w: it ends at index %d, and the store was at %d before: its files cannot be read back", ErrState, m.Meta.Index, least)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("backup: image of the store: %w", err), m.Close())
	}
	m.Meta.Node, m.Meta.Version, m.Meta.Made = s.Node, s.Version, s.Now().UTC().Truncate(time.Millisecond)
	return m, nil
}

// readImageMeta reads what the image in dir holds.
func readImageMeta(dir string) (Meta, error) {
	image, err := store.OpenImage(dir)
	if err != nil {
		return Meta{}, err
	}
	meta, err := describeImage(image)
	return meta, errors.Join(err, image.Close())
}

func describeImage(image *store.Image) (Meta, error) {
	life, err := ReadIncarnation(image)
	if err != nil {
		return Meta{}, err
	}
	s := image.Summary()
	return Meta{
		Cluster: s.Cluster, Incarnation: life.ID, ClusterVersion: s.Version, Index: s.Index, Term: s.Term,
		Hash: s.Hash.String(), Records: s.Records, Changes: s.Seq,
	}, nil
}

// Write writes the archive.
func (m *Image) Write(w io.Writer) error { return Write(w, filepath.Join(m.dir, "state"), m.Meta) }

// Close removes the image.
func (m *Image) Close() error { return os.RemoveAll(m.dir) }

// Taken is an archive that was taken in and found good: a directory that a node's
// store can be replaced by.
type Taken struct {
	Meta Meta
	// Life is the incarnation that the restore begins; it is in Dir already.
	Life Incarnation
	Dir  string

	parent string
}

// Close removes what is left of it.
func (t *Taken) Close() error { return os.RemoveAll(t.parent) }

// Take reads an archive, verifies it to the last byte and row, and prepares the
// image for an [Installer] with a new incarnation. approve, which may be nil, may
// refuse it for what it says of itself. The caller closes what was taken.
func (s *Archiver) Take(ctx context.Context, r io.Reader, approve func(Meta) error) (*Taken, error) {
	parent, err := os.MkdirTemp(s.Scratch, "in-*")
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	t := &Taken{parent: parent, Dir: filepath.Join(parent, "state")}
	if err := s.takeArchive(ctx, r, approve, t); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (s *Archiver) takeArchive(ctx context.Context, r io.Reader, approve func(Meta) error, t *Taken) (err error) {
	fits := func(m Meta) error {
		if approve != nil {
			if err := approve(m); err != nil {
				return err
			}
		}
		return s.checkRoom(m)
	}
	if t.Meta, err = Unpack(reading{ctx, r}, t.Dir, fits); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	life, err := CheckImage(ctx, t.Dir, t.Meta)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	t.Life = life.nextIncarnation(&t.Meta, s.Now())
	amended, err := s.amend(t)
	if err == nil {
		err = t.Life.beginIn(t.Dir, amended)
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// amend asks what the restore changes in the image.
func (s *Archiver) amend(t *Taken) ([]store.Document, error) {
	if s.Amend == nil {
		return nil, nil
	}
	image, err := store.OpenImage(t.Dir)
	if err != nil {
		return nil, err
	}
	sets, err := s.Amend(image, t.Meta)
	return sets, errors.Join(err, image.Close())
}

// ErrNoSpace says that the disk has too little space for the archive.
var ErrNoSpace = errors.New("too little space on the disk")

// checkRoom refuses what does not fit.
func (s *Archiver) checkRoom(m Meta) error {
	if s.Free == nil {
		return nil
	}
	free, err := s.Free()
	if err != nil {
		return err
	}
	if m.Bytes > free {
		return fmt.Errorf("%w: the archive needs %d bytes in %s, and %d may be used", ErrNoSpace, m.Bytes, s.Scratch, free)
	}
	return nil
}

// reading ends with its context.
type reading struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r reading) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// CheckImage loads the image in dir into a store, compares it with what the
// archive says of itself, and derives everything again that can be derived, the
// state hash among it. It returns the incarnation in the image. The error wraps
// [ErrDamaged] when the image is not sound.
func CheckImage(ctx context.Context, dir string, meta Meta) (life Incarnation, err error) {
	image, err := store.OpenImage(dir)
	if err != nil {
		return life, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	got, err := describeImage(image)
	if err != nil {
		return life, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if what := meta.differenceTo(&got); what != "" {
		return life, fmt.Errorf("%w: meta.json says %s, and the store in it something else", ErrDamaged, what)
	}
	wrong, err := image.Check(ctx)
	if err != nil {
		return life, fmt.Errorf("check the store in the archive: %w", err)
	}
	if len(wrong) > 0 {
		return life, fmt.Errorf("%w: the store in it is not sound: %s (%d differences)", ErrDamaged, wrong[0], len(wrong))
	}
	return ReadIncarnation(image)
}

// differenceTo names what the archive says of the store and is not so.
func (m *Meta) differenceTo(got *Meta) string {
	switch {
	case m.Cluster != got.Cluster:
		return fmt.Sprintf("cluster %q", m.Cluster)
	case m.Incarnation != got.Incarnation:
		return fmt.Sprintf("incarnation %q", m.Incarnation)
	case m.ClusterVersion != got.ClusterVersion:
		return fmt.Sprintf("cluster version %d", m.ClusterVersion)
	case m.Index != got.Index || m.Term != got.Term:
		return fmt.Sprintf("index %d of term %d", m.Index, m.Term)
	case m.Hash != got.Hash:
		return "state hash " + m.Hash
	case m.Records != got.Records || m.Changes != got.Changes:
		return fmt.Sprintf("%d records after %d changes", m.Records, m.Changes)
	}
	return ""
}
