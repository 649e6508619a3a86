package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const (
	maxLine  = 1 << 20 // bytes of a line that can be a job
	maxBatch = 1 << 20 // bytes of lines in a batch
)

// tail reads a file of JSON lines.
type tail struct {
	path   string
	batch  int
	fields bool // the mapping wants the whole line
	now    func() time.Time
}

func (t *tail) collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	at, err := readCheckpoint(from.Checkpoint)
	if err != nil {
		return err
	}
	r := &reading{tail: t, out: out, columns: attributes(), at: at}
	if from.Window != nil {
		r.keep = inWindow(from.Window)
		return r.everything(ctx)
	}
	if from.Rewind > 0 && at.last() != (time.Time{}) {
		r.again, r.keep = true, since(at.last().Add(-from.Rewind))
	}
	return r.onward(ctx)
}

// keeper says whether a job of that time is wanted.
type keeper func(time.Time) bool

func inWindow(w *sdk.Window) keeper { return w.Holds }

func since(t time.Time) keeper { return func(x time.Time) bool { return !x.Before(t) } }

// reading is one Collect.
type reading struct {
	*tail
	out     *sdk.Stream
	columns []sdk.Attribute
	at      checkpoint
	again   bool   // read the current file from its beginning
	keep    keeper // nil: all
	window  bool
	held    *lineRead // a line that was read and not taken
}

// lineRead is what nextLine gave.
type lineRead struct {
	text []byte
	n    int
	err  error
}

// everything reads the older files and the current one, for a window.
func (r *reading) everything(ctx context.Context) error {
	r.window = true
	files, err := siblings(r.path)
	if err != nil {
		return err
	}
	for _, path := range append(files, r.path) {
		if err := r.file(ctx, path, 0, path != r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// onward reads what has come since the checkpoint.
func (r *reading) onward(ctx context.Context) error {
	known := r.at.Length > 0 // a file that was there may be gone between two steps of a rotation
	same, err := r.at.matches(r.path)
	if err != nil && !(known && errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	if !same {
		if err := r.rotated(ctx); err != nil {
			return err
		}
	}
	offset := r.at.Offset
	if r.again {
		offset = 0
	}
	err = r.file(ctx, r.path, offset, false)
	if errors.Is(err, fs.ErrNotExist) && known {
		return nil
	}
	return err
}

// rotated reads what is left of the file that was current, and those that came
// between it and the one that is. What cannot be found again is a gap.
func (r *reading) rotated(ctx context.Context) error {
	files, err := siblings(r.path)
	if err != nil {
		return err
	}
	for i, path := range files {
		same, err := r.at.matches(path)
		if err != nil || !same {
			continue
		}
		if err := r.file(ctx, path, r.at.Offset, true); err != nil {
			return err
		}
		for _, newer := range files[i+1:] {
			if err := r.file(ctx, newer, 0, true); err != nil {
				return err
			}
		}
		r.at = checkpoint{At: r.at.At}
		return nil
	}
	return r.lost(ctx)
}

// lost reports that lines may be missing, and begins with the current file.
func (r *reading) lost(ctx context.Context) error {
	gap := sdk.Gap{From: r.at.last(), To: r.now(), Reason: fmt.Sprintf(
		"%s was replaced, and the file that was read up to byte %d is not beside it any more", r.path, r.at.Offset)}
	r.at = checkpoint{At: r.at.At}
	return r.send(ctx, sdk.Batch{Gaps: []sdk.Gap{gap}})
}

// file reads the lines of a file from an offset on. In a closed file the last
// line needs no end.
func (r *reading) file(ctx context.Context, path string, offset int64, closed bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	if r.at.Offset = offset; offset == 0 {
		r.at.Length, r.at.Head = 0, "" // of the file before
	}
	r.held = nil
	lines := bufio.NewReaderSize(f, 64<<10)
	for more := true; more; {
		var batch sdk.Batch
		batch, more, err = r.fill(lines, closed)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if err := r.at.look(f); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if empty(&batch) && !r.moved(offset) {
			return nil
		}
		if err := r.send(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) moved(offset int64) bool { return r.at.Offset != offset }

func empty(b *sdk.Batch) bool { return len(b.Jobs)+len(b.Refused)+len(b.Gaps) == 0 }

func (r *reading) send(ctx context.Context, b sdk.Batch) error {
	if !r.window {
		b.Checkpoint = r.at.encode()
	}
	return r.out.Send(ctx, b)
}

// fill reads lines until a batch is full or the file has no more.
func (r *reading) fill(lines *bufio.Reader, closed bool) (b sdk.Batch, more bool, err error) {
	for size := 0; len(b.Jobs)+len(b.Refused) < r.batch && size < maxBatch; {
		line := r.next(lines)
		end := errors.Is(line.err, io.EOF)
		if line.err != nil && !end {
			return b, false, line.err
		}
		if whole := !end || closed && line.n > 0; whole {
			if !r.line(&b, line.text, line.n) {
				r.held = &line
				return b, true, nil
			}
			r.at.Offset += int64(line.n)
			size += line.n
		}
		if end {
			return b, false, nil
		}
	}
	return b, true, nil
}

// next is the line that was held back, or else the next one.
func (r *reading) next(lines *bufio.Reader) (line lineRead) {
	if r.held != nil {
		line, r.held = *r.held, nil
		return line
	}
	line.text, line.n, line.err = nextLine(lines)
	return line
}

// nextLine reads a line with its end, and keeps of a long one only its head.
// N is its whole length.
func nextLine(r *bufio.Reader) (line []byte, n int, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		n += len(piece)
		line = append(line, piece[:min(len(piece), maxLine+1-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, n, err
		}
	}
}

// line takes one line into the batch. It refuses to when the batch has a line of
// the same run that was no job: within a batch, jobs come before those, and the
// run would stay in quarantine.
func (r *reading) line(b *sdk.Batch, line []byte, n int) bool {
	if len(bytes.TrimSpace(line)) == 0 {
		return true
	}
	if n > maxLine {
		b.Refused = append(b.Refused, sdk.Refused{Message: fmt.Sprintf("a line of %d bytes; at most %d are read", n, maxLine), Raw: line})
		return true
	}
	job, err := parse(line, r.columns, r.fields)
	if err != nil {
		b.Refused = append(b.Refused, sdk.Refused{Run: job.Run, Message: err.Error(), Raw: bytes.TrimSpace(line)})
		return true
	}
	if slices.ContainsFunc(b.Refused, func(x sdk.Refused) bool { return x.Run == job.Run }) {
		return false
	}
	when := job.Values[colStop].Time()
	if !job.Ended {
		when = job.Values[colStart].Time()
	}
	r.at.seen(when)
	if r.keep == nil || r.keep(when) {
		b.Jobs = append(b.Jobs, job)
	}
	return true
}
