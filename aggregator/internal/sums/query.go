package sums

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Credit says to which instants the usage of a record belongs.
type Credit uint8

// The ways to credit.
const (
	// Spread credits every instant of the run with what was used in it.
	Spread Credit = iota
	// AtStop credits all of it to the instant at which the run stopped; what goes
	// on counts nowhere yet.
	AtStop
)

// Query asks who used how much of what, and when.
type Query struct {
	// Edges bound the buckets: bucket i is from Edges[i], included, to Edges[i+1],
	// not included. There are at least two, and each is after the one before.
	Edges []record.Time
	// By are the keys, of meta or of [record.EndKeys], or the classes, by whose first values
	// records are put together, in the order in which the answer has them; none puts all
	// together.
	By []string
	// Keep chooses groups by their values and by what they lack; nil keeps all. What it
	// leaves out is in no figure of the answer. It is called once for a group, and again,
	// also by several goroutines at once.
	Keep func(values []string, lacks []bool) bool
	// Where are the conditions on records: ID, Start, Stop, Runtime, Meta, Allowed,
	// Amounts, Open and Origin count, the rest does not.
	Where store.Query
	// Components are the names that are asked for; nil is all.
	Components []string
	// Unscored are the names of which no score is asked for; it saves half the work.
	Unscored []string
	// Credit says to which instants usage belongs.
	Credit Credit
	// Counts asks for the numbers of records and their waits.
	Counts bool
	// Levels asks for the time that runs took and waited, of which the mean numbers of
	// running and of queued runs are made.
	Levels bool
	// Now is up to when runs that go on are counted, and no further than their
	// source is known to be complete.
	Now record.Time
	// People is the meta key whose distinct first values are counted; "": none.
	People string
	// CPU and Cores are the names of the two components of which the quotient is
	// the CPU efficiency: a total of CPU seconds, and a rate of cores. Records
	// that lack one are left out of both.
	CPU, Cores string
	// Energy asks for energy and CO2; nil does not.
	Energy *EnergyModel
	// MaxCells bounds groups × buckets, about; 0 does not. More are [ErrTooMany].
	MaxCells int

	// The rest is of keys and weights that follow from records and are in none, which package
	// usage knows. It replaces them before it asks this package, which refuses them.
	//
	// Weights are the names of those whose worth is asked for.
	Weights []string
	// Having are conditions on keys, all of which hold.
	Having []Filter
	// Bases asks for the Bases of the answer.
	Bases bool
	// Known is the time of which records are known: energy that no job has is unknown outside.
	Known Span

	// classes are what is known of keys that are no meta keys.
	classes []Class
	// lacking are the keys of By that no record has.
	lacking []string
}

// Filter chooses by the value of a key, of a meta key by the first one.
type Filter struct {
	Key string
	// Values are those of which one is wanted; "" stands for what no one claims.
	Values []string
}

// AskFunc answers queries. Errors wrap [ErrQuery] where the query is what is wrong.
type AskFunc func(context.Context, Query) (*Answer, error)

// Answer is what a [Query] got. The figures of group g in bucket b are at
// index g × (len(Edges)-1) + b of each column.
type Answer struct {
	// Index and Seq are the index of the log and the number of the last change
	// that are in the answer.
	Index, Seq uint64
	// Edges, By and Credit are those of the query.
	Edges  []record.Time
	By     []string
	Credit Credit
	// Groups are in the order of their values, groups that lack a key before others.
	Groups []Group
	// Components are in the order of names, rates before totals.
	Components []Component
	// The numbers of records and the waits are nil when the query has no Counts.
	//
	// Records is how many records a bucket has: that touch it, or with [AtStop] that
	// stopped in it. A record that touches two buckets is counted in both. Begun are
	// those that started in it.
	Records, Begun []uint64
	// Jobs are the Records that are runs and not parts of runs ([record.Meta.IsPart]);
	// Started and Stopped are those that did so in the bucket.
	Jobs, Started, Stopped []uint64
	// Waited is the time between submit and start of the Waiters, which are the
	// runs that started in the bucket and whose submit time is known: microseconds.
	Waited  []Sum
	Waiters []uint64
	// People is the number of distinct values of the query's key among Records;
	// nil without one.
	People []uint64
	// CPU and Cores are what the records used that have both, nil when the query
	// does not name them. CPU ÷ Cores is the efficiency: the CPU seconds that were
	// used for each second of a core that was held.
	CPU, Cores []Sum
	// Running is how long all runs together ran in a bucket, without parts of runs,
	// Queued how long they waited in it, from submit to start: microseconds. Divided by the length of the
	// bucket they are how many there were at a time, in the mean. Both are spread over
	// time whatever the Credit. Queued knows nothing of runs that have not started yet,
	// nor of those whose submit time is not known. Nil when the query has no Levels.
	Running, Queued []Sum
	// Energy has no columns when the query does not ask for them.
	Energy EnergySums
	// Worths are in the order of the query's Weights.
	Worths []Worth
	// Basis is nil where the query has no weight of energy or CO2. Bases are those of each cell,
	// without meters; nil where they are not asked for.
	Basis *EnergyBasis
	Bases []EnergyBasis
	// AllRecords and AllJobs are how many there are in all buckets together; nil where each
	// run is in one group, or where nothing is counted.
	AllRecords, AllJobs *Whole
	// Open is how many of the records go on, and Several how many had more than one
	// value for a key of By, of which the first was taken. Both are of all buckets
	// together.
	Open, Several uint64
	// Runs is how many records, parts too, are in all buckets together, each once.
	Runs uint64
	// Way says how the answer was found: "index", "index and scan" or "scan".
	Way string
}

// ofRows reports whether the query is about what single records have, which no index
// knows.
func (q *Query) ofRows() bool {
	w := &q.Where
	if isEnd(q.People, q.classes) || slices.ContainsFunc(q.By, func(key string) bool { return isEnd(key, q.classes) }) ||
		slices.ContainsFunc(w.Meta, func(t store.MetaTest) bool { return record.IsEndKey(t.Key) }) {
		return true
	}
	return q.Energy != nil || q.Credit != Spread || w.TestsRows()
}

// metaKeys are those of which records need the values for the answer to be right.
func (q *Query) metaKeys() (keys []string) {
	add := func(key string) {
		if i := slices.IndexFunc(q.classes, func(c Class) bool { return c.Name == key }); i >= 0 {
			key = q.classes[i].From
		}
		if key != "" {
			keys = append(keys, key)
		}
	}
	for _, key := range q.By {
		add(key)
	}
	add(q.People)
	for _, tests := range append(slices.Clone(q.Where.Allowed), q.Where.Meta) {
		for i := range tests {
			keys = append(keys, tests[i].Key) // conditions are about meta keys
		}
	}
	return keys
}

// EachCount calls do with each column of the answer that has numbers of records.
func (a *Answer) EachCount(do func(*[]uint64)) {
	for _, column := range a.countColumns() {
		do(column)
	}
}

// EachSum calls do with each column of the answer that has sums of no single component.
func (a *Answer) EachSum(do func(*[]Sum)) {
	for _, column := range a.sumColumns() {
		do(column)
	}
}

// countColumns are the columns of the answer that have numbers of records.
func (a *Answer) countColumns() []*[]uint64 {
	return []*[]uint64{&a.Records, &a.Begun, &a.Jobs, &a.Started, &a.Stopped, &a.Waiters}
}

// sumColumns are the columns of the answer that are of no single component.
func (a *Answer) sumColumns() map[portion]*[]Sum {
	list := map[portion]*[]Sum{usedCPU: &a.CPU, heldCores: &a.Cores, running: &a.Running, queued: &a.Queued}
	maps.Copy(list, a.Energy.columnsByPortion())
	return list
}

// wantedPortions are those of [Answer.sumColumns] that the query asks for.
func (q *Query) wantedPortions() (list []portion) {
	if q.CPU != "" && q.Cores != "" {
		list = append(list, usedCPU, heldCores)
	}
	if q.Levels {
		list = append(list, running, queued)
	}
	if q.Energy != nil {
		list = append(list, measured, modelled, co2Measured, co2Modelled, embodied, ungraded, defaultPUE, defaultLoad)
	}
	return list
}

// Group is one tuple of values.
type Group struct {
	// Values are those of the answer's keys; "" where the record has none, see
	// Lacks.
	Values []string
	// Lacks has an element for each key: whether the record has no value for it.
	Lacks []bool
}

// Component is a component of the answer with its columns.
type Component struct {
	Name string
	Kind record.Kind
	// Used is the integral of a rate over time, in amount × microseconds; of a total
	// its part, in millionths of the amount. So a million of it is one unit for one
	// second, or one unit.
	Used []Sum
	// Runs is how many of the answer's Runs have the component.
	Runs uint64
	// Scores are by name.
	Scores []Score
}

// Score is a component weighted with a score.
type Score struct {
	Name string
	// Used is the sum of value × used, in the unit of [Component.Used].
	Used []float64
	// Lacking is the part of [Component.Used] that has no such score and is not in
	// Used.
	Lacking []Sum
	// Runs is how many of the component's Runs have the score.
	Runs uint64
}

// CompareValues orders values of keys as the groups of answers are: those that lack a key come
// first.
func CompareValues(a, b []string, lacksA, lacksB []bool) int {
	for i := range a {
		if lacksA[i] != lacksB[i] {
			if lacksA[i] {
				return -1
			}
			return 1
		}
		if c := cmp.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}
