package web

import (
	"context"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// How many names of a key have paints of their own, on all pages: no more have different
// ones; for how long their list holds, how long a page waits for it, and how many keys are
// remembered.
const (
	mostPainted = 35
	paintedFor  = 10 * time.Minute
	paintedWait = 300 * time.Millisecond
	keysPainted = 100
)

// painted are the names that keys have, as far as they are few.
type painted struct {
	mu   sync.Mutex
	keys map[string]paintedKey
}

type paintedKey struct {
	names []string // nil: they are too many, or not known in time
	at    time.Time
}

// paints are those of names that are drawn together. The names of one key have the same
// paints on all pages while there are few of them; those of more differ only within a page.
func (p *Pages) paints(ctx context.Context, by, names []string) []report.Paint {
	if len(by) != 1 {
		return report.Paints(names)
	}
	all := p.allNames(ctx, by[0])
	if all == nil {
		return report.Paints(names)
	}
	paint, used := map[string]report.Paint{}, map[string]int{}
	for i, one := range report.Paints(all) {
		paint[all[i]] = one
		used[one.Colour]++
	}
	out := make([]report.Paint, len(names))
	for i, name := range names {
		one, ok := paint[name]
		if !ok { // it is newer than the list, or stands for several
			colour := report.Colour(name)
			one = report.Paint{Colour: colour, Pattern: used[colour]}
			paint[name], used[colour] = one, used[colour]+1
		}
		out[i] = one
	}
	return out
}

// allNames are the names that a key ever had; nil where they are many. They decide about
// colours alone, so they are those of all records, whoever asks.
func (p *Pages) allNames(ctx context.Context, key string) []string {
	p.painted.mu.Lock()
	known, ok := p.painted.keys[key]
	p.painted.mu.Unlock()
	if !ok || p.now().Sub(known.at) > paintedFor {
		known = paintedKey{p.askNames(ctx, key), p.now()}
		p.painted.mu.Lock()
		if p.painted.keys == nil || len(p.painted.keys) >= keysPainted {
			p.painted.keys = map[string]paintedKey{}
		}
		p.painted.keys[key] = known
		p.painted.mu.Unlock()
	}
	return known.names
}

func (p *Pages) askNames(ctx context.Context, key string) []string {
	ctx, cancel := context.WithTimeout(access.With(ctx, access.Daemon()), paintedWait)
	defer cancel()
	answer, err := p.sums(ctx, v1.UsageQuery{From: "1970-01-01", By: key, Measure: "records", Top: mostPainted})
	if err != nil {
		return nil
	}
	names := []string{}
	for g := range answer.Groups {
		if answer.Groups[g].Others > 0 {
			return nil
		}
		names = append(names, groupName(&answer.Groups[g]))
	}
	return names
}
