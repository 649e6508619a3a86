package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// bar shows on a terminal how far a transfer is and how long it will take; where
// there is no terminal it shows nothing.
type bar struct {
	p     *Program
	what  string
	total int64 // 0: not known yet
	done  int64
	began time.Time
	shown time.Time
	// amount writes a number of what is counted; nil: of bytes.
	amount func(int64) string
	note   string // behind all
}

// barEvery is how often the bar is drawn.
const barEvery = 200 * time.Millisecond

func (p *Program) newBar(what string, total int64) *bar {
	return &bar{p: p, what: what, total: total, began: time.Now()}
}

func (b *bar) advanceBy(n int) {
	b.done += int64(n)
	b.draw()
}

// showJobs draws how far a source is; nil is unknown.
func (b *bar) showJobs(records int64, at *bursarv1.Progress) {
	if at != nil {
		b.done, b.total = at.GetDone(), at.GetTotal()
		if unit := at.GetUnit(); unit != "bytes" {
			b.amount = func(n int64) string { return fmt.Sprintf("%d %s", n, printable(unit)) }
		}
		b.note = fmt.Sprintf("  %d records", records)
	}
	b.draw()
}

// draw shows the bar, unless it was shown a moment ago.
func (b *bar) draw() {
	if !b.p.Color || time.Since(b.shown) < barEvery {
		return
	}
	b.shown = time.Now()
	fmt.Fprint(b.p.Stderr, "\r"+b.barLine(time.Since(b.began))+"\x1b[K")
}

// barLine is the text of the bar after some time.
func (b *bar) barLine(passed time.Duration) string {
	amount := b.amount
	if amount == nil {
		amount = func(n int64) string { return view.Size(n) }
	}
	speed := float64(b.done) / max(passed.Seconds(), 0.001)
	text := fmt.Sprintf("%s %s", b.what, amount(b.done))
	if b.total > 0 {
		text = fmt.Sprintf("%s %3d%%  %s of %s", b.what, min(100, b.done*100/b.total), amount(b.done), amount(b.total))
	}
	text += fmt.Sprintf("  %s/s", amount(int64(speed)))
	if b.total > b.done && speed > 0 {
		left := time.Duration(float64(b.total-b.done) / speed * float64(time.Second))
		text += fmt.Sprintf("  %s left", left.Round(time.Second))
	}
	return text + b.note
}

// clearLine removes the bar.
func (b *bar) clearLine() {
	if b.p.Color && !b.shown.IsZero() {
		fmt.Fprint(b.p.Stderr, "\r\x1b[K")
	}
}

// newline ends the bar's line for a message in between, which may come from
// another goroutine.
func (b *bar) newline() string {
	if b.p.Color {
		return "\n"
	}
	return ""
}

// wrapReader returns a reader that counts what is read through it, and ends with ctx.
func (b *bar) wrapReader(ctx context.Context, r io.Reader) io.Reader { return barred{ctx, b, r} }

type barred struct {
	ctx context.Context
	bar *bar
	r   io.Reader
}

// Read implements io.Reader.
func (r barred) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	r.bar.advanceBy(n)
	return n, err
}
