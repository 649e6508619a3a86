package report

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"time"
)

// AI4Options say of what the files are that ai4-accounting would write.
type AI4Options struct {
	Period string // in the words of /v1/usage; "": the last 90 days, which ai4-papi shows
	// Every is how far ai4-accounting's snapshots are apart, from half a minute after
	// midnight UTC on; 0: four hours.
	Every time.Duration
	// Snapshots are the times of snapshots, in their place.
	Snapshots []time.Time
	// Known are the users of a file that was written before; who is in it stays.
	Known map[string]AI4User
	Now   time.Time
}

// AI4User is a line of ai4-accounting's file of users.
type AI4User struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// What ai4-accounting does with a job, and where the default mapping of Nomad has it.
const (
	ai4Every  = 4 * time.Hour
	ai4Offset = 30 * time.Second
	ai4Days   = 90
	// ai4Listed is how long Nomad lists a job that is over.
	ai4Listed = 4 * time.Hour
	// ai4Waits is how long before its start a job may have been submitted.
	ai4Waits = 31 * 24 * time.Hour
	ai4Page  = "5000"

	keyJob       = "job"
	keyTask      = "task"
	keyOwner     = "user_id"
	keyNamespace = "namespace"
	keyGroup     = "group_id"
	keyAllocated = "allocated" // when an allocation was made
)

// ai4Kept reports whether ai4-accounting looks at a job.
func ai4Kept(namespace, name string) bool {
	return namespace != "default" && namespace != "tutorials" &&
		(strings.HasPrefix(name, "module") || strings.HasPrefix(name, "tool") || strings.HasPrefix(name, "batch"))
}

// amounts are resources in the order of [ai4Resources].
type amounts [5]int64

// ai4Resources are the columns of its files.
func ai4Resources() []string {
	return []string{"cpu_num", "cpu_MHz", "memory_MB", "disk_MB", "gpu_num"}
}

// run is a record.
type run struct {
	start, stop time.Time // stop is zero while it goes on
	amounts     amounts
}

// allocation has the runs of its main task, by their start.
type allocation struct {
	owner             string
	submitted, placed time.Time
	runs              []run
}

// ai4Job is a job with its allocations, by when they were placed.
type ai4Job struct {
	namespace   string
	allocations []*allocation
}

// ai4World is what a cluster did, as far as ai4-accounting would look at it.
type ai4World struct {
	namespaces []string
	jobs       []*ai4Job
	owners     []string // of all jobs
}

// ai4Record is one of /v1/records.
type ai4Record struct {
	ID         string              `json:"record_id"`
	Meta       map[string][]string `json:"meta"`
	Components []struct {
		Name   string `json:"name"`
		Amount int64  `json:"amount"`
	} `json:"components"`
	Start  time.Time  `json:"start_time"`
	Stop   *time.Time `json:"stop_time"`
	Submit *time.Time `json:"submit_time"`
}

func (r *ai4Record) meta(key string) string {
	if len(r.Meta[key]) == 0 {
		return ""
	}
	return r.Meta[key][0]
}

// amounts are what a run had. Without reserved cores its MHz count as cores, as they
// do with ai4-accounting.
func (r *ai4Record) amounts() (a amounts) {
	for i, name := range []string{"Cores", "MHz", "Memory", "Disk", "GPUs"} {
		for _, c := range r.Components {
			if c.Name == name {
				a[i] = c.Amount
			}
		}
	}
	if a[0] == 0 {
		a[0] = a[1]
	}
	return a
}

// askAI4 reads the runs that touch a window, and those that waited in it.
func askAI4(ctx context.Context, r Reader, w span) (*ai4World, error) {
	world := &ai4World{}
	b := ai4Builder{world: world, jobs: map[string]*ai4Job{}, allocations: map[string]*allocation{}}
	until := w.To.Add(ai4Waits).Format(time.RFC3339Nano)
	for _, q := range []url.Values{
		{"open": {"true"}, "start_time[lt]": {until}},
		{"open": {"false"}, "start_time[lt]": {until}, "stop_time[gte]": {w.From.Add(-ai4Listed).Format(time.RFC3339Nano)}},
	} {
		q.Set("limit", ai4Page)
		for more := true; more; {
			var page struct {
				Records []ai4Record `json:"records"`
				Next    *string     `json:"next"`
			}
			if err := r.GetJSON(ctx, "/v1/records", q, &page); err != nil {
				return nil, fmt.Errorf("the records of ai4: %w", err)
			}
			for i := range page.Records {
				b.add(&page.Records[i])
			}
			if more = page.Next != nil; more {
				q.Set("cursor", *page.Next)
			}
		}
	}
	b.finish()
	return world, nil
}

// ai4Builder puts records together.
type ai4Builder struct {
	world       *ai4World
	jobs        map[string]*ai4Job
	allocations map[string]*allocation
}

func (b *ai4Builder) add(r *ai4Record) {
	namespace, job, task := cmp.Or(r.meta(keyNamespace), r.meta(keyGroup)), r.meta(keyJob), r.meta(keyTask)
	if namespace == "" || !ai4Kept(namespace, job) || (task != "" && task != "main") || r.meta(keyOwner) == "" {
		return
	}
	name := namespace + "\x00" + job
	j := b.jobs[name]
	if j == nil {
		j = &ai4Job{namespace: namespace}
		b.jobs[name] = j
		b.world.jobs = append(b.world.jobs, j)
	}
	id, _, _ := strings.Cut(r.ID, "@") // further starts of a task have it with their time
	a := b.allocations[name+"\x00"+id]
	if a == nil {
		a = &allocation{owner: r.meta(keyOwner), placed: r.Start, submitted: r.Start}
		if at, err := time.Parse(time.RFC3339Nano, r.meta(keyAllocated)); err == nil {
			a.placed, a.submitted = at, at
		}
		b.allocations[name+"\x00"+id] = a
		j.allocations = append(j.allocations, a)
	}
	if r.Submit != nil && r.Submit.Before(a.submitted) {
		a.submitted = *r.Submit
	}
	one := run{start: r.Start, amounts: r.amounts()}
	if r.Stop != nil {
		one.stop = *r.Stop
	}
	if _, known := r.Meta[keyAllocated]; !known && r.Start.Before(a.placed) {
		a.placed = r.Start
	}
	a.runs = append(a.runs, one)
}

func (b *ai4Builder) finish() {
	w := b.world
	for _, j := range w.jobs {
		slices.SortStableFunc(j.allocations, func(x, y *allocation) int { return x.placed.Compare(y.placed) })
		for _, a := range j.allocations {
			slices.SortStableFunc(a.runs, func(x, y run) int { return x.start.Compare(y.start) })
			w.owners = append(w.owners, a.owner)
		}
	}
	slices.Sort(w.owners)
	w.owners = slices.Compact(w.owners)
}

// ai4State is what a snapshot says of a job.
type ai4State int

const (
	ai4Gone     ai4State = iota // it is not listed
	ai4Starting                 // it has a place and does not run yet, or not at the moment
	ai4Queued
	ai4Running
	ai4Dead
)

// at is what a snapshot of a time says: the newest allocation that runs counts, else
// the newest; further ones of the same job do not.
func (j *ai4Job) at(t time.Time) (ai4State, *allocation, *run) {
	var newest *allocation
	for _, a := range slices.Backward(j.allocations) {
		if a.placed.After(t) {
			continue
		}
		if newest == nil {
			newest = a
		}
		if r := a.last(t); r != nil && r.goes(t) {
			return ai4Running, a, r
		}
	}
	for _, a := range j.allocations {
		if a.placed.After(t) && !a.submitted.After(t) && (newest == nil || a.submitted.After(newest.placed)) {
			return ai4Queued, a, nil
		}
	}
	if newest == nil {
		return ai4Gone, nil, nil
	}
	r := newest.last(t)
	switch {
	case r == nil || newest.runs[len(newest.runs)-1].start.After(t):
		return ai4Starting, newest, nil
	case t.Sub(r.stop) > ai4Listed:
		return ai4Gone, nil, nil
	}
	return ai4Dead, newest, r
}

// last is the last run that has started; nil when there is none.
func (a *allocation) last(t time.Time) *run {
	for i := len(a.runs) - 1; i >= 0; i-- {
		if !a.runs[i].start.After(t) {
			return &a.runs[i]
		}
	}
	return nil
}

func (r *run) goes(t time.Time) bool { return r.stop.IsZero() || r.stop.After(t) }

// instants are the times of the snapshots of a window.
func (o *AI4Options) instants(w span) ([]time.Time, error) {
	end := w.To
	if o.Now.Before(end) {
		end = o.Now
	}
	var list []time.Time
	if o.Snapshots != nil {
		for _, t := range o.Snapshots {
			if !t.Before(w.From) && t.Before(w.To) {
				list = append(list, t)
			}
		}
		slices.SortFunc(list, time.Time.Compare)
		if list = slices.Compact(list); len(list) == 0 {
			return nil, fmt.Errorf("%w: none of the %d snapshots is of the time from %s to %s", ErrNothing, len(o.Snapshots), w.From.Format(minute), w.To.Format(minute))
		}
		return list, nil
	}
	every := cmp.Or(o.Every, ai4Every)
	if every < time.Minute || every > 24*time.Hour {
		return nil, fmt.Errorf("snapshots are %s apart; want from a minute to a day", every)
	}
	for day := w.From.UTC().Truncate(24 * time.Hour); day.Before(end); day = day.Add(24 * time.Hour) {
		for t := day.Add(ai4Offset); t.Before(end) && t.Before(day.Add(24*time.Hour)); t = t.Add(every) {
			if !t.Before(w.From) {
				list = append(list, t)
			}
		}
	}
	return list, nil
}

// even rounds to whole numbers, and halves to even ones.
func even(r *big.Rat) int64 {
	twice := new(big.Int).Mul(r.Num(), big.NewInt(2))
	quotient, rest := new(big.Int).DivMod(twice, r.Denom(), new(big.Int))
	whole, odd := new(big.Int).DivMod(quotient, big.NewInt(2), new(big.Int))
	if odd.Sign() != 0 && (rest.Sign() != 0 || whole.Bit(0) == 1) {
		whole.Add(whole, big.NewInt(1))
	}
	return whole.Int64()
}
