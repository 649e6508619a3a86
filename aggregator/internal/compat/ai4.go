package compat

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// AI4Options say of what the files are that ai4-accounting would write.
type AI4Options struct {
	Period string // in the words of /v1/usage; "": all there is, which ai4-accounting sums up
	// Every is how far ai4-accounting's snapshots are apart, from half a minute after
	// midnight UTC on; 0: four hours.
	Every time.Duration
	// Snapshots are the times of snapshots, in their place.
	Snapshots []time.Time
	// Waiting are the jobs that a snapshot lists as queued, by its time. Those of which
	// there is no record count, for they have never run.
	Waiting map[time.Time][]AI4Waiting
	// Namespaces are reported even where no record has them.
	Namespaces []string
	// Known are the users of a file that was written before; who is in it stays.
	Known map[string]AI4User
	Now   time.Time
}

// AI4Waiting is a job that waits.
type AI4Waiting struct{ Namespace, Name, Owner string }

// AI4User is a line of ai4-accounting's file of users.
type AI4User struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// What ai4-accounting does with a job, and where the default mapping of Nomad has it.
const (
	ai4Every  = 4 * time.Hour
	ai4Offset = 30 * time.Second
	// ai4Listed is how long Nomad lists a job that is over.
	ai4Listed = 4 * time.Hour
	// ai4Waits is how long before its start a job may have been submitted.
	ai4Waits = 31 * 24 * time.Hour

	keyJob       = "job"
	keyTask      = "task"
	keyOwner     = "user_id"
	keyNamespace = "namespace"
	keyGroup     = "group_id"
	keyAllocated = "allocated" // when an allocation was made
	keyEstimated = "estimated" // "true": no one saw the end
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
	// sighted: the stop is when the run was last seen running, and no later look found it.
	sighted bool
	amounts amounts
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
	name        string // with its namespace
	allocations []*allocation
	// No snapshot before begin lists it, and none after end; end is zero while it runs.
	begin, end time.Time
}

// ai4World is what a cluster did, as far as ai4-accounting would look at it.
type ai4World struct {
	from, to   time.Time
	namespaces []string
	jobs       []*ai4Job   // by when they begin
	instants   []time.Time // of snapshots
	waiting    map[time.Time][]AI4Waiting
}

// unrecordedWaiting are those of waiting jobs that ai4-accounting looks at and that no record is of.
func (w *ai4World) unrecordedWaiting(waiting map[time.Time][]AI4Waiting) map[time.Time][]AI4Waiting {
	recorded := map[string]bool{}
	for _, j := range w.jobs {
		recorded[j.name] = true
	}
	out := map[time.Time][]AI4Waiting{}
	for t, list := range waiting {
		for _, j := range list {
			if ai4Kept(j.Namespace, j.Name) && j.Owner != "" && !recorded[ai4Name(j.Namespace, j.Name)] {
				out[t] = append(out[t], j)
			}
		}
	}
	return out
}

// ai4Name tells jobs of all namespaces apart.
func ai4Name(namespace, name string) string { return namespace + "\x00" + name }

// ai4Walk goes through the jobs in the order of time.
type ai4Walk struct{ coming, present []*ai4Job }

// jobsAt returns the jobs that a snapshot of a time may list. Times must not go back.
func (k *ai4Walk) jobsAt(t time.Time) []*ai4Job {
	for len(k.coming) > 0 && !k.coming[0].begin.After(t) {
		k.present, k.coming = append(k.present, k.coming[0]), k.coming[1:]
	}
	k.present = slices.DeleteFunc(k.present, func(j *ai4Job) bool { return !j.end.IsZero() && j.end.Before(t) })
	return k.present
}

// amountsOf are what a run had. Without reserved cores its MHz count as cores, as they
// do with ai4-accounting.
func amountsOf(r *v1.FullRecord) (a amounts) {
	names := []string{"Cores", "MHz", "Memory", "Disk", "GPUs"}
	for _, c := range slices.Backward(r.Components) { // the first of a name counts
		if i := slices.Index(names, c.Name); i >= 0 {
			a[i] = c.Amount
		}
	}
	if a[0] == 0 {
		a[0] = a[1]
	}
	return a
}

// ai4Builder puts records together.
type ai4Builder struct {
	world       *ai4World
	jobs        map[string]*ai4Job
	allocations map[string]*allocation
}

func (b *ai4Builder) addRecord(r *v1.FullRecord) {
	namespace, name := cmp.Or(r.Meta.First(keyNamespace), r.Meta.First(keyGroup)), r.Meta.First(keyJob)
	owner, main := r.Meta.First(keyOwner), cmp.Or(r.Meta.First(keyTask), "main") == "main"
	if namespace == "" || !ai4Kept(namespace, name) || !main || owner == "" {
		return
	}
	name = ai4Name(namespace, name)
	j := b.jobs[name]
	if j == nil {
		j = &ai4Job{namespace: namespace, name: name}
		b.jobs[name] = j
		b.world.jobs = append(b.world.jobs, j)
	}
	id := name + "\x00" + firstStart(r.RecordID)
	a := b.allocations[id]
	if a == nil {
		a = &allocation{owner: owner}
		b.allocations[id] = a
		j.allocations = append(j.allocations, a)
	}
	if at, err := time.Parse(time.RFC3339Nano, r.Meta.First(keyAllocated)); err == nil {
		a.placed = at
	}
	if !r.SubmitTime.IsZero() && (a.submitted.IsZero() || r.SubmitTime.Before(a.submitted)) {
		a.submitted = r.SubmitTime.Time
	}
	one := run{start: r.StartTime.Time, amounts: amountsOf(r)}
	if !r.StopTime.IsZero() {
		one.stop = r.StopTime.Time
		one.sighted = r.Meta.First(keyEstimated) == "true" && r.State == "running"
	}
	a.runs = append(a.runs, one)
}

// firstStart is the id of the first start of a task in its allocation: that of further
// ones has their time behind it.
func firstStart(id string) string {
	at := strings.LastIndexByte(id, '@')
	if at < 0 || strings.Trim(id[at+1:], "0123456789") != "" {
		return id
	}
	return id[:at]
}

func (b *ai4Builder) finishJobs() {
	for _, j := range b.world.jobs {
		for _, a := range j.allocations {
			slices.SortStableFunc(a.runs, func(x, y run) int { return x.start.Compare(y.start) })
			if first := a.runs[0].start; a.placed.IsZero() || a.placed.After(first) {
				a.placed = first
			}
			if a.submitted.IsZero() || a.submitted.After(a.placed) {
				a.submitted = a.placed
			}
		}
		slices.SortStableFunc(j.allocations, func(x, y *allocation) int { return x.placed.Compare(y.placed) })
		j.boundJob()
	}
	slices.SortStableFunc(b.world.jobs, func(x, y *ai4Job) int { return x.begin.Compare(y.begin) })
}

// boundJob says between which times snapshots may list the job.
func (j *ai4Job) boundJob() {
	open := false
	for i, a := range j.allocations {
		if i == 0 || a.submitted.Before(j.begin) {
			j.begin = a.submitted
		}
		for _, r := range a.runs {
			open = open || r.stop.IsZero()
			for _, end := range []time.Time{r.start, r.stop} {
				if end = end.Add(ai4Listed); end.After(j.end) {
					j.end = end
				}
			}
		}
	}
	if open {
		j.end = time.Time{}
	}
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

// stateAt is what a snapshot of a time says: the newest allocation that runs counts, else
// the newest; further ones of the same job do not.
func (j *ai4Job) stateAt(t time.Time) (ai4State, *allocation, *run) {
	var newest *allocation
	for _, a := range slices.Backward(j.allocations) {
		if a.placed.After(t) {
			continue
		}
		if newest == nil {
			newest = a
		}
		if r := a.lastRun(t); r != nil && r.goesOnAt(t) {
			return ai4Running, a, r
		}
	}
	comes := false
	for _, a := range j.allocations {
		if !a.placed.After(t) || a.submitted.After(t) {
			continue
		}
		if newest == nil || a.submitted.After(newest.placed) {
			return ai4Queued, a, nil
		}
		comes = true // the same job is placed anew
	}
	if newest == nil {
		return ai4Gone, nil, nil
	}
	r := newest.lastRun(t)
	switch {
	case r == nil || newest.runs[len(newest.runs)-1].start.After(t):
		return ai4Starting, newest, nil
	case comes:
		return ai4Dead, newest, r
	case r.sighted || t.Sub(r.stop) > ai4Listed:
		return ai4Gone, nil, nil
	}
	return ai4Dead, newest, r
}

// lastRun is the last run that has started; nil when there is none.
func (a *allocation) lastRun(t time.Time) *run {
	for i := len(a.runs) - 1; i >= 0; i-- {
		if !a.runs[i].start.After(t) {
			return &a.runs[i]
		}
	}
	return nil
}

// goesOnAt reports whether a snapshot sees the run going on. One that stopped in that very
// instant was last seen by it. Sightings have the time at which a snapshot began, or
// any up to when it was done.
func (r *run) goesOnAt(t time.Time) bool {
	seen := r.stop
	if r.sighted {
		seen = seen.Add(ai4Offset)
	}
	return r.stop.IsZero() || !seen.Before(t)
}

// roundHalfEven rounds to whole numbers, and halves to even ones.
func roundHalfEven(r *big.Rat) int64 {
	up := new(big.Rat).Add(r, big.NewRat(1, 2))
	n := new(big.Int).Div(up.Num(), up.Denom()).Int64()
	if up.IsInt() && n%2 != 0 {
		n--
	}
	return n
}
