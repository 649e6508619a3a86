package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/bursar-accounting/bursar/proto/poison"
)

// machine is the raft.FSM around a State. It applies each command once, stops
// at the first error, and lets others wait for an index.
type machine struct {
	state   State
	images  Images
	scratch string // where received images are unpacked
	halt    func(error)
	// imageStore has the images that entries name; fetch gets one that is not there.
	imageStore *imageStore
	fetch      func(order) error

	// writing excludes Apply, Checkpoint and Restore from each other.
	writing sync.Mutex

	mu      sync.Mutex
	applied uint64
	stopped error
	changed chan struct{} // closed at the next advance; nil when no one waits
}

// outcome is what Apply hands to the proposer's future.
type outcome struct {
	value any
	err   error
}

func newMachine(s State, images Images, scratch string, halt func(error)) *machine {
	applied, _ := s.Applied()
	return &machine{state: s, images: images, scratch: scratch, halt: halt, applied: applied}
}

// Apply hands a committed command to the State unless it has it already.
func (m *machine) Apply(l *raft.Log) any {
	m.writing.Lock()
	defer m.writing.Unlock()
	at, err := m.statePosition()
	if err != nil {
		return outcome{err: err}
	}
	if l.Index <= at {
		return outcome{err: m.alreadyApplied(l)}
	}
	value, err := m.executeCommand(l)
	if err == nil {
		err = m.checkRecorded(l)
	}
	if errors.Is(err, ErrStopped) {
		return outcome{err: m.quitApplying(err)}
	}
	if err != nil {
		return outcome{err: m.stopNode(fmt.Errorf("cluster: apply entry %d: %w", l.Index, err))}
	}
	m.advanceTo(l.Index)
	return outcome{value: value}
}

// executeCommand hands a command to whom it is for.
func (m *machine) executeCommand(l *raft.Log) (any, error) {
	if _, own := ownEntry(l); own {
		return nil, m.replaceState(l)
	}
	return m.applyCopied(l)
}

// applyCopied lets the State apply a command, of which it must keep nothing: it gets a copy
// where what is taken back is overwritten, since the log keeps the entry.
func (m *machine) applyCopied(l *raft.Log) (any, error) {
	data := l.Data
	if poison.Enabled {
		data = bytes.Clone(data)
		defer poison.Bytes(data)
	}
	return m.state.Apply(l.Index, l.Term, data)
}

// replaceState puts an image in the place of the State, as of this entry.
func (m *machine) replaceState(l *raft.Log) error {
	if m.images == nil {
		return errors.New("this node cannot take images")
	}
	o, err := readOrder(l.Data)
	if err != nil {
		return err
	}
	dir, err := m.unpackOrder(o)
	if err != nil {
		return err
	}
	defer removeAll(dir)
	return m.images.RestoreAt(dir, l.Index, l.Term)
}

// unpackOrder fetches an image if need be, and once more if it is damaged here.
func (m *machine) unpackOrder(o order) (dir string, err error) {
	for range 2 {
		if err := m.fetch(o); err != nil {
			return "", err
		}
		dir, err = m.imageStore.unpackImage(o, m.scratch)
		if !errors.Is(err, ErrCorrupt) {
			return dir, err
		}
		if err := m.imageStore.dropImage(o); err != nil {
			return "", err
		}
	}
	return dir, err
}

// tryImage makes sure that the State would take an image.
func (m *machine) tryImage(o order) error {
	dir, err := m.imageStore.unpackImage(o, m.scratch)
	if err != nil {
		return err
	}
	defer removeAll(dir)
	return m.images.CheckImage(dir)
}

func (m *machine) statePosition() (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.applied, m.stopped
}

// alreadyApplied makes sure that what was applied at this index was this entry.
func (m *machine) alreadyApplied(l *raft.Log) error {
	index, term := m.state.Applied()
	if index == l.Index && term != l.Term {
		return m.stopNode(fmt.Errorf("%w: the state applied entry %d of term %d, the log has it with term %d",
			ErrMismatch, index, term, l.Term))
	}
	return nil
}

// checkRecorded holds the State to its word: what it has applied it knows.
func (m *machine) checkRecorded(l *raft.Log) error {
	if index, term := m.state.Applied(); index != l.Index || term != l.Term {
		return fmt.Errorf("%w: the state says that it is at entry %d of term %d", ErrMismatch, index, term)
	}
	return nil
}

func (m *machine) stopNode(err error) error {
	m.halt(m.quitApplying(err))
	return err
}

// quitApplying lets nothing more be applied.
func (m *machine) quitApplying(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped == nil {
		m.stopped = err
	}
	m.wakeWaiting()
	return err
}

func (m *machine) advanceTo(index uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied = index
	m.wakeWaiting()
}

func (m *machine) wakeWaiting() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// waitApplied returns when the State has applied the command at index.
func (m *machine) waitApplied(ctx context.Context, index uint64, ended <-chan struct{}) error {
	for {
		changed, err := m.appliedSignal(index)
		if changed == nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			return ErrStopped
		}
	}
}

// appliedSignal returns a channel to wait on, or nil when there is no need.
func (m *machine) appliedSignal(index uint64) (<-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.applied >= index || m.stopped != nil {
		return nil, m.stopped
	}
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return m.changed, nil
}

// Snapshot costs nothing: the State is its own snapshot. All that Persist has to
// do is to make sure that the State is on disk before the log is shortened.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if _, err := m.statePosition(); err != nil {
		return nil, err
	}
	return flushed{m}, nil
}

// flushed is a snapshot that the State itself holds.
type flushed struct{ m *machine }

// Persist flushes the State and notes how far it is.
func (f flushed) Persist(to raft.SnapshotSink) error {
	sink, ok := to.(*sink)
	if !ok {
		return fmt.Errorf("cluster: snapshot: a foreign sink %T", to)
	}
	at, err := f.m.statePosition()
	if err != nil {
		return err
	}
	if err := f.m.state.Flush(); err != nil {
		return f.m.stopNode(fmt.Errorf("cluster: flush the state at entry %d: %w", at, err))
	}
	sink.heldByState(at)
	return nil
}

// Release does nothing; nothing is held.
func (flushed) Release() {}

// Restore replaces the State by a received image. An image that fails its
// checks leaves the State alone.
func (m *machine) Restore(image io.ReadCloser) error {
	if m.images == nil {
		return errors.New("cluster: restore: this node cannot take images")
	}
	dir, err := unpackTemp(m.scratch, image)
	if err != nil {
		return fmt.Errorf("cluster: restore: %w", err)
	}
	defer removeAll(dir)
	m.writing.Lock()
	defer m.writing.Unlock()
	if err := m.images.Restore(dir); err != nil {
		return m.stopNode(fmt.Errorf("cluster: restore: %w", err))
	}
	index, _ := m.state.Applied()
	m.advanceTo(index)
	return nil
}

// checkpointState writes an image of the State into dir and says how far it goes.
func (m *machine) checkpointState(dir string) (index, term uint64, err error) {
	if m.images == nil {
		return 0, 0, errors.New("this node cannot send images")
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	if _, err := m.statePosition(); err != nil {
		return 0, 0, err
	}
	index, term = m.state.Applied()
	if err := m.images.Checkpoint(dir); err != nil {
		return 0, 0, fmt.Errorf("checkpoint: %w", err)
	}
	return index, term, nil
}
