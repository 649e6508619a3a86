package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/month"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// recordsQuery asks for the records of one id of a site that stopped in a time, also for those
// that are in an archive: where that cannot be read, the answer is an error.
func recordsQuery(key, id string, from, to time.Time) *v1.ListRecordsQuery {
	return &v1.ListRecordsQuery{
		Open:     new(false),
		Archived: new(true),
		StopTime: v1.TimeTest{Gte: v1.Time{Time: from}, Lt: v1.Time{Time: to}},
		Meta:     map[string]v1.MetaTest{key: {C: []string{id}}},
	}
}

// claim is a meta key and a value by which a record belongs to a site.
type claim struct{ key, id string }

func (c claim) holdsRecord(r *record.Record) bool { return slices.Contains(r.Meta.Get(c.key), c.id) }

// span is a time, its end left out.
type span struct{ from, to time.Time }

func monthSpan(m month.Month) span { return span{m.Start(), m.End()} }

// daySpans are those of a month up to now.
func daySpans(m month.Month, now time.Time) []span {
	var out []span
	for d := m.Start(); d.Before(m.End()) && !d.After(now); d = d.AddDate(0, 0, 1) {
		out = append(out, span{d, d.AddDate(0, 0, 1)})
	}
	return out
}

// readRecords gives every record of a site that stopped in the time, once: a record that
// several questions find is taken from the first.
func (a *Action) readRecords(ctx context.Context, data reader, s site, w span, take func(*record.Record)) error {
	var before []claim
	for _, key := range a.config.siteMeta {
		for _, id := range s.ids {
			for r, err := range data.Records(ctx, recordsQuery(key, id, w.from, w.to)) {
				if err != nil {
					return fmt.Errorf("records of %s=%s from %s on: %w", key, id, w.from.Format(time.DateOnly), err)
				}
				if !slices.ContainsFunc(before, func(c claim) bool { return c.holdsRecord(&r) }) {
					take(&r)
				}
			}
			before = append(before, claim{key, id})
		}
	}
	return nil
}

// monthCounts is what came of the records of a site and month.
type monthCounts struct {
	sums    *month.Sums
	idle    int64 // records without runtime
	left    int64 // records that lack something
	listed  int64
	reasons []*reason
	unfit   map[string]*unfit // by field
	seen    map[string]bool   // message.Job.Key of the jobs of a day
}

// unfit is a field that is left out of records, since the receiver would refuse it.
type unfit struct {
	records int64
	why     string // of the first
}

func (t *monthCounts) dropField(u message.Unfit) {
	if t.unfit == nil {
		t.unfit = map[string]*unfit{}
	}
	if t.unfit[u.Field] == nil {
		t.unfit[u.Field] = &unfit{why: cutText(u.Err.Error(), maxReason)}
	}
	t.unfit[u.Field].records++
}

// reason is why records are left out, with their ids.
type reason struct {
	text string
	ids  []string
}

// How much is listed for a month.
const (
	maxListed  = 1000
	maxReasons = 10
	maxReason  = 200 // bytes
	maxNote    = 500 // bytes, a little less than what the daemon keeps of a note
)

func (t *monthCounts) leaveOut(r *record.Record, err error) {
	t.left++
	text := strings.TrimSuffix(strings.ReplaceAll(err.Error(), "\n", "; "), ".")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + " …"
	}
	i := slices.IndexFunc(t.reasons, func(one *reason) bool { return one.text == text })
	switch {
	case t.listed >= maxListed || i < 0 && len(t.reasons) >= maxReasons:
		return
	case i < 0:
		i = len(t.reasons)
		t.reasons = append(t.reasons, &reason{text: text})
	}
	t.listed++
	t.reasons[i].ids = append(t.reasons[i].ids, r.ID)
}

// collectRecords adds the records of a time to what there is of a site's month. Each job
// that counts is given to each.
func (p *planner) collectRecords(ctx context.Context, s site, w span, t *monthCounts, each func(*month.Job)) error {
	return p.readRecords(ctx, p.data, s, w, func(r *record.Record) {
		if seconds, ok := r.Runtime(); ok && seconds <= 0 {
			t.idle++
			return
		}
		j, err := p.config.fields.Job(s.name, r)
		if !p.config.described {
			j.InfrastructureDescription = describeInfrastructure(s, r)
		}
		if err == nil {
			err = p.countJob(t, j)
		}
		if err != nil {
			t.leaveOut(r, err)
			return
		}
		each(j)
	})
}

// countJob adds a job to the sums, without the fields that do not fit. A job that the
// receiver would refuse, or take for another one of its day, is an error.
func (p *planner) countJob(t *monthCounts, j *month.Job) error {
	dropped := j.DropUnfit(cmp.Or(p.config.jobs, message.Summaries))
	key := ""
	if p.config.jobs != "" {
		j.Part = false // each message of a job is one to the receiver
		if err := j.Check(p.now); err != nil {
			return err
		}
		if key = j.Key(); t.seen[key] {
			return errors.New("duplicate LocalJobId and EndTime: the receiver would replace another job")
		}
	}
	if err := t.sums.Add(j); err != nil {
		return err
	}
	if key != "" {
		t.seen[key] = true
	}
	for _, u := range dropped {
		t.dropField(u)
	}
	return nil
}

// unknown and longestCE are of the parts of a description.
const (
	unknown   = "UNKNOWN"
	longestCE = 80
)

// describeInfrastructure is the InfrastructureDescription of a record where the configuration sets
// none.
func describeInfrastructure(s site, r *record.Record) string {
	collector := unknown
	if values := r.Meta.Get("collector_type"); len(values) > 0 {
		collector = values[0]
	}
	return "BURSAR-" + s.ce + "-" + collector
}

// notesOf tell what is not in the messages, in short and by id.
func (t *monthCounts) notesOf(s site, m month.Month) (heads, left []string) {
	name := s.name + " " + m.String()
	if t.idle > 0 {
		heads = append(heads, fmt.Sprintf("%s: %d records that ran for less than a second are not reported", name, t.idle))
	}
	for _, field := range slices.Sorted(maps.Keys(t.unfit)) {
		heads = append(heads, fmt.Sprintf("%s: %d records are reported without %s, which the receiver would refuse: %s", name, t.unfit[field].records, field, t.unfit[field].why))
	}
	if t.left == 0 {
		return heads, nil
	}
	heads = append(heads, fmt.Sprintf("%s: %d records are left out", name, t.left))
	for _, r := range t.reasons {
		left = append(left, joinIDs(fmt.Sprintf("%s: left out: %s: ", name, r.text), r.ids)...)
	}
	if more := t.left - t.listed; more > 0 {
		left = append(left, fmt.Sprintf("%s: left out: %d more, which are not listed", name, more))
	}
	return heads, left
}

// joinIDs joins ids to notes that are not too long, each of which begins so.
func joinIDs(begin string, ids []string) []string {
	var out []string
	for _, id := range ids {
		last := len(out) - 1
		if last < 0 || len(out[last])+len(id) > maxNote {
			out = append(out, begin+id)
			continue
		}
		out[last] += ", " + id
	}
	return out
}
