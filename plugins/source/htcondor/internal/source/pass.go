package source

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"io/fs"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/job"
)

const (
	batchRuns    = 2000
	batchBytes   = 8 << 20
	batchEntries = 20_000 // also of those that are not runs
)

// pass is one Collect.
type pass struct {
	*Source
	follow.Pass
	checkpoint checkpoint
	began      time.Time
	said       *runs // that the history told of, where all of a time is sent again

	ad     classad.Ad  // that was read last
	run    *job.Job    // of the ad
	values *job.Lender // of the runs in the batch
}

// reading is how ads are read.
type reading struct {
	follow.Reading
	schedd *schedd   // whose history or epochs they are; nil: of any
	until  time.Time // what the schedd was done with since waits; zero: nothing waits
	bare   bool      // the ads need no banners
	epoch  bool      // of ads without banners: they are epochs

	// Said are runs that the history tells of. Epochs of them are left out.
	said *runs
}

// newReading is how ads of a schedd are read, whose reach is moved.
func (p *pass) newReading(at *schedd, of kind, reach *reach) *reading {
	r := &reading{schedd: at}
	r.Seen = func(end time.Time) { reach.Saw(end, p.began) }
	if of == history {
		r.until = at.readUntil(p.began)
	}
	return r
}

// runs is a set of runs.
type runs struct {
	seed maphash.Seed
	set  map[uint64]struct{}
}

func newRuns() *runs { return &runs{seed: maphash.MakeSeed(), set: map[uint64]struct{}{}} }

func (r *runs) addRun(id string) { r.set[maphash.String(r.seed, id)] = struct{}{} }

func (r *runs) hasRun(id string) bool {
	_, ok := r.set[maphash.String(r.seed, id)]
	return ok
}

// attempts at a file that changes under our hands.
const attempts = 3

// followSchedds sends what all schedds have written since the checkpoint: first the epochs, then
// the history, which has the last word on the last run of each job. The history of a schedd
// whose epochs could not be read waits for the next pass; so does a job that ends in
// between, which is in the history read before its epoch is.
func (p *pass) followSchedds(ctx context.Context) error {
	behind := map[*schedd]bool{} // epochs could not be read
	unread := false              // neither could those of some file, which may be anyone's
	err := p.forEachSchedd(ctx, func(at *schedd) error {
		err := p.followKind(ctx, at, epochs)
		behind[at] = err != nil
		unread = unread || err != nil && at.client == nil
		return err
	})
	if ctx.Err() != nil {
		return err
	}
	all := func(time.Time) bool { return true }
	return errors.Join(err, p.forEachSchedd(ctx, func(at *schedd) (err error) {
		if !behind[at] && (at.hasEpochs() || !unread) {
			err = p.followKind(ctx, at, history)
		}
		return errors.Join(err, p.sendOpenRuns(ctx, at, all))
	}))
}

func (p *pass) followKind(ctx context.Context, at *schedd, of kind) error {
	if at.client != nil {
		return p.askFor(ctx, at, of)
	}
	return errors.Join(p.sendFiles(ctx, at, of), p.sendFolder(ctx, at, of))
}

func (p *pass) sendFiles(ctx context.Context, at *schedd, of kind) error {
	if at.logs[of].Path == "" {
		return nil
	}
	for n := 1; ; n++ {
		err := p.sendFilesOnce(ctx, at, of)
		if errors.Is(err, fs.ErrNotExist) && at.optional[of] {
			return nil
		}
		if !errors.Is(err, follow.ErrChanged) || n == attempts {
			return err
		}
	}
}

func (p *pass) sendFilesOnce(ctx context.Context, at *schedd, of kind) error {
	reach := p.checkpoint.Schedds[at.name]
	before := reach.logState(of)
	w, err := at.logs[of].Follow(before, p.began)
	if err != nil {
		return err
	}
	defer w.Close()
	p.WarnClosed(w)
	r := p.newReading(at, of, &reach)
	if lost := w.Lost(); lost != nil {
		p.log.Error("entries of a file were not found again", "schedd", at.name, "reason", lost.Reason,
			"remedy", "increase MAX_HISTORY_ROTATIONS; ads can be brought back with import")
		r.Gap = &sdk.Gap{From: reach.Last(), To: p.began, Reason: lost.Reason}
	}
	r.Mark = func() ([]byte, error) {
		s, err := w.State()
		if err != nil {
			return nil, err
		}
		reach.setLog(of, s)
		return p.checkpoint.withReach(at.name, reach).encodeVersioned(), nil
	}
	r.Moved = func() bool {
		now := reach.logState(of)
		return before.Inode != now.Inode || (before.Before == nil) != (now.Before == nil)
	}
	r.Sent = func() { p.checkpoint, before = p.checkpoint.withReach(at.name, reach), reach.logState(of) }
	return p.sendWalk(ctx, w, r)
}

// skew is how far the clock of a schedd, which says when a run ended, may be ahead of
// that which says when a file was changed.
const skew = 24 * time.Hour

// edge is how far the ends that an epoch and the history give one run may be apart.
const edge = time.Hour

// resendWindow sends the runs again that ended at since or later and that keep wants. The
// history comes first here: nothing is kept for the next pass, so what it has said is
// remembered.
func (p *pass) resendWindow(ctx context.Context, at *schedd, since time.Time, keep func(time.Time) bool) error {
	r := &reading{Reading: follow.Reading{Keep: keep}, schedd: at, said: p.said}
	if at.client != nil {
		return p.askAgain(ctx, at, since, r)
	}
	for _, of := range []kind{history, epochs} {
		if at.logs[of].Path == "" {
			continue
		}
		w, err := at.logs[of].Read(since.Add(-skew), p.began)
		if errors.Is(err, fs.ErrNotExist) && at.optional[of] {
			continue
		}
		if err != nil {
			return err
		}
		err = p.sendWalk(ctx, w, r)
		w.Close()
		if err != nil {
			return err
		}
	}
	return errors.Join(p.folderAgain(ctx, at, history, since, r), p.folderAgain(ctx, at, epochs, since, r))
}

// rewindSchedd sends again what ended less than so long before the checkpoint.
func (p *pass) rewindSchedd(ctx context.Context, at *schedd, back time.Duration) error {
	reach := p.checkpoint.Schedds[at.name]
	if reach.At == 0 {
		return nil
	}
	since := reach.Last().Add(-back)
	return p.resendWindow(ctx, at, since, func(end time.Time) bool { return !end.Before(since) })
}

// importFiles reads the files of an import, once.
func (p *pass) importFiles(ctx context.Context, from sdk.Start) error {
	r := new(reading)
	mark := func(at *follow.Imported) []byte { return checkpoint{Import: at}.encodeVersioned() }
	of := follow.Import{Log: &follow.Log{Banner: classad.Banner}, Files: p.config.imports, At: p.checkpoint.Import, Mark: mark}
	return p.ReadImport(ctx, from, of, &r.Reading, func(w *follow.Walk) error { return p.fillBatch(w, r) })
}

// sendWalk sends the entries of a walk.
func (p *pass) sendWalk(ctx context.Context, w *follow.Walk, r *reading) error {
	return p.Read(ctx, w, &r.Reading, func() error { return p.fillBatch(w, r) })
}

// fillBatch reads entries until the batch is full; io.EOF when no others are there now.
func (p *pass) fillBatch(w *follow.Walk, r *reading) error {
	for !p.Full() {
		line, err := w.Next()
		if err != nil {
			return err
		}
		verdict := taken
		if line.Long() {
			p.refuseLong(line, r)
		} else {
			r.bare = len(p.config.imports) > 0 && isJobHistory(w.Path())
			verdict = p.addEntry(string(line.Text), w.Offset()-line.Size, r)
		}
		switch verdict {
		case nextBatch:
			w.Back(line)
			return nil
		case nextPass:
			w.Back(line)
			return io.EOF
		case taken:
			p.Took(line.Size)
		}
	}
	return nil
}
