package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/proto/boltfile"
	"github.com/bursar-accounting/bursar/proto/durable"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// ForgetLog takes the entries up to an index out of the files of the raft log, but for the
// last one of the log: what they hold is in none of these files then. Where this node has not
// applied all of them the error says so, and the caller tries again later. A member that lacks
// entries that no log has is brought up by an image.
func (n *Node) ForgetLog(ctx context.Context, upTo uint64) error {
	if err := n.cutLog(upTo); err != nil {
		return err
	}
	first, err1 := n.entries.FirstIndex()
	last, err2 := n.entries.LastIndex()
	err := errors.Join(err1, err2)
	if err == nil && first < min(upTo+1, last) {
		err = fmt.Errorf("it begins at entry %d, and %d was not cut yet", first, upTo)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = n.journal.wipe()
	}
	if err == nil {
		err = guardRaftLog(n.conf, n.bolt.rewrite)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("cluster: raft log %s: %w", n.conf.logPath(), err)
	if errors.Is(err, errLogLost) {
		n.haltNode(err)
	}
	return err
}

// errLogLost: raft.db was closed for a moment, and could not be opened again.
var errLogLost = errors.New("it cannot be opened again")

// cutLog takes a snapshot and leaves what is behind an index.
func (n *Node) cutLog(upTo uint64) error {
	n.cutting.Lock()
	defer n.cutting.Unlock()
	last, err := n.entries.LastIndex()
	if err != nil {
		return fmt.Errorf("cluster: raft log %s: %w", n.conf.logPath(), err)
	}
	return n.snapshot(max(last, upTo+1) - upTo)
}

// wipe overwrites what the files hold of entries that were moved to bbolt.
func (j *journal) wipe() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.moveAll(); err != nil {
		return err
	}
	for _, f := range j.files {
		if _, err := f.WriteAt(make([]byte, journalSize-journalHead), journalHead); err != nil {
			return err
		}
		if err := j.sync(f); err != nil {
			return err
		}
	}
	return nil
}

// boltLog is raft.db: the log and the votes. It can be rewritten while it is used, for bbolt
// uses the pages of what was deleted again, but does not clear them.
type boltLog struct {
	options raftboltdb.Options

	mu     sync.RWMutex
	store  *raftboltdb.BoltStore
	closed bool
}

func openBoltLog(options raftboltdb.Options) (*boltLog, error) {
	store, err := raftboltdb.New(options)
	if err != nil {
		return nil, err
	}
	return &boltLog{options: options, store: store}, nil
}

// rewrite puts a copy of what can be read in the place of the file; reads and writes wait
// meanwhile. After an error the file is the former one; an error that wraps errLogLost says
// that nothing can be read or written any more.
func (b *boltLog) rewrite() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return bolterrors.ErrDatabaseNotOpen
	}
	b.closed = true
	copied := b.store.Close()
	if copied == nil {
		copied = rewriteBolt(b.options.Path)
	}
	store, err := raftboltdb.New(b.options)
	if err != nil {
		return errors.Join(copied, fmt.Errorf("%w: %w", errLogLost, err))
	}
	b.store, b.closed = store, false
	return copied
}

// rewriteBolt replaces a bbolt file that nothing uses, durably.
func rewriteBolt(path string) error {
	fresh := path + ".new"
	err := errors.Join(os.RemoveAll(fresh), copyBolt(path, fresh))
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	return durable.SyncDir(filepath.Dir(path))
}

func copyBolt(from, to string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	source, err := boltfile.Open(ctx, from, boltfile.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	target, err := boltfile.Open(ctx, to, boltfile.Options{NoSync: true})
	if err != nil {
		return errors.Join(err, source.Close())
	}
	const perTransaction = 4 << 20
	err = bbolt.Compact(target, source, perTransaction)
	if err == nil {
		err = target.Sync()
	}
	return errors.Join(err, target.Close(), source.Close())
}

// Close closes the file. No rewrite begins afterwards: it finds it closed.
func (b *boltLog) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.store.Close()
}

// StoreLog implements [raft.LogStore], as do the methods up to Set.
func (b *boltLog) StoreLog(l *raft.Log) error { return b.StoreLogs([]*raft.Log{l}) }

func (b *boltLog) StoreLogs(logs []*raft.Log) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.store.StoreLogs(logs)
}

func (b *boltLog) GetLog(index uint64, l *raft.Log) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.store.GetLog(index, l)
}

func (b *boltLog) FirstIndex() (uint64, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.store.FirstIndex()
}

func (b *boltLog) LastIndex() (uint64, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.store.LastIndex()
}

func (b *boltLog) DeleteRange(min, max uint64) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.store.DeleteRange(min, max)
}

// Set stores a value durably.
func (b *boltLog) Set(key, value []byte) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.store.Set(key, value)
}

// Get returns a copy of a value, or [raftboltdb.ErrKeyNotFound].
func (b *boltLog) Get(key []byte) ([]byte, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.store.Get(key)
}
