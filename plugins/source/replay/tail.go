package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const maxBatch = 1 << 20 // bytes of lines in a batch

// tail reads a file of JSON lines.
type tail struct {
	path   string
	batch  int
	fields bool     // the mapping wants the whole line
	keys   []string // of lines that the mapping names, as fields.key
	now    func() time.Time
}

// countJobs implements the second route, which a file does not have.
func (t *tail) countJobs(context.Context, sdk.Window) (int64, error) {
	return 0, fmt.Errorf("%s: %w: a file has no second route", t.path, errors.ErrUnsupported)
}

func (t *tail) collectJobs(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	at, err := readCheckpoint(from.Checkpoint)
	if err != nil {
		return err
	}
	r := &reading{tail: t, out: out, columns: jobAttributes(), at: at}
	if from.Window != nil {
		r.again, r.keep = true, inWindow(from.Window)
		return r.readEverything(ctx)
	}
	if from.Rewind > 0 && at.lastTime() != (time.Time{}) {
		back := &reading{tail: t, out: out, columns: r.columns, again: true, keep: notBefore(at.lastTime().Add(-from.Rewind))}
		if err := back.readEverything(ctx); err != nil {
			return err
		}
	}
	return r.readOnward(ctx)
}

// keeper says whether a job of that time is wanted.
type keeper func(time.Time) bool

func inWindow(w *sdk.Window) keeper { return w.Holds }

func notBefore(t time.Time) keeper { return func(x time.Time) bool { return !x.Before(t) } }

// reading is one Collect.
type reading struct {
	*tail
	out     *sdk.Stream
	columns []sdk.Attribute
	at      checkpoint
	keep    keeper // nil: all
	again   bool   // what was read before is read again: the checkpoint stays
}

// readEverything reads the older files and the current one, for a window or a rewind.
func (r *reading) readEverything(ctx context.Context) error {
	w, err := r.newLog().Read(time.Time{}, r.now())
	if err != nil {
		return err
	}
	defer w.Close()
	return r.sendWalk(ctx, w)
}

func (t *tail) newLog() *follow.Log { return &follow.Log{Path: t.path, Fresh: true} }

// readOnward reads what has come since the checkpoint.
func (r *reading) readOnward(ctx context.Context) error {
	w, err := r.newLog().Follow(r.at.State, r.now())
	if errors.Is(err, fs.ErrNotExist) && r.at.Known() {
		return nil // it may be gone between two steps of a rotation
	}
	if err != nil {
		return err
	}
	defer w.Close()
	if lost := w.Lost(); lost != nil {
		gap := sdk.Gap{From: r.at.lastTime(), To: r.now(), Reason: lost.Reason}
		if err := r.out.Send(ctx, sdk.Batch{Gaps: []sdk.Gap{gap}}); err != nil {
			return err
		}
	}
	return r.sendWalk(ctx, w)
}

// sendWalk sends the lines of a walk.
func (r *reading) sendWalk(ctx context.Context, w *follow.Walk) error {
	before := r.at.State
	for more := true; more; {
		sdk.Alive(ctx)
		batch, err := r.fillBatch(w)
		if more = err == nil; err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !r.again {
			if r.at.State, err = w.State(); err != nil {
				return err
			}
			batch.Checkpoint = r.at.encodeCheckpoint()
		}
		if len(batch.Jobs)+len(batch.Refused) == 0 && (r.again || r.at.Offset == before.Offset && r.at.Inode == before.Inode) {
			continue
		}
		if err := r.out.Send(ctx, batch); err != nil {
			return err
		}
		before = r.at.State
	}
	return nil
}

// fillBatch reads lines until a batch is full; io.EOF when there are no more.
func (r *reading) fillBatch(w *follow.Walk) (b sdk.Batch, err error) {
	for size := int64(0); len(b.Jobs)+len(b.Refused) < r.batch && size < maxBatch; {
		line, err := w.Next()
		if err != nil {
			return b, err
		}
		if !r.addLine(&b, line) {
			w.Back(line)
			return b, nil
		}
		size += line.Size
	}
	return b, nil
}

// addLine takes one line into the batch. It refuses to when the batch has a line of
// the same run that was no job: within a batch, jobs come before those, and the
// run would stay in quarantine.
func (r *reading) addLine(b *sdk.Batch, line follow.Line) bool {
	text := bytes.TrimSpace(line.Text)
	if len(text) == 0 {
		return true
	}
	if line.Long() {
		b.Refused = append(b.Refused, sdk.Refused{Message: fmt.Sprintf("a line of %d bytes; at most %d are read", line.Size, follow.MaxLine), Raw: bytes.Clone(text)})
		return true
	}
	job, err := parseJob(text, r.columns, r.keys, r.fields)
	if err != nil {
		b.Refused = append(b.Refused, sdk.Refused{Run: job.Run, Message: err.Error(), Raw: bytes.Clone(text)})
		return true
	}
	if slices.ContainsFunc(b.Refused, func(x sdk.Refused) bool { return x.Run == job.Run }) {
		return false
	}
	when := job.Values[colStop].Time()
	if !job.Ended {
		when = job.Values[colStart].Time()
	}
	r.at.noteSeen(when)
	if r.keep == nil || r.keep(when) {
		b.Jobs = append(b.Jobs, job)
	}
	return true
}
