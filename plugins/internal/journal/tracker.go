package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/boltfile"
)

// Entry is what a Tracker needs of an entry, a pointer to a type with a [Once].
type Entry interface {
	comparable
	OnceTold() *Once
	Untold() bool // the daemon is to be told of holes, or of something else that it is told once
	TellOnce()    // notes that it has been told of them
	Untell()      // has all runs sent again
}

// Once is the part of an entry that the daemon is told once.
type Once struct {
	Holes []Hole `json:"holes,omitempty"` // that the daemon has not been told
	Batch uint64 `json:"batch,omitempty"` // with which Holes, and what never started, were sent last; 0: they were not
}

// OnceTold implements Entry.
func (o *Once) OnceTold() *Once { return o }

// Tracker is what one Collect of a source that follows its scheduler knows: entries of which
// more is expected, what is remembered of the others, and which of them have news.
type Tracker[E Entry] struct {
	*Journal[E]

	Open    map[string]E         // of which more is expected, by their keys
	Settled map[string]Settled   // the others that the journal or the scheduler has
	Seen    map[string]time.Time // when an open one was last known to be as it is
	Batch   sdk.Batch            // that is sent next

	Way     Way[E]
	touched []E       // that have news
	noted   []E       // that the daemon has, which the journal does not know yet
	stands  []byte    // the checkpoint that was sent last
	pruned  time.Time // when the journal was pruned last
}

// Settled is what is remembered of an entry of which nothing is expected.
type Settled struct {
	Version uint64 // of the scheduler's
	Changed time.Time
	Ours    bool // the journal has it
}

// Way is how a source sends what its Tracker has.
type Way[E Entry] struct {
	Reach *Reach
	Out   *sdk.Stream
	// Add puts those runs of an entry into the batch that the daemon lacks. Tell notes that it
	// has them, and says whether that is news.
	Add func(E) (tell func() bool)
	// Place says where an entry is, for people, and Starts and Gone what holes of entries are, as
	// in [Holes.Gap].
	Place        func(E) string
	Starts, Gone string
	// Empty says that the journal need not have an entry yet; nil: it is to have all.
	Empty func(E) bool
	// Numbered is a checkpoint with another number of batches.
	Numbered func(checkpoint []byte, batches uint64) ([]byte, error)
	// Sent is called for each entry with news after the daemon has them.
	Sent func(E)
}

// Timings of a Tracker.
const (
	lockWait   = 10 * time.Second
	readWait   = time.Second
	pruneEvery = time.Hour
)

// OpenTracker opens the journal in dir for a Collect, which begins at that time and with that
// checkpoint. The source sets Way.
func OpenTracker[E Entry](ctx context.Context, f Form[E], dir string, now time.Time, checkpoint []byte) (*Tracker[E], error) {
	waiting, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	j, err := f.Open(waiting, dir, rand.Text())
	if err != nil {
		return nil, err
	}
	return &Tracker[E]{Journal: j, Open: map[string]E{}, Settled: map[string]Settled{}, Seen: map[string]time.Time{}, stands: checkpoint, pruned: now}, nil
}

// ReadOnly opens the journal in dir to read it. It is empty while another process has it open,
// and where there is none.
func (f Form[E]) ReadOnly(ctx context.Context, dir string) (*Journal[E], error) {
	if dir == "" {
		return f.Open(ctx, "", "")
	}
	waiting, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	j, err := f.Read(waiting, dir)
	if errors.Is(err, boltfile.ErrInUse) || errors.Is(err, fs.ErrNotExist) {
		return f.Open(ctx, "", "")
	}
	return j, err
}

// Touch notes that an entry has news.
func (b *Tracker[E]) Touch(e E) { b.touched = append(b.touched, e) }

// Touched are the entries that have news, each once.
func (b *Tracker[E]) Touched() []E {
	b.touched = dropDuplicates(b.touched)
	return b.touched
}

func dropDuplicates[E comparable](list []E) []E {
	seen := make(map[E]bool, len(list))
	return slices.DeleteFunc(list, func(e E) bool {
		had := seen[e]
		seen[e] = true
		return had
	})
}

// Restore passes all entries of the journal to take, after what the daemon has been told
// once was noted, with renew all of them as if it had none of their runs.
func (b *Tracker[E]) Restore(renew bool, take func(E)) error {
	return b.Each(func(e E) error {
		if renew {
			e.Untell()
		}
		if n := e.OnceTold().Batch; n > 0 && n <= b.Way.Reach.Batches {
			e.TellOnce()
		}
		take(e)
		return nil
	})
}

// Entry finds what is known under a key, or begins it. More is expected of it then.
func (b *Tracker[E]) Entry(key string) (E, error) {
	if e, open := b.Open[key]; open {
		return e, nil
	}
	e := b.form.New()
	if at := slices.IndexFunc(b.noted, func(e E) bool { return b.form.Key(e) == key }); at >= 0 {
		e = b.noted[at]
	} else if b.Settled[key].Ours {
		known, found, err := b.Get(key)
		if err != nil {
			return e, err
		}
		if found {
			e = known
		}
	}
	b.Open[key] = e
	return e, nil
}

// Settle notes that nothing more is expected of an entry that the journal has.
func (b *Tracker[E]) Settle(e E, version uint64, changed time.Time) {
	key := b.form.Key(e)
	b.Settled[key] = Settled{Version: version, Changed: changed, Ours: true}
	delete(b.Open, key)
	delete(b.Seen, key)
}

// LastSeen is when an entry was last known to be as it is remembered.
func (b *Tracker[E]) LastSeen(key string) time.Time {
	seen := b.Seen[key]
	if look := b.Way.Reach.Look; look.After(seen) {
		return look
	}
	return seen
}

// Prune drops settled entries that changed so long ago and that the scheduler does not list
// any more. It does so once an hour.
func (b *Tracker[E]) Prune(now time.Time, remember time.Duration, listed func(key string) bool) error {
	if now.Sub(b.pruned) < pruneEvery {
		return nil
	}
	b.pruned = now
	var old []string
	for key, s := range b.Settled {
		if !listed(key) && now.Sub(s.Changed) > remember {
			delete(b.Settled, key)
			old = append(old, key)
		}
	}
	return b.Delete(old...)
}

// ErrDaemon marks errors of the daemon and of the journal.
var ErrDaemon = errors.New("send")

// Flush writes what was learned into the journal, sends it, and notes that it was.
func (b *Tracker[E]) Flush(ctx context.Context) error {
	touched := b.Touched()
	b.touched = nil
	var missed Holes
	tells := make([]func() bool, len(touched))
	for i, e := range touched {
		tells[i] = b.Way.Add(e)
		missed.Add(b.Way.Place(e), e.OnceTold().Holes)
	}
	if g, some := missed.Gap(b.Way.Starts, b.Way.Gone); some {
		b.Batch.Gaps = append(b.Batch.Gaps, g)
	}
	once := b.numberBatch(touched)
	if err := b.saveTouched(touched); err != nil {
		return err
	}
	if err := b.sendBatch(ctx, once); err != nil {
		return err
	}
	for i, e := range touched {
		if tells[i]() || e.Untold() {
			e.TellOnce()
			b.noted = append(b.noted, e)
		}
		b.Way.Sent(e)
	}
	return nil
}

// numberBatch gives the entries of which something is told once the number of the batch that tells
// it. The checkpoint of that batch has the number too, so that a restart knows whether the
// daemon has it. It reports whether there are any.
func (b *Tracker[E]) numberBatch(touched []E) bool {
	next := b.Way.Reach.Batches + 1
	for _, e := range touched {
		if e.Untold() {
			e.OnceTold().Batch, b.Way.Reach.Batches = next, next
		}
	}
	return b.Way.Reach.Batches == next
}

// saveTouched writes entries into the journal, with those of which the daemon has got more
// meanwhile. That needs no write of its own: what is not noted is sent once more after a
// crash.
func (b *Tracker[E]) saveTouched(touched []E) error {
	if b.Way.Empty != nil {
		touched = slices.DeleteFunc(slices.Clone(touched), b.Way.Empty)
	}
	if len(touched) == 0 && len(b.noted) < maxNoted {
		return nil
	}
	return b.putNoted(touched)
}

const maxNoted = 1000 // entries that wait to be written

func (b *Tracker[E]) putNoted(more []E) error {
	all := dropDuplicates(append(b.noted, more...))
	b.noted = nil
	if err := b.Put(all...); err != nil {
		return fmt.Errorf("%w: %w", ErrDaemon, err)
	}
	return nil
}

// sendBatch sends the batch, if there is anything in it or it tells of something once.
func (b *Tracker[E]) sendBatch(ctx context.Context, once bool) error {
	out := b.Batch
	b.Batch = sdk.Batch{}
	if once {
		stands := out.Checkpoint
		if stands == nil {
			stands = b.stands
		}
		var err error
		if out.Checkpoint, err = b.Way.Numbered(stands, b.Way.Reach.Batches); err != nil {
			return err
		}
	}
	if out.Checkpoint != nil {
		b.stands = out.Checkpoint
	}
	if len(out.Jobs)+len(out.Gaps)+len(out.Refused)+len(out.Directory) == 0 && out.Skipped == 0 && out.Checkpoint == nil &&
		out.Census == nil && out.Capacity == nil && out.Watermark.IsZero() {
		return nil
	}
	if err := b.Way.Out.Send(ctx, out); err != nil {
		return fmt.Errorf("%w: %w", ErrDaemon, err)
	}
	return nil
}

// Close writes down what the daemon has, and closes the journal.
func (b *Tracker[E]) Close() error { return errors.Join(b.putNoted(nil), b.Journal.Close()) }
