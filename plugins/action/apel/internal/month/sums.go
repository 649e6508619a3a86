package month

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
)

// Job is a job and what it used, normalised with each benchmark of its site.
type Job struct {
	message.Job
	NormalisedWall, NormalisedCPU []message.Amount
}

// Sums adds up the jobs of one site and month. New makes it.
type Sums struct {
	site  string
	month Month
	rows  map[key]*message.Summary
	total Total
}

// Total is what a month has in all.
type Total struct {
	Jobs, Wall, CPU int64
}

// key is what the receiver tells rows apart by.
type key struct {
	vo, host, user, group, role, infrastructure, description string
	nodes, processors                                        int64
}

func keyOf(row *message.Summary) key {
	return key{row.VO, row.SubmitHost, row.GlobalUserName, row.VOGroup, row.VORole, row.Infrastructure, row.InfrastructureDescription, row.NodeCount, row.Processors}
}

func (k key) compare(o key) int {
	return cmp.Or(strings.Compare(k.vo, o.vo), strings.Compare(k.host, o.host), cmp.Compare(k.processors, o.processors),
		strings.Compare(k.user, o.user), strings.Compare(k.group, o.group), strings.Compare(k.role, o.role),
		strings.Compare(k.infrastructure, o.infrastructure), strings.Compare(k.description, o.description), cmp.Compare(k.nodes, o.nodes))
}

// New returns the sums of no jobs.
func New(site string, m Month) *Sums {
	return &Sums{site: site, month: m, rows: map[key]*message.Summary{}}
}

// Add adds a job. One that did not stop in the month, whose texts and numbers the
// receiver would refuse, or with which a sum is too large, is an error and changes
// nothing.
func (s *Sums) Add(j *Job) error {
	one := s.rowOf(j)
	if err := one.Check(s.month.End()); err != nil {
		return err
	}
	k := keyOf(&one)
	total, err := s.total.plus(&one)
	if err != nil {
		return err
	}
	if row, ok := s.rows[k]; ok {
		if one, err = plus(row, &one); err != nil {
			return err
		}
	}
	s.rows[k], s.total = &one, total
	return nil
}

// rowOf is the row of one job alone.
func (s *Sums) rowOf(j *Job) message.Summary {
	return message.Summary{
		Site: s.site, Year: s.month.Year, Month: s.month.Month,
		GlobalUserName: j.GlobalUserName, VO: j.VO, VOGroup: j.VOGroup, VORole: j.VORole, SubmitHost: j.SubmitHost,
		Infrastructure: j.InfrastructureType, InfrastructureDescription: j.InfrastructureDescription,
		NodeCount: j.NodeCount, Processors: j.Processors,
		EarliestEndTime: j.EndTime, LatestEndTime: j.EndTime,
		WallDuration: j.WallDuration, CPUDuration: j.CPUDuration,
		NormalisedWallDuration: j.NormalisedWall, NormalisedCPUDuration: j.NormalisedCPU,
		NumberOfJobs: 1,
	}
}

// plus returns the sum of two rows with the same key.
func plus(a, b *message.Summary) (message.Summary, error) {
	out, sum := *a, adder{}
	out.EarliestEndTime, out.LatestEndTime = min(a.EarliestEndTime, b.EarliestEndTime), max(a.LatestEndTime, b.LatestEndTime)
	out.WallDuration, out.CPUDuration = sum.add(a.WallDuration, b.WallDuration), sum.add(a.CPUDuration, b.CPUDuration)
	out.NormalisedWallDuration = sum.amounts(a.NormalisedWallDuration, b.NormalisedWallDuration)
	out.NormalisedCPUDuration = sum.amounts(a.NormalisedCPUDuration, b.NormalisedCPUDuration)
	out.NumberOfJobs = sum.add(a.NumberOfJobs, b.NumberOfJobs)
	return out, sum.err
}

func (t Total) plus(row *message.Summary) (Total, error) {
	sum := adder{}
	out := Total{sum.add(t.Jobs, row.NumberOfJobs), sum.add(t.Wall, row.WallDuration), sum.add(t.CPU, row.CPUDuration)}
	return out, sum.err
}

// adder adds numbers that are not negative and remembers when a sum was too large.
type adder struct{ err error }

func (s *adder) add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		s.err = fmt.Errorf("the sum of %d and %d is too large", a, b)
		return a
	}
	return a + b
}

// amounts adds amounts by benchmark, in the order of a.
func (s *adder) amounts(a, b []message.Amount) []message.Amount {
	out := slices.Clone(a)
	for _, x := range b {
		i := slices.IndexFunc(out, func(o message.Amount) bool { return o.Benchmark == x.Benchmark })
		if i < 0 {
			out = append(out, x)
			continue
		}
		out[i].Value = s.add(out[i].Value, x.Value)
	}
	return out
}

// Total returns what was added so far.
func (s *Sums) Total() Total { return s.total }

// Summaries returns the rows, ordered by their key.
func (s *Sums) Summaries() []message.Summary {
	out := make([]message.Summary, 0, len(s.rows))
	for _, row := range s.rows {
		out = append(out, *row)
	}
	slices.SortFunc(out, func(a, b message.Summary) int { return keyOf(&a).compare(keyOf(&b)) })
	return out
}

// Syncs returns how many jobs each submit host has, ordered by its name.
func (s *Sums) Syncs() []message.Sync {
	jobs := map[string]int64{}
	for _, row := range s.rows {
		jobs[row.SubmitHost] += row.NumberOfJobs
	}
	var out []message.Sync
	for _, host := range slices.Sorted(maps.Keys(jobs)) {
		out = append(out, message.Sync{Site: s.site, SubmitHost: host, NumberOfJobs: jobs[host], Year: s.month.Year, Month: s.month.Month})
	}
	return out
}
