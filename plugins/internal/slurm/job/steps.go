package job

import (
	"fmt"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
)

// steps is what the steps of a run add up to. It does not grow with them.
type steps struct {
	count  int64
	cpu    sum // in microseconds
	energy sum
	rss    sum // over the steps, of each step's largest task
	max    map[string]int64
	tasks  sum // resident memory of all tasks of a step: the largest step counts
	read   sum
	wrote  sum
	err    error
}

// sum is a number that may be unknown.
type sum struct {
	n     int64
	known bool
}

func (s *sum) add(n int64) { s.n, s.known = s.n+n, true }

func (s *sum) raise(n int64) { s.n, s.known = max(s.n, n), true }

// Step adds the row of one of the run's steps. A field that cannot be read, or
// spoilt, which says that the row is not as it should be, makes those attributes
// fail that need the steps.
func (r *Run) Step(fields []string, spoilt error) {
	s := &r.steps
	s.count++
	for _, err := range []error{
		spoilt,
		s.addCPU(r.plan, fields), s.addEnergy(r.plan, fields), s.addLargest(r.plan, fields), s.addUsage(r.plan, fields),
	} {
		if err != nil && s.err == nil {
			s.err = fmt.Errorf("step %s: %w", fields[1], err)
		}
	}
}

func (s *steps) addCPU(p *Plan, fields []string) error {
	text, _ := p.get(fields, "TotalCPU")
	m, known, err := field.Duration(text)
	if measured(int64(m), known) {
		s.cpu.add(int64(m))
	}
	return err
}

func (s *steps) addEnergy(p *Plan, fields []string) error {
	text, _ := p.get(fields, "ConsumedEnergyRaw")
	n, known, err := field.Size(text)
	if measured(n, known) {
		s.energy.add(n)
	}
	return err
}

// measured reports whether a number was. Slurm writes 0 for the energy of nodes that
// have no meter, for the CPU time of steps that go on or whose use nothing gathers, for
// the memory of a task that ended before its first sample, and for virtual memory under
// cgroup/v2; nothing runs without any.
func measured(n int64, known bool) bool { return known && n > 0 }

// Columns whose largest value over the steps counts.
func largestColumns() []string {
	return []string{"MaxRSS", "MaxVMSize", "MaxPages", "MaxDiskRead", "MaxDiskWrite", "NTasks"}
}

// sampled reports whether a step was: a task has resident memory, so that without any
// the zeros of its other samples say nothing.
func (p *Plan) sampled(fields []string) bool {
	for _, column := range []string{"MaxRSS", "MaxVMSize"} {
		text, _ := p.get(fields, column)
		if n, known, err := field.Size(text); err == nil && measured(n, known) {
			return true
		}
	}
	usage, _ := p.get(fields, "TRESUsageInTot")
	list, err := field.TRES(usage)
	if err != nil {
		return false
	}
	n, known, err := field.Amount(list, "mem")
	return err == nil && measured(n, known)
}

func (s *steps) addLargest(p *Plan, fields []string) error {
	sampled := p.sampled(fields)
	for _, column := range largestColumns() {
		text, _ := p.get(fields, column)
		n, known, err := field.Size(text)
		if err != nil {
			return fmt.Errorf("%s: %w", column, err)
		}
		if !known || n == 0 && (!sampled || column == "MaxRSS" || column == "MaxVMSize") {
			continue
		}
		if s.max == nil {
			s.max = map[string]int64{}
		}
		if old, ok := s.max[column]; !ok || n > old {
			s.max[column] = n
		}
		if column == "MaxRSS" {
			s.rss.add(n)
		}
	}
	return nil
}

// addUsage reads what all tasks of the step used together.
func (s *steps) addUsage(p *Plan, fields []string) error {
	for _, use := range []struct {
		column, resource string
		take             func(int64)
	}{
		{"TRESUsageInTot", "mem", s.tasks.raise}, {"TRESUsageInTot", "fs/disk", s.read.add}, {"TRESUsageOutTot", "fs/disk", s.wrote.add},
	} {
		text, _ := p.get(fields, use.column)
		list, err := field.TRES(text)
		if err != nil {
			return fmt.Errorf("%s: %w", use.column, err)
		}
		n, known, err := field.Amount(list, use.resource)
		if err != nil {
			return fmt.Errorf("%s: %w", use.column, err)
		}
		if known && (n > 0 || use.resource != "mem" && p.sampled(fields)) {
			use.take(n)
		}
	}
	return nil
}
