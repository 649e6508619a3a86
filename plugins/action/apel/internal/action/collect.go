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

// records gives every record of a site that stopped in the month, once: a record that
// several questions find is taken from the first.
func (a *Action) records(ctx context.Context, data reader, s site, m month.Month, take func(*record.Record) error) error {
	var before []claim
	for _, key := range a.config.siteMeta {
		for _, id := range s.ids {
			for r, err := range data.Records(ctx, question(key, id, m.Start(), m.End())) {
				if err != nil {
					return fmt.Errorf("records of %s=%s in %s: %w", key, id, m, err)
				}
				if slices.ContainsFunc(before, func(c claim) bool { return c.holds(&r) }) {
					continue
				}
				if err := take(&r); err != nil {
					return err
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
	examples []string // of them
}

// maxExamples is how many records that lack something are listed for a month.
const maxExamples = 100

func (t *tally) leave(r *record.Record, err error) {
	t.left++
	if len(t.examples) < maxExamples {
		t.examples = append(t.examples, fmt.Sprintf("%s (%s)", r.ID, strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
}

// collect adds up a site's month. Each job that counts is given to each, which may be
// nil.
func (a *Action) collect(ctx context.Context, data reader, s site, m month.Month, each func(*month.Job)) (*tally, error) {
	t := &tally{sums: month.New(s.name, m)}
	err := a.records(ctx, data, s, m, func(r *record.Record) error {
		if seconds, ok := r.Runtime(); ok && seconds <= 0 {
			t.idle++
			return nil
		}
		j, err := a.config.fields.Job(s.name, r)
		if err == nil {
			err = t.sums.Add(j)
		}
		if err != nil {
			t.leave(r, err)
			return nil
		}
		if each != nil {
			each(j)
		}
		return nil
	})
	return t, err
}

// notes tell what is not in the messages.
func (t *tally) notes(s site, m month.Month) []string {
	var out []string
	if t.left > 0 {
		text := fmt.Sprintf("%s %s: %d records are left out: %s", s.name, m, t.left, strings.Join(t.examples, ", "))
		if int(t.left) > len(t.examples) {
			text += fmt.Sprintf(" and %d more", int(t.left)-len(t.examples))
		}
		out = append(out, text)
	}
	if t.idle > 0 {
		out = append(out, fmt.Sprintf("%s %s: %d records that ran for less than a second are not reported", s.name, m, t.idle))
	}
	return out
}
