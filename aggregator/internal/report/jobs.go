package report

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// job is a record as GET /v1/records has it, as far as reports look at it.
type job struct {
	ID         string              `json:"record_id"`
	Meta       map[string][]string `json:"meta"`
	Components []struct {
		Name   string      `json:"name"`
		Amount json.Number `json:"amount"`
		Kind   string      `json:"kind"`
	} `json:"components"`
	Start  time.Time  `json:"start_time"`
	Stop   *time.Time `json:"stop_time"`
	Submit *time.Time `json:"submit_time"`
	State  *string    `json:"state"`
}

// first is the first value of a key; "" where there is none.
func (j *job) first(key string) string {
	if v := j.Meta[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// amount is that of a component, and its kind; nil when the record has none.
func (j *job) amount(name string) (amount *big.Rat, kind string) {
	for i := range j.Components {
		if c := &j.Components[i]; c.Name == name {
			return Rational(c.Amount.String()), c.Kind
		}
	}
	return nil, ""
}

// hours is how long the job ran; 0 while it has no end, and where that is before its
// begin.
func (j *job) hours() *big.Rat {
	if j.Stop == nil {
		return new(big.Rat)
	}
	return hoursOf(j.Stop.Sub(j.Start))
}

func hoursOf(d time.Duration) *big.Rat {
	return big.NewRat(max(d.Microseconds(), 0), time.Hour.Microseconds())
}

// jobQuery says which jobs are wanted.
type jobQuery struct {
	where map[string]string
	test  url.Values // conditions of /v1/records on times
	most  int        // how many are looked at: those that ran the longest when there are more
}

// scan calls each for the jobs, and reports whether it was all of them. They are asked for
// once: the store sorts them in one reading. Where jobs are mixed it must not be called.
func (q *jobQuery) scan(ctx context.Context, r Reader, each func(*job)) (all bool, err error) {
	filter, err := q.filter(ctx, r)
	if err != nil {
		return false, err
	}
	query := url.Values{"sort_by[desc]": {"runtime"}, "limit": {strconv.Itoa(q.most + 1)}} // one more says whether it is all
	maps.Copy(query, q.test)
	maps.Copy(query, filter.meta)
	seen := 0
	for raw, err := range r.Stream(ctx, "/v1/records", query) {
		if err != nil {
			return false, fmt.Errorf("the jobs of the report: %w", err)
		}
		if seen++; seen > q.most {
			continue // the last one
		}
		var j job
		if err := json.Unmarshal(raw, &j); err != nil {
			return false, fmt.Errorf("the jobs of the report: %w", err)
		}
		if filter.takes(&j) {
			each(&j)
		}
	}
	return seen <= q.most, nil
}

// jobFilter is whose jobs are wanted. What a record says itself is asked of the
// server; who belongs to a project follows from its group and user.
type jobFilter struct {
	meta   url.Values
	first  map[string]string
	owners map[[2]string]bool // group and user; nil: of any
}

func (f *jobFilter) takes(j *job) bool {
	for key, value := range f.first {
		if j.first(key) != value {
			return false
		}
	}
	return f.owners == nil || f.owners[[2]string{j.first("group_id"), j.first("user_id")}]
}

// derivedKeys are those that no record says of itself, with whether they follow from its
// group and user; the others follow from more than that.
func derivedKeys() map[string]bool {
	return map[string]bool{"project": true, "pi": true, "cluster": false, "host_class": false}
}

// derived reports whether a key is one that no record says of itself.
func derived(key string) bool {
	_, is := derivedKeys()[key]
	return is
}

// mixed is a key of the query by which single jobs cannot be told apart; "" without one.
func (q *jobQuery) mixed() string {
	for _, key := range slices.Sorted(maps.Keys(q.where)) {
		if owned, is := derivedKeys()[key]; is && !owned {
			return key
		}
	}
	return ""
}

func (q *jobQuery) filter(ctx context.Context, r Reader) (*jobFilter, error) {
	f := &jobFilter{meta: url.Values{}, first: map[string]string{}}
	var followed bool
	for key, value := range q.where {
		if derived(key) {
			followed = true
			continue
		}
		f.first[key] = value
		f.meta.Set("meta["+key+"][c][0]", value)
	}
	if !followed {
		return f, nil
	}
	ask := url.Values{"by": {"group_id,user_id"}, "measure": {"records"}, "from": {firstRecords}, "to": {"now"}}
	var a usageAnswer
	if err := r.GetJSON(ctx, "/v1/usage", conditions(ask, q.where), &a); err != nil {
		return nil, fmt.Errorf("the jobs of the report: who is in %s: %w", subject(q.where), err)
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
	return f, nil
}

// within are the conditions for jobs that began in a window.
func (s span) within(field string) url.Values {
	return url.Values{field + "[gte]": {s.From.UTC().Format(time.RFC3339Nano)}, field + "[lt]": {s.To.UTC().Format(time.RFC3339Nano)}}
}
