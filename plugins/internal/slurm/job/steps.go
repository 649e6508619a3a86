package job

import (
	"errors"
	"fmt"
	"math"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// steps is what the steps of a run add up to. It does not grow with them.
type steps struct {
	count  int64
	cpu    sum // in microseconds
	energy sum
	rss    sum // over the steps, of each step's largest task
	max    map[string]*sum
	tasks  sum // resident memory of all tasks of a step: the largest step counts
	read   sum
	wrote  sum
}

// sum is a number that may be unknown.
type sum struct {
	n     int64
	known bool
	err   error // a part of it cannot be read, or it is too large
}

func (s *sum) addNumber(n int64) {
	if n > math.MaxInt64-s.n {
		s.failWith(errors.New("the sum over the steps is too large"))
		return
	}
	s.n, s.known = s.n+n, true
}

func (s *sum) raiseTo(n int64) { s.n, s.known = max(s.n, n), true }

func (s *sum) failWith(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *sum) sumValue() (sdk.Value, error) { return numberValue(s.n, s.known, s.err) }

// allSums are the sums.
func (s *steps) allSums() []*sum {
	out := []*sum{&s.cpu, &s.energy, &s.rss, &s.tasks, &s.read, &s.wrote}
	for _, column := range largestColumns() {
		out = append(out, s.largestOf(column))
	}
	return out
}

// largestOf is the greatest value of a column.
func (s *steps) largestOf(column string) *sum {
	if s.max == nil {
		s.max = map[string]*sum{}
	}
	if s.max[column] == nil {
		s.max[column] = &sum{}
	}
	return s.max[column]
}

// step is the row of a step.
type step struct {
	*steps
	plan   *Plan
	fields []string
}

// Step adds the row of one of the run's steps. A field that cannot be read makes those
// attributes fail that need it; spoilt, which says that the row is not as it should be,
// all that need the steps.
func (r *Run) Step(fields []string, spoilt error) {
	r.steps.count++
	s := step{steps: &r.steps, plan: r.plan, fields: fields}
	if spoilt != nil {
		for _, sum := range s.allSums() {
			s.failColumn(sum, "", spoilt)
		}
		return
	}
	s.addCPU()
	s.addEnergy()
	s.addLargest()
	s.addUsage()
}

// failColumn notes that a column of the step cannot be read.
func (s *step) failColumn(sum *sum, column string, err error) {
	if column != "" {
		err = fmt.Errorf("%s: %w", column, err)
	}
	sum.failWith(fmt.Errorf("step %s: %w", s.fields[1], err))
}

func (s *step) sizeOf(column string) (n int64, known bool, err error) {
	text, _ := s.plan.getField(s.fields, column)
	return field.Size(text)
}

func (s *step) addCPU() {
	text, _ := s.plan.getField(s.fields, "TotalCPU")
	m, known, err := field.Duration(text)
	switch {
	case err != nil:
		s.failColumn(&s.cpu, "TotalCPU", err)
	case wasMeasured(int64(m), known):
		s.cpu.addNumber(int64(m))
	}
}

func (s *step) addEnergy() {
	n, known, err := s.sizeOf("ConsumedEnergyRaw")
	switch {
	case err != nil:
		s.failColumn(&s.energy, "ConsumedEnergyRaw", err)
	case wasMeasured(n, known):
		s.energy.addNumber(n)
	}
}

// wasMeasured reports whether a number was. Slurm writes 0 for the energy of nodes that
// have no meter, for the CPU time of steps that go on or whose use nothing gathers, for
// the memory of a task that ended before its first sample, and for virtual memory under
// cgroup/v2; nothing runs without any.
func wasMeasured(n int64, known bool) bool { return known && n > 0 }

// Columns whose largest value over the steps counts.
func largestColumns() []string {
	return []string{"MaxRSS", "MaxVMSize", "MaxPages", "MaxDiskRead", "MaxDiskWrite", "NTasks"}
}

// wasSampled reports whether the step was: a task has resident memory, so that without any
// the zeros of its other samples say nothing. With an error it is not known.
func (s *step) wasSampled() (yes bool, unsure error) {
	for _, column := range []string{"MaxRSS", "MaxVMSize"} {
		n, known, err := s.sizeOf(column)
		if wasMeasured(n, known) {
			return true, nil
		}
		if err != nil && unsure == nil {
			unsure = fmt.Errorf("%s: %w", column, err)
		}
	}
	n, known, err := s.usageOf("TRESUsageInTot", "mem")
	if wasMeasured(n, known) {
		return true, nil
	}
	if unsure == nil {
		unsure = err
	}
	return false, unsure
}

func (s *step) addLargest() {
	sampled, unsure := s.wasSampled()
	for _, column := range largestColumns() {
		n, known, err := s.sizeOf(column)
		memory := column == "MaxRSS" || column == "MaxVMSize"
		to := s.largestOf(column)
		switch {
		case err != nil:
			s.failColumn(to, column, err)
			if column == "MaxRSS" {
				s.failColumn(&s.rss, column, err)
			}
			continue
		case !known || n == 0 && memory:
			continue
		case n == 0 && unsure != nil:
			s.failColumn(to, "", unsure)
			continue
		case n == 0 && !sampled:
			continue
		}
		to.raiseTo(n)
		if column == "MaxRSS" {
			s.rss.addNumber(n)
		}
	}
}

// usageOf is the amount of a resource in a TRES list of the step.
func (s *step) usageOf(column, resource string) (n int64, known bool, err error) {
	text, _ := s.plan.getField(s.fields, column)
	list, err := field.TRES(text)
	if err == nil {
		n, known, err = field.Amount(list, resource)
	}
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w", column, err)
	}
	return n, known, nil
}

// addUsage reads what all tasks of the step used together.
func (s *step) addUsage() {
	sampled, unsure := s.wasSampled()
	for _, use := range []struct {
		column, resource string
		to               *sum
		take             func(int64)
	}{
		{"TRESUsageInTot", "mem", &s.tasks, s.tasks.raiseTo}, {"TRESUsageInTot", "fs/disk", &s.read, s.read.addNumber}, {"TRESUsageOutTot", "fs/disk", &s.wrote, s.wrote.addNumber},
	} {
		n, known, err := s.usageOf(use.column, use.resource)
		switch {
		case err != nil:
			s.failColumn(use.to, "", err)
		case known && n > 0, known && use.resource != "mem" && sampled:
			use.take(n)
		case known && use.resource != "mem" && unsure != nil:
			s.failColumn(use.to, "", unsure)
		}
	}
}
