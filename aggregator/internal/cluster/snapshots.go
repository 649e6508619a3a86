package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bursar-accounting/bursar/proto/durable"
	"github.com/hashicorp/raft"
)

// snapshotsKept is how many snapshots stay on disk.
const snapshotsKept = 2

const (
	snapshotFile = "snapshot.json"
	imageName    = "image.tar"
	tempSuffix   = ".tmp"
)

// snapshotMeta is the body of snapshot.json.
type snapshotMeta struct {
	ID                 string       `json:"id"`
	Index              uint64       `json:"index"`
	Term               uint64       `json:"term"`
	Version            int          `json:"version"`
	Servers            []serverMeta `json:"servers"`
	ConfigurationIndex uint64       `json:"configuration_index"`
	// Terms are those of the entries up to Index, as far as they are known.
	Terms []termStart `json:"terms,omitempty"`
	// Held: the State itself is the snapshot; there is no image file.
	Held bool `json:"held"`
	// StateIndex is the command up to which the State, or the image, goes; it
	// may be more than Index.
	StateIndex uint64 `json:"state_index"`
	Size       int64  `json:"size"`
	Made       int64  `json:"made_unix_ms"` // only to order and to tell
}

// serverMeta is a member as raft's configuration has it.
type serverMeta struct {
	ID       string `json:"id"`
	Addr     string `json:"addr"`
	Suffrage string `json:"suffrage"`
}

// snapshots is a raft.SnapshotStore whose own snapshots take no room: the State
// is durable, so a mark that it was flushed up to an index is enough. Only when
// another node needs it is a checkpoint made and streamed. What comes from
// another node is kept as an archive until newer snapshots replace it.
type snapshots struct {
	dir     string
	scratch string
	// checkpoint writes an image of the State and says how far it goes.
	checkpoint func(dir string) (index, term uint64, err error)
	// terms are those of the entries up to an index of the own log.
	terms func(index uint64) []termStart
	// arrived is told of each snapshot that came from another node, when it is
	// durable. An error refuses it.
	arrived func(snapshotMeta) error
	count   atomic.Uint64
}

// openSnapshots sweeps what a crash has left.
func openSnapshots(dir, scratch string, checkpoint func(string) (uint64, uint64, error)) (*snapshots, error) {
	st := &snapshots{dir: dir, scratch: scratch, checkpoint: checkpoint, terms: func(uint64) []termStart { return nil }}
	st.arrived = func(snapshotMeta) error { return nil }
	if err := os.RemoveAll(scratch); err != nil {
		return nil, fmt.Errorf("cluster: snapshots: %w", err)
	}
	for _, d := range []string{dir, scratch} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("cluster: snapshots: %w", err)
		}
	}
	half, err := filepath.Glob(filepath.Join(dir, "*"+tempSuffix))
	for _, d := range half {
		err = errors.Join(err, os.RemoveAll(d))
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: snapshots: %w", err)
	}
	return st, nil
}

func toServers(c raft.Configuration) []serverMeta {
	out := make([]serverMeta, 0, len(c.Servers))
	for _, s := range c.Servers {
		out = append(out, serverMeta{ID: string(s.ID), Addr: string(s.Address), Suffrage: s.Suffrage.String()})
	}
	return out
}

func fromServers(servers []serverMeta) (c raft.Configuration, err error) {
	for _, s := range servers {
		suffrage, ok := map[string]raft.ServerSuffrage{
			raft.Voter.String(): raft.Voter, raft.Nonvoter.String(): raft.Nonvoter, raft.Staging.String(): raft.Staging,
		}[s.Suffrage]
		if !ok {
			return c, fmt.Errorf("%w: suffrage %q", ErrFormat, s.Suffrage)
		}
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Addr), Suffrage: suffrage})
	}
	return c, nil
}

func (m *snapshotMeta) raftMeta() (*raft.SnapshotMeta, error) {
	conf, err := fromServers(m.Servers)
	return &raft.SnapshotMeta{
		Version: raft.SnapshotVersion(m.Version), ID: m.ID, Index: m.Index, Term: m.Term,
		Configuration: conf, ConfigurationIndex: m.ConfigurationIndex, Size: m.Size,
	}, err
}

// listMetas returns all snapshots, newest first. One that cannot be read is an
// error: the log may have been cut behind it.
func (s *snapshots) listMetas() ([]*snapshotMeta, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("cluster: snapshots: %w", err)
	}
	var out []*snapshotMeta
	for _, e := range entries {
		if !e.IsDir() || strings.HasSuffix(e.Name(), tempSuffix) {
			continue
		}
		m, err := s.readMeta(e.Name())
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	slices.SortFunc(out, newerFirst)
	return out, nil
}

func newerFirst(a, b *snapshotMeta) int {
	return cmp.Or(cmp.Compare(b.Term, a.Term), cmp.Compare(b.Index, a.Index), cmp.Compare(b.Made, a.Made), strings.Compare(b.ID, a.ID))
}

func (s *snapshots) readMeta(id string) (*snapshotMeta, error) {
	m := new(snapshotMeta)
	if err := readSealed(filepath.Join(s.dir, id, snapshotFile), m); err != nil {
		return nil, fmt.Errorf("cluster: snapshot: %w", err)
	}
	return m, nil
}

// newestMeta returns the newest snapshot, or a zero one.
func (s *snapshots) newestMeta() (snapshotMeta, error) {
	all, err := s.listMetas()
	if err != nil || len(all) == 0 {
		return snapshotMeta{}, err
	}
	return *all[0], nil
}

// List returns the snapshots, newest first.
func (s *snapshots) List() ([]*raft.SnapshotMeta, error) {
	all, err := s.listMetas()
	if err != nil {
		return nil, err
	}
	out := make([]*raft.SnapshotMeta, 0, len(all))
	for _, m := range all {
		rm, err := m.raftMeta()
		if err != nil {
			return nil, fmt.Errorf("cluster: snapshot %s: %w", m.ID, err)
		}
		out = append(out, rm)
	}
	return out, nil
}

// Open returns a snapshot to be sent or restored. The image of one that the
// State holds is made now and may go further than the snapshot's index; the
// receiver skips what it then gets twice.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	m, err := s.readMeta(id)
	if err != nil {
		return nil, nil, err
	}
	var r io.ReadCloser
	if m.Held {
		r, m.Size, err = s.liveImage(m.Terms)
	} else {
		r, err = os.Open(filepath.Join(s.dir, id, imageName))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cluster: snapshot %s: %w", id, err)
	}
	rm, err := m.raftMeta()
	if err != nil {
		r.Close()
		return nil, nil, fmt.Errorf("cluster: snapshot %s: %w", id, err)
	}
	return rm, r, nil
}

// liveImage makes a checkpoint of the State and streams it.
func (s *snapshots) liveImage(terms []termStart) (io.ReadCloser, int64, error) {
	dir := filepath.Join(s.scratch, fmt.Sprintf("out-%d", s.count.Add(1)))
	index, term, err := s.checkpoint(dir)
	if err != nil {
		removeAll(dir)
		return nil, 0, err
	}
	r, size, err := streamImage(dir, imageMeta{Applied: index, Term: term, Terms: terms})
	if err != nil {
		removeAll(dir)
	}
	return r, size, err
}

func streamImage(dir string, meta imageMeta) (io.ReadCloser, int64, error) {
	p, err := packImage(dir, meta)
	if err != nil {
		return nil, 0, err
	}
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pw.CloseWithError(p.writeArchive(pw))
	}()
	return &imageStream{PipeReader: pr, dir: dir, done: done}, p.size, nil
}

// imageStream is an image on its way; closing it ends the writer and removes
// the checkpoint.
type imageStream struct {
	*io.PipeReader
	dir  string
	done <-chan struct{}
}

// Close ends the stream.
func (i *imageStream) Close() error {
	err := i.PipeReader.Close()
	<-i.done
	removeAll(i.dir)
	return err
}

// Create begins a snapshot: one that the State holds, or one that arrives.
func (s *snapshots) Create(version raft.SnapshotVersion, index, term uint64, conf raft.Configuration,
	confIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	made := time.Now().UnixMilli()
	m := snapshotMeta{
		ID:    fmt.Sprintf("%d-%d-%d-%d", term, index, made, s.count.Add(1)),
		Index: index, Term: term, Version: int(version),
		Servers: toServers(conf), ConfigurationIndex: confIndex, Made: made,
	}
	dir := filepath.Join(s.dir, m.ID+tempSuffix)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cluster: snapshot: %w", err)
	}
	return &sink{store: s, meta: m, dir: dir}, nil
}

// sink is a snapshot in the making.
type sink struct {
	store *snapshots
	meta  snapshotMeta
	dir   string
	image *os.File // made at the first Write
	ended bool
}

// heldByState turns it into a mark that the State is durable up to index.
func (s *sink) heldByState(index uint64) {
	s.meta.Held = true
	s.meta.StateIndex = index
}

// ID names the snapshot.
func (s *sink) ID() string { return s.meta.ID }

// Write takes the next bytes of a received image.
func (s *sink) Write(p []byte) (int, error) {
	if s.image == nil {
		f, err := os.OpenFile(filepath.Join(s.dir, imageName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return 0, err
		}
		s.image = f
	}
	n, err := s.image.Write(p)
	s.meta.Size += int64(n)
	return n, err
}

// Cancel removes what has been written.
func (s *sink) Cancel() error {
	if s.ended {
		return nil
	}
	s.ended = true
	if s.image != nil {
		s.image.Close()
	}
	return os.RemoveAll(s.dir)
}

// Close verifies the snapshot, makes it durable and visible, and removes old
// ones. Raft calls it twice.
func (s *sink) Close() error {
	if s.ended {
		return nil
	}
	if err := s.finishSnapshot(); err != nil {
		return fmt.Errorf("cluster: snapshot %s: %w", s.meta.ID, errors.Join(err, s.Cancel()))
	}
	s.ended = true
	if err := s.store.reapOlder(); err != nil || s.meta.Held {
		return err
	}
	return s.store.arrived(s.meta)
}

func (s *sink) finishSnapshot() error {
	if s.meta.Held {
		s.meta.Terms = s.store.terms(s.meta.Index)
	} else if err := s.checkImage(); err != nil {
		return err
	}
	if err := writeSealed(filepath.Join(s.dir, snapshotFile), s.meta); err != nil {
		return err
	}
	if err := os.Rename(s.dir, strings.TrimSuffix(s.dir, tempSuffix)); err != nil {
		return err
	}
	return durable.SyncDir(s.store.dir)
}

func (s *sink) checkImage() error {
	if s.image == nil {
		return fmt.Errorf("%w: it is empty", ErrCorrupt)
	}
	if err := s.image.Sync(); err != nil {
		return err
	}
	if _, err := s.image.Seek(0, io.SeekStart); err != nil {
		return err
	}
	meta, err := readImage(s.image, nil)
	s.meta.StateIndex, s.meta.Terms = meta.Applied, meta.Terms
	return errors.Join(err, s.image.Close())
}

// reapOlder removes all but the newest snapshots.
func (s *snapshots) reapOlder() error {
	all, err := s.listMetas()
	if err != nil {
		return err
	}
	for _, m := range all[min(len(all), snapshotsKept):] {
		if err := os.RemoveAll(filepath.Join(s.dir, m.ID)); err != nil {
			return fmt.Errorf("cluster: snapshots: %w", err)
		}
	}
	return nil
}
