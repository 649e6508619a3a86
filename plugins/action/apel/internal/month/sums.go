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

// Job is a record as a job and what it used, normalised with each benchmark of its site.
type Job struct {
	message.Job
	NormalisedWall, NormalisedCPU []message.Amount

	// Part says that the record is a part of a run: what it used counts in summaries, and it
	// is not among their jobs.
	Part bool
}

// Sums adds up the jobs of one site and month. New makes it.
type Sums struct {
	site  string
	month Month
	rows  map[key]*row
	total Total
}

// row is a row, and what its jobs were described as, which the receiver keeps beside it.
type row struct {
	message.Summary
	descriptions map[string]bool
}

// Total is what a month has in all.
type Total struct {
	Records         int64 // that were added, parts of runs too
	Jobs, Wall, CPU int64
}

// key is what the receiver tells rows apart by: message.Key, for rows of one site and
// month.
type key struct {
	vo, host, user, group, role, infrastructure string
	nodes, processors                           int64
}

func keyOf(row *message.Summary) key {
	return key{
		message.Fold(row.VO), message.Fold(row.SubmitHost), message.Fold(row.GlobalUserName), message.Fold(row.VOGroup), message.Fold(row.VORole),
		message.Fold(row.Infrastructure), row.NodeCount, row.Processors,
	}
}

func (k key) compareKeys(o key) int {
	return cmp.Or(strings.Compare(k.vo, o.vo), strings.Compare(k.host, o.host), cmp.Compare(k.processors, o.processors),
		strings.Compare(k.user, o.user), strings.Compare(k.group, o.group), strings.Compare(k.role, o.role),
		strings.Compare(k.infrastructure, o.infrastructure), cmp.Compare(k.nodes, o.nodes))
}

// New returns the sums of no jobs.
func New(site string, m Month) *Sums {
	return &Sums{site: site, month: m, rows: map[key]*row{}}
}

// Add adds a job. One that did not stop in the month, whose texts and numbers the
// receiver would refuse, or with which a sum is too large, is an error and changes
// nothing.
func (s *Sums) Add(j *Job) error {
	one := s.rowOf(j)
	if err := one.Check(s.month.End()); err != nil {
		return err
	}
	total, err := s.total.addRow(&one)
	if err != nil {
		return err
	}
	k := keyOf(&one)
	r := s.rows[k]
	if r == nil {
		r = &row{one, map[string]bool{}}
		s.rows[k] = r
	} else if one, err = addRows(&r.Summary, &one); err != nil {
		return err
	}
	if r.Summary, s.total = one, total; j.InfrastructureDescription != "" {
		r.descriptions[j.InfrastructureDescription] = true
	}
	return nil
}

// rowOf is the row of one job alone.
func (s *Sums) rowOf(j *Job) message.Summary {
	jobs := int64(1)
	if j.Part {
		jobs = 0
	}
	return message.Summary{
		Site: s.site, Year: s.month.Year, Month: s.month.Month,
		GlobalUserName: sentText(j.GlobalUserName), VO: sentText(j.VO), VOGroup: sentText(j.VOGroup), VORole: sentText(j.VORole), SubmitHost: sentText(j.SubmitHost),
		Infrastructure: sentText(j.InfrastructureType), InfrastructureDescription: j.InfrastructureDescription,
		NodeCount: j.NodeCount, Processors: j.Processors,
		EarliestEndTime: j.EndTime, LatestEndTime: j.EndTime,
		WallDuration: j.WallDuration, CPUDuration: j.CPUDuration,
		NormalisedWallDuration: j.NormalisedWall, NormalisedCPUDuration: j.NormalisedCPU,
		NumberOfJobs: jobs,
	}
}

// sentText is a text as it is sent: what the receiver takes for none is left out.
func sentText(text string) string {
	if message.Fold(text) == "" {
		return ""
	}
	return text
}

// addRows returns the sum of two rows with the same key. Of spellings, the least is sent,
// so that the row does not depend on the order of its jobs.
func addRows(a, b *message.Summary) (message.Summary, error) {
	out, sum := *a, adder{}
	out.GlobalUserName, out.VO, out.VOGroup, out.VORole = min(a.GlobalUserName, b.GlobalUserName), min(a.VO, b.VO), min(a.VOGroup, b.VOGroup), min(a.VORole, b.VORole)
	out.SubmitHost, out.Infrastructure = min(a.SubmitHost, b.SubmitHost), min(a.Infrastructure, b.Infrastructure)
	out.EarliestEndTime, out.LatestEndTime = min(a.EarliestEndTime, b.EarliestEndTime), max(a.LatestEndTime, b.LatestEndTime)
	out.WallDuration, out.CPUDuration = sum.addChecked(a.WallDuration, b.WallDuration), sum.addChecked(a.CPUDuration, b.CPUDuration)
	out.NormalisedWallDuration = sum.addAmounts(a.NormalisedWallDuration, b.NormalisedWallDuration)
	out.NormalisedCPUDuration = sum.addAmounts(a.NormalisedCPUDuration, b.NormalisedCPUDuration)
	if out.NumberOfJobs = sum.addChecked(a.NumberOfJobs, b.NumberOfJobs); out.NumberOfJobs > math.MaxInt32 {
		return out, fmt.Errorf("the receiver takes no row of more than %d jobs", math.MaxInt32)
	}
	return out, sum.err
}

func (t Total) addRow(row *message.Summary) (Total, error) {
	sum := adder{}
	out := Total{t.Records + 1, sum.addChecked(t.Jobs, row.NumberOfJobs), sum.addChecked(t.Wall, row.WallDuration), sum.addChecked(t.CPU, row.CPUDuration)}
	return out, sum.err
}

// adder adds numbers that are not negative and remembers when a sum was too large.
type adder struct{ err error }

func (s *adder) addChecked(a, b int64) int64 {
	if a > math.MaxInt64-b {
		s.err = fmt.Errorf("the sum of %d and %d is too large", a, b)
		return a
	}
	return a + b
}

// addAmounts adds amounts by benchmark, in the order of a.
func (s *adder) addAmounts(a, b []message.Amount) []message.Amount {
	out := slices.Clone(a)
	for _, x := range b {
		i := slices.IndexFunc(out, func(o message.Amount) bool { return o.Benchmark == x.Benchmark })
		if i < 0 {
			out = append(out, x)
			continue
		}
		out[i].Value = s.addChecked(out[i].Value, x.Value)
	}
	return out
}

// Total returns what was added so far.
func (s *Sums) Total() Total { return s.total }

// Summaries returns the rows, ordered by their key.
func (s *Sums) Summaries() []message.Summary {
	out := make([]message.Summary, 0, len(s.rows))
	for _, r := range s.rows {
		one := r.Summary
		one.InfrastructureDescription = joinDescriptions(slices.Sorted(maps.Keys(r.descriptions)))
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b message.Summary) int { return keyOf(&a).compareKeys(keyOf(&b)) })
	return out
}

// joinDescriptions joins the descriptions of a row, as many as the receiver's column holds.
func joinDescriptions(list []string) string {
	for ; len(list) > 1; list = list[:len(list)-1] {
		if text := strings.Join(list, ", "); message.CheckText("InfrastructureDescription", text) == nil {
			return text
		}
	}
	return strings.Join(list, "")
}

// Syncs returns how many jobs each submit host has, ordered by its name.
func (s *Sums) Syncs() []message.Sync {
	hosts := map[string]*message.Sync{}
	for _, r := range s.rows {
		k := message.Fold(r.SubmitHost)
		if hosts[k] == nil {
			hosts[k] = &message.Sync{Site: s.site, SubmitHost: r.SubmitHost, Year: s.month.Year, Month: s.month.Month}
		}
		hosts[k].SubmitHost = min(hosts[k].SubmitHost, r.SubmitHost)
		hosts[k].NumberOfJobs += r.NumberOfJobs
	}
	var out []message.Sync
	for _, k := range slices.Sorted(maps.Keys(hosts)) {
		out = append(out, *hosts[k])
	}
	return out
}
