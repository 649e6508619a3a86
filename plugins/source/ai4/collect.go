package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// checkpoint says how many of the runs were sent. All files are read again each
// time, since what a run became may stand in the last of them.
type checkpoint struct {
	Format int    `json:"format"`
	Files  string `json:"files"` // their digest: of others, all runs are sent
	Sent   int    `json:"sent"`
}

func (c *checkpoint) encodeFormat() []byte {
	c.Format = 1
	return sdk.EncodeCheckpoint(c)
}

// Check says what no plugin has written.
func (c *checkpoint) Check() error {
	if c.Sent < 0 {
		return fmt.Errorf("%d is not a number of runs", c.Sent)
	}
	return nil
}

func readCheckpoint(data []byte) (c checkpoint, err error) {
	err = sdk.DecodeCheckpoint(data, 1, &c)
	return c, err
}

// perBatch is how many runs are handed on at once, and perSay how many bytes are
// read between two words on the progress.
const (
	perBatch = 1000
	perSay   = 4 << 20
)

// Collect implements sdk.Source.
func (s *source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	files, err := findFiles(s.Import)
	if err != nil {
		return err
	}
	at, err := readCheckpoint(from.Checkpoint)
	if err != nil {
		return err
	}
	if d := filesDigest(files); at.Files != d || from.Rewind > 0 || from.Window != nil {
		at = checkpoint{Files: d}
	}
	c := &collection{source: s, out: out, window: from.Window, history: newHistory()}
	for _, f := range files {
		c.total += f.size
	}
	for i := range files {
		sdk.Alive(ctx)
		if err := c.readFile(ctx, &files[i]); err != nil {
			return err
		}
	}
	return c.sendRuns(ctx, at)
}

// collection is one reading of all files.
type collection struct {
	*source

	out     *sdk.Stream
	window  *sdk.Window
	history *history
	batch   sdk.Batch // what is not sent yet beside runs

	done, total, said int64 // bytes
}

// readFile takes a file into the history. What does not fit in it is refused.
func (c *collection) readFile(ctx context.Context, f *file) error {
	name := filepath.Base(f.path)
	c.done += f.size
	if f.at.IsZero() {
		c.refusePart(name, bad{err: fmt.Errorf("the name says no time, as in 2025-03-01T08:00:30.json; nothing of it was read")})
		return c.sendProgress(ctx, name)
	}
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	c.history.times = append(c.history.times, f.at)
	err = readSnapshot(in, c.zone, func(s *sighting) { c.history.addSighting(f.at, s) }, func(b bad) { c.refusePart(name, b) })
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return c.sendProgress(ctx, name)
}

// refusePart hands on a part of a file that could not be read. Its run is the place,
// so that it replaces itself when it is read again.
func (c *collection) refusePart(name string, b bad) {
	place := name
	if b.where != "" {
		place += ": " + b.where
	}
	c.batch.Refused = append(c.batch.Refused, sdk.Refused{Run: place, Message: fmt.Sprintf("%s: %v", place, b.err), Raw: b.raw})
}

// sendProgress sends what there is to say while files are read.
func (c *collection) sendProgress(ctx context.Context, name string) error {
	if c.done-c.said < perSay && len(c.batch.Refused) < perBatch && c.done < c.total {
		return nil
	}
	c.said = c.done
	c.batch.Progress = &sdk.Progress{Done: c.done, Total: c.total, Unit: "bytes", At: name}
	err := c.out.Send(ctx, c.batch)
	c.batch = sdk.Batch{}
	return err
}

// sendRuns sends the runs behind the checkpoint, and at the end what is said once.
func (c *collection) sendRuns(ctx context.Context, at checkpoint) error {
	runs := c.history.sortedRuns()
	for first := true; first || at.Sent < len(runs); first = false {
		b := sdk.Batch{Progress: &sdk.Progress{Done: c.total, Total: c.total, Unit: "bytes"}}
		for ; at.Sent < len(runs) && len(b.Jobs) < perBatch; at.Sent++ {
			r := runs[at.Sent]
			if stop, _ := r.endAndState(); inWindow(c.window, stop) {
				b.Jobs = append(b.Jobs, r.toJob(c.history.createTime(r), c.isExcluded(r)))
			}
		}
		if at.Sent >= len(runs) {
			c.addSummary(&b)
		}
		if c.window == nil {
			b.Checkpoint = at.encodeFormat()
		}
		if err := c.out.Send(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// addSummary adds the jobs that no snapshot saw running, and where snapshots are
// missing.
func (c *collection) addSummary(b *sdk.Batch) {
	if c.window != nil {
		return
	}
	b.Skipped = int64(len(c.history.waiting))
	for _, g := range c.history.snapshotGaps() {
		b.Gaps = append(b.Gaps, sdk.Gap{From: g[0], To: g[1], Reason: fmt.Sprintf(
			"there is no snapshot for %s; what began and ended between is not known", g[1].Sub(g[0]).Round(time.Second))})
	}
}
