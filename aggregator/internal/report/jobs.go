package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// job is a record as GET /v1/records has it. Most of the time of a report is that of decoding
// jobs, so the scores of components and the times of receipt and change stay text.
type job struct {
	v1.FullRecord

	Components []component    `json:"components"`
	Received   jsontext.Value `json:"received"`
	Changed    jsontext.Value `json:"changed"`
}

// component is a component of a job; its scores stay text.
type component struct {
	v1.FullComponent

	Scores jsontext.Value `json:"scores"`
}

// listJobs yields the records of a query.
func listJobs(ctx context.Context, r v1.API, q *v1.ListRecordsQuery) iter.Seq2[*job, error] {
	return func(yield func(*job, error) bool) {
		for text, err := range r.ListRecordsTexts(ctx, q) {
			j := &job{}
			if err == nil {
				err = json.Unmarshal(text, j, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
			}
			if !yield(j, err) || err != nil {
				return
			}
		}
	}
}

// isPart reports whether it is no job but a part of one.
func (j *job) isPart() bool { return len(j.Meta[record.PartKey]) > 0 }

// componentAmount is the amount of a component, and its kind; nil when the record has none.
func (j *job) componentAmount(name string) (amount *big.Rat, kind string) {
	for i := range j.Components {
		if c := &j.Components[i]; c.Name == name {
			return new(big.Rat).SetInt64(c.Amount), c.Kind
		}
	}
	return nil, ""
}

// firstValue is the first value of a key, of its meta or of how it ended; "" without one.
func (j *job) firstValue(key string) string {
	values, has := j.Meta[key]
	if !has {
		exit := record.Exit{Known: j.ExitCode != nil && j.ExitSignal != nil}
		if exit.Known {
			exit.Code, exit.Signal = int32(*j.ExitCode), int32(*j.ExitSignal) //nolint:gosec // so the server has them
		}
		values, _ = record.EndValues(key, string(j.State), exit)
	}
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// runtimeHours is how long the job ran; 0 while it has no end, and where that is before its
// begin.
func (j *job) runtimeHours() *big.Rat {
	if j.StopTime.IsZero() {
		return new(big.Rat)
	}
	return hoursOf(j.StopTime.Sub(j.StartTime.Time))
}

func hoursOf(d time.Duration) *big.Rat {
	return big.NewRat(max(d.Microseconds(), 0), time.Hour.Microseconds())
}

// jobQuery says which jobs are wanted.
type jobQuery struct {
	keys             Keys
	where            map[string]string // conditions of /v1/usage
	started, stopped v1.TimeTest
	order            string     // as /v1/records has it; "": -runtime
	most             int        // how many are looked at: the first of the order when there are more
	filter           *jobFilter // whose they are; nil: as buildFilter finds
	note             func(format string, args ...any)
}

// mostRead is how many records are read at most where only some of them are wanted: of so many the
// store keeps the first of an order without sorting all.
const mostRead = 10_000

// forEachJob calls each for the jobs, those in archives included, until it returns false, and
// reports whether these were all that it wants; where archives cannot be read, it notes that. They
// are asked for once: the store finds them in one reading. Where the query has a mixed key it
// must not be called.
func (q *jobQuery) forEachJob(ctx context.Context, r v1.API, each func(*job) bool) (all bool, err error) {
	filter := q.filter
	if filter == nil {
		if filter, err = q.buildFilter(ctx, r); err != nil {
			return false, err
		}
	}
	query := v1.ListRecordsQuery{
		StartTime: q.started, StopTime: q.stopped, Meta: filter.meta, Archived: new(true),
		Order: cmp.Or(q.order, "-runtime"), Limit: q.most + 1, // one more says whether it is all
	}
	if filter.owners != nil {
		query.Limit = max(query.Limit, mostRead+1)
	}
	seen, all, err := q.scanPage(ctx, r, &query, filter, each)
	if errors.Is(err, client.ErrArchive) && seen == 0 {
		q.note("Jobs of archived months are in no list of jobs: %v.", err)
		query.Archived = nil
		_, all, err = q.scanPage(ctx, r, &query, filter, each)
	}
	return all, err
}

// scanPage reports how many records it has seen, and whether there are no more of the query, or
// each wants none.
func (q *jobQuery) scanPage(ctx context.Context, r v1.API, query *v1.ListRecordsQuery, filter *jobFilter, each func(*job) bool) (seen int, all bool, err error) {
	matching := 0
	for j, err := range listJobs(ctx, r, query) {
		if err != nil {
			return seen, false, fmt.Errorf("the jobs of the report: %w", err)
		}
		if seen++; seen == query.Limit {
			return seen, false, nil
		}
		if !filter.matchesJob(j) {
			continue
		}
		if matching++; matching > q.most {
			return seen, false, nil
		}
		if !j.isPart() && !each(j) {
			break
		}
	}
	return seen, true, nil
}

// jobFilter is whose jobs are wanted. What a record says itself is asked of the
// server; who belongs to a project follows from its group and user.
type jobFilter struct {
	meta   map[string]v1.MetaTest
	first  map[string][]string // of which the first value of the key is one
	owners map[[2]string]bool  // group and user; nil: of any
	keys   Keys
}

func (f *jobFilter) matchesJob(j *job) bool {
	for key, values := range f.first {
		if !slices.Contains(values, j.firstValue(key)) {
			return false
		}
	}
	return f.owners == nil || f.owners[[2]string{j.Meta.First(f.keys.Group), j.Meta.First(f.keys.User)}]
}

// derivedKeys are those that no record says of itself, with whether they follow from its
// group and user; the others follow from more than that.
func derivedKeys() map[string]bool {
	return map[string]bool{"project": true, "pi": true, "cluster": false, "host_class": false}
}

// isDerivedKey reports whether no record says the key of itself.
func isDerivedKey(key string) bool {
	_, is := derivedKeys()[key]
	return is
}

// mixedKey is a key of the query by which single jobs cannot be told apart; "" without one.
func (q *jobQuery) mixedKey() string {
	for _, key := range slices.Sorted(maps.Keys(q.where)) {
		if owned, is := derivedKeys()[key]; is && !owned {
			return key
		}
	}
	return ""
}

func (q *jobQuery) buildFilter(ctx context.Context, r v1.API) (*jobFilter, error) {
	f := &jobFilter{keys: q.keys, meta: map[string]v1.MetaTest{}, first: map[string][]string{}}
	var followed bool
	for key, value := range q.where {
		if isDerivedKey(key) {
			followed = true
			continue
		}
		f.first[key] = v1.SplitList(value)
		if !slices.Contains(f.first[key], "") { // of those without a value
			f.meta[key] = v1.MetaTest{Any: f.first[key]}
		}
	}
	if !followed {
		return f, nil
	}
	who := v1.UsageQuery{By: v1.JoinList(q.keys.Group, q.keys.User), Measure: "records", From: firstRecords, To: "now", Where: q.where}
	if from := cmp.Or(q.started.Gte, q.stopped.Gte); !from.IsZero() { // who belongs to a project changes with time
		who.From = from.Format(time.RFC3339Nano)
	}
	if to := cmp.Or(q.started.Lt, q.stopped.Lt); !to.IsZero() {
		who.To = to.Format(time.RFC3339Nano)
	}
	a, err := askUsage(ctx, r, who)
	if err != nil {
		return nil, fmt.Errorf("the jobs of the report: who is in %s: %w", subjectText(q.where), err)
	}
	f.owners = map[[2]string]bool{}
	for _, g := range a.Groups {
		var pair [2]string
		for i, v := range g.Values {
			if v != nil && i < len(pair) {
				pair[i] = *v
			}
		}
		f.owners[pair] = true
	}
	f.narrowMeta()
	return f, nil
}

// namedBytes is how much the names of groups, and those of users, take at most that are asked of
// the server: a server takes an address of 64 KiB.
const namedBytes = 24 << 10

// narrowMeta has the server leave out records of which neither group nor user is one of the owners'.
func (f *jobFilter) narrowMeta() {
	for i, key := range []string{f.keys.Group, f.keys.User} {
		names, size := map[string]bool{}, 0
		for pair := range f.owners {
			if !names[pair[i]] {
				names[pair[i]], size = true, size+len(url.QueryEscape("&meta["+key+"][any][1000]="+pair[i]))
			}
		}
		if _, given := f.meta[key]; !given && !names[""] && size <= namedBytes && len(names) > 0 {
			f.meta[key] = v1.MetaTest{Any: slices.Sorted(maps.Keys(names))}
		}
	}
}

// timeTest is the condition for instants in a window.
func (s span) timeTest() v1.TimeTest {
	return v1.TimeTest{Gte: v1.Time{Time: s.From}, Lt: v1.Time{Time: s.To}}
}
