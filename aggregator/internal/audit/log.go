package audit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

const (
	// every is how long entries for which no one waits are gathered.
	every = 10 * time.Second
	// pruneEvery is how often old entries are looked for.
	pruneEvery = time.Hour
	// writeTime bounds one write.
	writeTime = 10 * time.Second
	// mostPending is how many entries are kept that the cluster could not commit yet, and
	// mostOfBatch how many are written at once.
	mostPending, mostOfBatch = 20_000, 500
	// mostSeen is how many looks are remembered, so that each is noted once a day.
	mostSeen = 100_000
	// mostPruned is how many documents go at once.
	mostPruned = 500
)

// Options of a [Log].
type Options struct {
	// Node is the name of this node.
	Node string
	// Write commits a command, on whatever node leads.
	Write func(ctx context.Context, c store.Command) (any, error)
	// View has the documents of this node, in the order of their keys, to find what is old.
	View View
	// Months says for how many months entries are kept.
	Months func() int
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Log writes entries into the replicated state. Make one with [NewLog]. It may be used by
// several goroutines.
type Log struct {
	opt   Options
	wake  chan struct{} // someone waits
	noted chan struct{} // something is to be committed soon

	mu      sync.Mutex
	open    *batch   // takes entries
	sealed  []*batch // wait to be committed
	pending int      // entries of all batches
	lost    int      // entries for which there was no room
	day     string
	seen    map[[16]byte]struct{} // looks of this day
}

// batch is entries that are committed together.
type batch struct {
	entries []Entry
	key     string
	done    chan struct{} // closed when they are committed
}

// NewLog makes a log.
func NewLog(opt Options) *Log {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Log{opt: opt, wake: make(chan struct{}, 1), noted: make(chan struct{}, 1), open: newBatch()}
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// Note takes an entry, which is committed soon. It does not wait. Of looks that are the same
// but for their time and address, one a day is kept.
func (l *Log) Note(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addEntry(e)
	signal(l.noted)
}

// signal tells who waits for a channel with room for one.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Commit is [Log.Note] for an entry of another kind than [Look], and waits until it is committed. The error
// says that it is not yet: the log goes on trying.
func (l *Log) Commit(ctx context.Context, e Entry) error {
	l.mu.Lock()
	b := l.addEntry(e)
	l.mu.Unlock()
	return l.awaitBatch(ctx, b)
}

// Flush waits until all entries of before are committed.
func (l *Log) Flush(ctx context.Context) error {
	l.mu.Lock()
	b := l.open
	if len(b.entries) == 0 {
		if len(l.sealed) == 0 {
			l.mu.Unlock()
			return nil
		}
		b = l.sealed[len(l.sealed)-1]
	}
	l.mu.Unlock()
	return l.awaitBatch(ctx, b)
}

// awaitBatch has what is pending committed now, and waits for a batch.
func (l *Log) awaitBatch(ctx context.Context, b *batch) error {
	if b == nil {
		return errors.New("too many entries of the audit log wait to be committed")
	}
	signal(l.wake)
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the audit log is not committed yet: %w", ctx.Err())
	}
}

// addEntry takes an entry into the open batch and returns that; nil where the log is full. The
// caller holds mu.
func (l *Log) addEntry(e Entry) *batch {
	e.At = l.opt.Now().UTC().Truncate(time.Microsecond)
	if day := e.At.Format(time.DateOnly); day != l.day || len(l.seen) >= mostSeen {
		if len(l.open.entries) > 0 {
			l.sealBatch()
		}
		l.day, l.seen = day, map[[16]byte]struct{}{}
	}
	if e.Kind == Look {
		key := lookKey(&e)
		if _, ok := l.seen[key]; ok {
			return l.open
		}
		l.seen[key] = struct{}{}
	}
	if l.pending >= mostPending {
		l.lost++
		return nil
	}
	l.pending++
	l.open.entries = append(l.open.entries, e)
	b := l.open
	if len(b.entries) >= mostOfBatch {
		l.sealBatch()
	}
	return b
}

// sealBatch ends the open batch, which has entries of one day.
func (l *Log) sealBatch() {
	b := l.open
	b.key = b.entries[0].At.Format(stampFormat) + rand.Text()[:8]
	l.sealed, l.open = append(l.sealed, b), newBatch()
}

// lookKey is the same for looks of which one is kept.
func lookKey(e *Entry) (key [16]byte) {
	text, _ := json.Marshal([]string{e.Who, e.Route, e.About, e.Result}) // of strings
	sum := sha256.Sum256(text)
	copy(key[:], sum[:])
	return key
}

// Run commits entries until ctx ends, and lets those go that are old.
func (l *Log) Run(ctx context.Context) error {
	prune := time.NewTicker(pruneEvery)
	defer prune.Stop()
	failing := false
	for ctx.Err() == nil {
		err := l.commitBatches(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			l.opt.Log.Warn("the audit log cannot be committed now; its entries wait", "error", err)
		}
		failing = err != nil
		var due <-chan time.Time
		if failing {
			due = time.After(every)
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				waiting = false
			case <-l.wake:
				waiting = false
			case <-due:
				waiting = false
			case <-l.noted:
				if due == nil {
					due = time.After(every)
				}
			case <-prune.C:
				if err := l.removeOld(ctx, l.opt.Now()); err != nil && ctx.Err() == nil {
					l.opt.Log.Warn("old entries of the audit log could not be removed; the next try is in an hour", "error", err)
				}
			}
		}
	}
	return nil
}

// commitBatches commits all batches.
func (l *Log) commitBatches(ctx context.Context) error {
	for {
		l.mu.Lock()
		if len(l.open.entries) > 0 {
			l.sealBatch()
		}
		if len(l.sealed) == 0 {
			l.mu.Unlock()
			return nil
		}
		b := l.sealed[0]
		l.mu.Unlock()
		if err := l.writeBatch(ctx, b); err != nil {
			return err
		}
		l.mu.Lock()
		l.sealed = slices.Delete(l.sealed, 0, 1)
		l.pending -= len(b.entries)
		if l.lost > 0 {
			lost := Entry{Kind: Gap, Who: "bursar", Result: fmt.Sprintf("%d entries were not kept, since the cluster could not commit them", l.lost)}
			l.lost = 0
			l.addEntry(lost)
		}
		l.mu.Unlock()
		close(b.done)
	}
}

// writeBatch commits a batch. It may be written twice, under the same key.
func (l *Log) writeBatch(ctx context.Context, b *batch) error {
	value, err := json.Marshal(document{Format: format, Node: l.opt.Node, Entries: b.entries})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	_, err = l.opt.Write(ctx, &store.DocumentCommand{Sets: []store.Document{{Space: space, Key: b.key, Value: value}}})
	return err
}

// removeOld removes the entries of the days that are too long ago.
func (l *Log) removeOld(ctx context.Context, now time.Time) error {
	first := now.UTC().AddDate(0, -l.opt.Months(), 0).Format(time.DateOnly)
	errEnough := errors.New("enough")
	for {
		var old []store.Document
		err := l.opt.View.Documents(space, "", func(d store.Document) error {
			if d.Key[:min(len(d.Key), dayLen)] >= first || len(old) == mostPruned {
				return errEnough
			}
			old = append(old, store.Document{Space: space, Key: d.Key})
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		if len(old) == 0 {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, writeTime)
		_, err = l.opt.Write(ctx, &store.DocumentCommand{Sets: old})
		cancel()
		if err != nil {
			return err
		}
	}
}
