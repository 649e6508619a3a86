package action

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/month"
	"github.com/bursar-accounting/bursar/proto/record"
)

// question asks for the records of one id of a site that stopped in a time.
func question(key, id string, from, to time.Time) url.Values {
	return url.Values{
		"open":                    {"false"},
		"stop_time[gte]":          {from.Format(time.RFC3339)},
		"stop_time[lt]":           {to.Format(time.RFC3339)},
		"meta[" + key + "][c][0]": {id},
	}
}

// claim is a meta key and a value by which a record belongs to a site.
type claim struct{ key, id string }

func (c claim) holds(r *record.Record) bool { return slices.Contains(r.Meta.Get(c.key), c.id) }

// span is a time, its end left out.
type span struct{ from, to time.Time }

func whole(m month.Month) span { return span{m.Start(), m.End()} }

// days are those of a month up to now.
func days(m month.Month, now time.Time) []span {
	var out []span
	for d := m.Start(); d.Before(m.End()) && !d.After(now); d = d.AddDate(0, 0, 1) {
		out = append(out, span{d, d.AddDate(0, 0, 1)})
	}
	return out
}

// records gives every record of a site that stopped in the time, once: a record that
// several questions find is taken from the first.
func (a *Action) records(ctx context.Context, data reader, s site, w span, take func(*record.Record)) error {
	var before []claim
	for _, key := range a.config.siteMeta {
		for _, id := range s.ids {
			for r, err := range data.Records(ctx, question(key, id, w.from, w.to)) {
				if err != nil {
					return fmt.Errorf("records of %s=%s from %s on: %w", key, id, w.from.Format(time.DateOnly), err)
				}
				if !slices.ContainsFunc(before, func(c claim) bool { return c.holds(&r) }) {
					take(&r)
				}
			}
			before = append(before, claim{key, id})
		}
	}
	return nil
}

// tally is what came of the records of a site and month.
type tally struct {
	sums     *month.Sums
	idle     int64    // records without runtime
	left     int64    // records that lack something
	examples []string // of them, with the reason
	others   []string // of them, by id
}

// How many records that lack something are listed for a month: the first with the
// reason, more by their ids.
const (
	maxExamples = 20
	maxOthers   = 500
	maxLine     = 800 // bytes of ids in a note
)

func (t *tally) leave(r *record.Record, err error) {
	t.left++
	switch {
	case len(t.examples) < maxExamples:
		t.examples = append(t.examples, fmt.Sprintf("%s: %s", r.ID, strings.ReplaceAll(err.Error(), "\n", "; ")))
	case len(t.others) < maxOthers:
		t.others = append(t.others, r.ID)
	}
}

// collect adds the records of a time to what there is of a site's month. Each job
// that counts is given to each.
func (p *planner) collect(ctx context.Context, s site, w span, t *tally, each func(*month.Job)) error {
	return p.records(ctx, p.data, s, w, func(r *record.Record) {
		if seconds, ok := r.Runtime(); ok && seconds <= 0 {
			t.idle++
			return
		}
		j, err := p.config.fields.Job(s.name, r)
		if err == nil && p.config.jobs != "" {
			err = j.Check(p.now)
		}
		if err == nil {
			err = t.sums.Add(j)
		}
		if err != nil {
			t.leave(r, err)
			return
		}
		each(j)
	})
}

// notes tell what is not in the messages.
func (t *tally) notes(s site, m month.Month) []string {
	var out []string
	if t.left > 0 {
		out = append(out, fmt.Sprintf("%s %s: %d records are left out", s.name, m, t.left))
		for _, e := range append(slices.Clone(t.examples), lines(t.others)...) {
			out = append(out, fmt.Sprintf("%s %s: left out: %s", s.name, m, e))
		}
		if more := int(t.left) - len(t.examples) - len(t.others); more > 0 {
			out = append(out, fmt.Sprintf("%s %s: and %d more", s.name, m, more))
		}
	}
	if t.idle > 0 {
		out = append(out, fmt.Sprintf("%s %s: %d records that ran for less than a second are not reported", s.name, m, t.idle))
	}
	return out
}

// lines joins ids to lines that are not too long.
func lines(ids []string) []string {
	var out []string
	for _, id := range ids {
		last := len(out) - 1
		if last < 0 || len(out[last])+len(id) > maxLine {
			out = append(out, id)
			continue
		}
		out[last] += ", " + id
	}
	return out
}
