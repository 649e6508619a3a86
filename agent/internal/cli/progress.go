package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/hcl"
)

// bar is a line on a terminal that tells how far something has come. Elsewhere
// it is nothing.
type bar struct {
	w     io.Writer
	on    bool
	now   func() time.Time
	begin map[string]start
}

// start is when, and where, something was first seen.
type start struct {
	at   time.Time
	done int64
}

func newBar(w io.Writer, on bool, now func() time.Time) *bar {
	return &bar{w: w, on: on, now: now, begin: map[string]start{}}
}

func (b *bar) showProgress(name string, p *control.Progress, c control.Counts) {
	if !b.on {
		return
	}
	fmt.Fprintf(b.w, "\r\x1b[K%s", b.progressLine(name, p, c))
}

func (b *bar) clearLine() {
	if b.on {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

const width = 24

// progressLine is a bar and the time left where the total is known.
func (b *bar) progressLine(name string, p *control.Progress, c control.Counts) string {
	if p == nil || p.Total <= 0 {
		return fmt.Sprintf("%s  %s", name, c)
	}
	begin, seen := b.begin[name]
	if !seen {
		begin = start{b.now(), p.Done}
		b.begin[name] = begin
	}
	part := min(1, max(0, float64(p.Done)/float64(p.Total)))
	full := int(part * width)
	left := ""
	if gone := p.Done - begin.done; gone > 0 && p.Done < p.Total {
		eta := time.Duration(float64(b.now().Sub(begin.at)) / float64(gone) * float64(p.Total-p.Done))
		left = fmt.Sprintf(", %s left", eta.Round(time.Second))
	}
	return fmt.Sprintf("%s  [%s%s] %3.0f%%  %d/%d %s%s%s  %s", name, strings.Repeat("#", full), strings.Repeat(".", width-full), part*100, p.Done, p.Total, p.Unit, prefixIfSet(" at ", p.At), left, c)
}

// parseMoment reads a time: a day, RFC 3339, or a span back from now.
func parseMoment(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t.UTC(), nil
	}
	if d, err := hcl.ParseDuration(s); err == nil {
		return now.Add(-d).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write a day like 2026-01-31, RFC 3339 like 2026-01-31T12:00:00Z, or a span back like 48h", s)
}
