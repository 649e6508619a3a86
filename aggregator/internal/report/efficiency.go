package report

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// EfficiencyOptions say what a report about efficiency is of.
type EfficiencyOptions struct {
	Periods []string // as in UsageOptions
	Zone    string
	By      string            // the keys that give the lines, as [v1.SplitList] reads them; "": users
	Where   map[string]string // of whom it is; empty: of all
	Top     int               // the lines of a table at most, and one of the others; 0: all
	Worst   int               // how many jobs are named, up to 100; 0: 10
	Scan    int               // how many jobs are looked at one by one; 0: 50 000
	// The components that say what was used: totals of CPU seconds and GPU-seconds, and a
	// rate in the unit of Memory. "": TotalCPU, TotalGPU, MemoryUsed.
	CPU, Memory, GPUs string
	MemoryPerGB       float64 // how much of the component Memory is a GiB; 0: 1024
	Factors           Factors // the zero value: [DefaultFactors]
	Keys              Keys
	Now               time.Time
}

// efficiencyEntry is what was booked and used.
func efficiencyEntry() Entry {
	f := DefaultFactors()
	energy := func(name, title, about string, value float64) Param {
		text := strconv.FormatFloat(value, 'f', -1, 64)
		return textParam(name, title, about, text, text)
	}
	return Entry{
		Report: v1.Report{Name: "efficiency", Title: "Efficiency", About: "What jobs requested and used, how long they waited, and potential savings.", Parameters: []Param{
			periodParam(),
			textParam("by", "Group by", "The key that gives the lines; also project, pi and cluster.", "user_id", "group_id", "user_id", "project", "pi"),
			whereParam(), topParam(25),
			energy("kwh_per_core_hour", "kWh of a core and hour", "Energy that a core draws, in kWh.", f.CoreHour),
			energy("kwh_per_gb_hour", "kWh of a GB and hour", "Energy that a GB of memory draws, in kWh.", f.GBHour),
			energy("kwh_per_gpu_hour", "kWh of a GPU and hour", "Energy that a GPU draws, in kWh.", f.GPUHour),
			energy("pue", "PUE", "What the site draws for a kWh of its computers.", f.PUE),
			energy("carbon_per_kwh", "kg of CO2 of a kWh", "CO2 equivalents of a kWh, in kg.", f.Carbon),
			memoryParam(),
			numberParam("jobs", "Jobs at most", "How many jobs are named, from 1 to 100.", defaultWorst),
			numberParam("scan", "Jobs looked at", "How many jobs are looked at one by one for the median wait and the list of jobs; when there are more, those that ran the longest.", defaultScan),
			textParam("cpu", "CPU time", "The component with the CPU seconds that were used.", "TotalCPU", "TotalCPU"),
			textParam("memory_used", "Memory used", "The component with the memory that was used.", usedMemory, usedMemory),
			textParam("gpus_used", "GPU time", "The component with the GPU-seconds that were used.", usedGPUs, usedGPUs),
			zoneParam(),
		}},
		Long: `What jobs requested and used (cores, memory, GPUs, GPU memory), how long they waited,
and which left the most unused; with potential savings in core-hours, GiB-hours, kWh and CO2.

Used cores are the CPU seconds of the component TotalCPU, which the sources for
Slurm, Grid Engine and HTCondor report, and that for Kubernetes where it has a
Prometheus. Used memory is the component MemoryUsed, a rate in the unit of Memory
with the peak of the job; the source for HTCondor reports it, those for Slurm where
Jobstats measures jobs, that for Kubernetes with a Prometheus. Used GPUs are the
GPU-seconds of the component TotalGPU, of Jobstats; used GPU memory is the component
GPUMemoryUsed, a rate with the peak of the job, and booked is GPUMemory, the memory of
its GPUs, both in MiB and of Jobstats. A mapping can add them, see
hcl/examples/slurm.hcl.
Values that records lack are named below the report and are not counted as 0.

The factors for energy and CO2 are those of Green Algorithms for unknown hardware
and the world average (Lannelongue et al. 2021, doi 10.1002/advs.202100707):
12 W per core, 0.3725 W per GB, 200 W per GPU, PUE 1.67, 475 g per kWh. Replace them
by those of your site; the report names their origin.`,
		Example: "  bursar report efficiency\n  bursar report efficiency -period last-month -by group_id -o efficiency.html\n" +
			"  bursar report efficiency -where group_id=atlas -pue 1.2 -carbon-per-kwh 0.35 -kwh-per-core-hour 0.008",
		make: func(ctx context.Context, r v1.API, q Query) (*Document, error) {
			o := EfficiencyOptions{Periods: q.All("period"), Zone: q.One("zone"), By: q.One("by"), Where: q.Pairs("where"), Top: q.Number("top"), Now: q.Now, Keys: q.Keys}
			o.Worst, o.Scan = q.Number("jobs"), q.Number("scan")
			o.CPU, o.Memory, o.GPUs = q.One("cpu"), q.One("memory_used"), q.One("gpus_used")
			err := q.readFactors(
				factor{"kwh_per_core_hour", &o.Factors.CoreHour}, factor{"kwh_per_gb_hour", &o.Factors.GBHour}, factor{"kwh_per_gpu_hour", &o.Factors.GPUHour},
				factor{"pue", &o.Factors.PUE}, factor{"carbon_per_kwh", &o.Factors.Carbon}, factor{"memory_per_gb", &o.MemoryPerGB},
			)
			if err == nil { // 0 is no default here
				err = o.checkOptions()
			}
			if err != nil {
				return nil, err
			}
			return Efficiency(ctx, r, o)
		},
	}
}

// Factors turn what no one used into energy and its carbon dioxide.
type Factors struct {
	CoreHour float64 // kWh that a core draws in an hour
	GBHour   float64 // kWh that a GB of memory draws in an hour
	GPUHour  float64 // kWh that a GPU draws in an hour
	PUE      float64 // what the site draws for each kWh of its computers
	Carbon   float64 // kg of CO2 equivalents for a kWh
}

// DefaultFactors are those of Green Algorithms for hardware and a place that are not
// known: Lannelongue, Grealey, Inouye, Advanced Science 2021, doi 10.1002/advs.202100707.
func DefaultFactors() Factors {
	return Factors{CoreHour: 0.012, GBHour: 0.0003725, GPUHour: 0.2, PUE: 1.67, Carbon: 0.475}
}

// usedMemory is the component with the memory that was used, in the unit of Memory.
const usedMemory = "MemoryUsed"

// usedGPUs is the component with the GPU-seconds that were used.
const usedGPUs = "TotalGPU"

// How many jobs are named and looked at where nothing is said.
const (
	defaultWorst = 10
	defaultScan  = 50_000
)

func (o *EfficiencyOptions) setDefaults() {
	o.Periods, o.Keys = DefaultPeriods(o.Periods), o.Keys.Whole()
	for _, d := range []struct {
		at    *string
		value string
	}{{&o.By, o.Keys.User}, {&o.CPU, "TotalCPU"}, {&o.Memory, usedMemory}, {&o.GPUs, usedGPUs}} {
		if *d.at == "" {
			*d.at = d.value
		}
	}
	for _, d := range []struct {
		at    *int
		value int
	}{{&o.Worst, defaultWorst}, {&o.Scan, defaultScan}} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	if o.MemoryPerGB == 0 {
		o.MemoryPerGB = 1024
	}
	if o.Factors == (Factors{}) {
		o.Factors = DefaultFactors()
	}
}

// checkOptions returns what no report can be made with. The error wraps [ErrQuery].
func (o *EfficiencyOptions) checkOptions() error {
	f := &o.Factors
	return checkBounds(
		bounds{"top", float64(o.Top), 0, math.MaxInt32}, bounds{"jobs", float64(o.Worst), 1, mostJobs}, bounds{"scan", float64(o.Scan), 1, 10_000_000},
		bounds{"memory_per_gb", o.MemoryPerGB, leastMemory, mostFactor}, bounds{"kwh_per_core_hour", f.CoreHour, 0, mostFactor}, bounds{"kwh_per_gb_hour", f.GBHour, 0, mostFactor},
		bounds{"kwh_per_gpu_hour", f.GPUHour, 0, mostFactor}, bounds{"pue", f.PUE, 1, 100}, bounds{"carbon_per_kwh", f.Carbon, 0, mostFactor},
	)
}

// resource is something that is booked, and may be used less than that.
type resource struct {
	name, title  string
	unit         string
	booked, used string   // components
	kind         string   // of used: a total, or a rate
	perBooked    *big.Rat // by what amount × hours of booked is divided
	perUsed      *big.Rat
	kWh          *big.Rat // of one for an hour, with all that the site draws; nil: it draws nothing of its own
}

func (o *EfficiencyOptions) allResources() []resource {
	drawn := func(perHour float64) *big.Rat {
		return new(big.Rat).Mul(exactDecimal(perHour), exactDecimal(o.Factors.PUE))
	}
	one, hour, gb, mib := big.NewRat(1, 1), big.NewRat(3600, 1), exactDecimal(o.MemoryPerGB), big.NewRat(1024, 1)
	return []resource{
		{"cores", "Cores", "core-hours", "Cores", o.CPU, "total", one, hour, drawn(o.Factors.CoreHour)},
		{"memory", "Memory", "GiB-hours", "Memory", o.Memory, "rate", gb, gb, drawn(o.Factors.GBHour)},
		{"gpus", "GPUs", "GPU-hours", "GPUs", o.GPUs, "total", one, hour, drawn(o.Factors.GPUHour)},
		{"gpu_memory", "GPU memory", "GiB-hours", "GPUMemory", "GPUMemoryUsed", "rate", mib, mib, nil},
	}
}

// exactDecimal returns a factor as it was written: the shortest decimal of the number.
func exactDecimal(f float64) *big.Rat {
	if r := v1.Rational(strconv.FormatFloat(f, 'g', -1, 64)); r != nil {
		return r
	}
	return new(big.Rat)
}

// Efficiency says how much of what jobs had booked they used – cores, memory, GPUs and their memory –,
// how long they waited, which jobs left the most unused, and what could be saved, with
// the energy and the carbon dioxide that go with it. What records do not say is not
// taken for 0 but named in the notes.
func Efficiency(ctx context.Context, r v1.API, o EfficiencyOptions) (*Document, error) {
	o.setDefaults()
	if err := o.checkOptions(); err != nil {
		return nil, err
	}
	zone, err := clockOf(ctx, r, &o.Zone)
	if err != nil {
		return nil, fmt.Errorf("report efficiency: %w", err)
	}
	d := &Document{Format: Format, Report: "efficiency", Title: "Booked and used by " + o.By, Subject: subjectText(o.Where), Made: v1.Time{Time: o.Now.UTC()}, Zone: zone.String()}
	found := false
	var first span
	for i, window := range o.Periods {
		p := &efficiencyPeriod{o: &o, r: r, window: window, number: i + 1, known: map[string]string{}}
		if err := p.buildTables(ctx, zone); err != nil {
			return nil, fmt.Errorf("report efficiency of %s: %w", window, err)
		}
		if i == 0 {
			first = p.span
		}
		found = found || p.records > 0
		d.Periods = append(d.Periods, p.Period)
		d.Add(p.tables...)
		d.Notes = append(d.Notes, p.notes...)
	}
	if !found {
		n := absent{of: "report efficiency", where: o.Where, zone: o.Zone, periods: o.Periods, begin: first.From}
		return nil, n.explainAbsence(ctx, r)
	}
	d.Notes = append(d.Notes, o.methodNotes()...)
	return d, d.Check()
}

func (o *EfficiencyOptions) methodNotes() []string {
	f := &o.Factors
	return []string{
		"Used of cores is CPU time; used of memory is the peak of each job, as if it had been used all the time; used of GPUs is their mean utilization over the run; only jobs whose records say both are in a table of what was booked and used. Could be saved is booked − used of each line, and in all the sum of that: who used more than was booked does not make up for others.",
		fmt.Sprintf("Energy: %g kWh for a core-hour, %g for a GB-hour, %g for a GPU-hour, × %g for cooling and losses (PUE), and %g kg of CO2 equivalents for a kWh. Where nothing else is given these are the factors of Green Algorithms for unknown hardware and the mean of the world (doi 10.1002/advs.202100707). What is idle draws less than that: it is what could be saved at most.",
			f.CoreHour, f.GBHour, f.GPUHour, f.PUE, f.Carbon),
		"Waiting is from submission to start, of the jobs that began in the period; the jobs that left the most unused are of these, with all that they had until their end.",
	}
}

// efficiencyPeriod is what is known of one period.
type efficiencyPeriod struct {
	Period
	o       *EfficiencyOptions
	r       v1.API
	window  string
	number  int
	span    span
	records int64
	known   map[string]string // components that records of the period have, with their kind
	lacks   map[string]int64
	tables  []Table
	notes   []string
}

func (p *efficiencyPeriod) addNote(format string, args ...any) {
	p.notes = append(p.notes, p.Name+": "+fmt.Sprintf(format, args...))
}

func (p *efficiencyPeriod) queryUsage(ctx context.Context, q v1.UsageQuery) (*v1.Usage, error) {
	q.Window, q.Unit, q.Zone, q.Where = p.window, "hour", p.o.Zone, p.o.Where
	return askUsage(ctx, p.r, q)
}

func (p *efficiencyPeriod) buildTables(ctx context.Context, zone *time.Location) error {
	all, err := p.queryUsage(ctx, v1.UsageQuery{By: p.o.By})
	if err != nil {
		return err
	}
	p.span, p.Period = windowOf(all), windowOf(all).namedPeriod(p.window, zone)
	p.notes = append(p.notes, view.Of(p.Name, append(view.KnownNotes(&all.UsageAbout), view.CompleteNotes(&all.Complete, zone.String())...))...)
	p.records = int64(all.Records)
	if p.records == 0 {
		p.addNote("no record ran.")
		return nil
	}
	p.lacks = map[string]int64{}
	for i := range all.Measures {
		if m := &all.Measures[i]; m.Kind == "rate" || m.Kind == "total" {
			if kind, twice := p.known[m.Name]; twice && kind != m.Kind {
				m.Kind = kind + " and a " + m.Kind
			}
			p.known[m.Name] = m.Kind
			if m.Without != nil {
				p.lacks[m.Name] = int64(*m.Without)
			}
		}
	}
	var saved []savings
	var tables []Table
	for _, res := range p.o.allResources() {
		s, err := p.resourceSavings(ctx, all, res)
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		saved = append(saved, *s)
		if s.total.used != nil {
			tables = append(tables, p.byKey(s))
		}
	}
	p.tables = append([]Table{p.savingsTable(saved)}, tables...)
	return p.addJobTables(ctx, all)
}

// savings are what was booked and used of a resource, in all and by group.
type savings struct {
	resource
	total  share
	groups []share
}

// share is a group's part; used is nil where it is not known.
type share struct {
	name         string
	jobs         *big.Rat
	booked, used *big.Rat
	saved        *big.Rat // what could be saved, of several groups the sum; nil: follows from booked and used
}

// resourceSavings asks for a resource; nil when no one had any.
func (p *efficiencyPeriod) resourceSavings(ctx context.Context, all *v1.Usage, res resource) (*savings, error) {
	if p.known[res.booked] == "" {
		return nil, nil
	}
	s := &savings{resource: res}
	switch kind := p.known[res.used]; kind {
	case res.kind:
	case "":
		p.addNote("how much of the %s was used is not in the records: none has the component %s. %s", res.title, res.used, p.missingHint(res))
		s.total = share{booked: totalOf(all, res.booked, res.perBooked)}
		return s, nil
	default:
		p.addNote("how much of the %s was used is not known: the component %s is a %s, and is wanted as a %s. %s", res.title, res.used, kind, res.kind, p.missingHint(res))
		s.total = share{booked: totalOf(all, res.booked, res.perBooked)}
		return s, nil
	}
	q := v1.UsageQuery{By: p.o.By, Measure: v1.JoinList("jobs", res.booked, res.used)}
	booked, used := p.records-p.lacks[res.booked], p.records-p.lacks[res.used]
	if min(booked, used) < p.records {
		known := v1.NumberTest{Gte: new(0)}
		q.Component = map[string]v1.NumberTest{res.used: known, res.booked: known}
	}
	a, err := p.queryUsage(ctx, q)
	if err != nil {
		return nil, err
	}
	if both := int64(a.Records); max(booked, used) > both {
		p.addNote("%d of %d records with %s do not say how much they used, and %d that used some do not say how much they booked; they are not in its figures.", booked-both, booked, res.title, used-both)
	}
	s.total = share{jobs: totalOf(a, "jobs", nil), booked: totalOf(a, res.booked, res.perBooked), used: totalOf(a, res.used, res.perUsed)}
	for g := range a.Groups {
		one := share{name: view.GroupName(&a.Groups[g]), jobs: groupTotal(a, "jobs", g, nil), booked: groupTotal(a, res.booked, g, res.perBooked), used: groupTotal(a, res.used, g, res.perUsed)}
		one.saved = one.unusedAmount()
		s.groups = append(s.groups, one)
	}
	s.total.saved = sumUnused(s.groups)
	slices.SortStableFunc(s.groups, func(x, y share) int { return y.unusedAmount().Cmp(x.unusedAmount()) })
	s.mergeRest(p.o.Top)
	return s, nil
}

// missingHint says how a site comes to know what is missing.
func (p *efficiencyPeriod) missingHint(res resource) string {
	switch res.name {
	case "memory":
		return "The sources for Slurm report it where Jobstats measures jobs, that for Kubernetes where it has a Prometheus, and a mapping can, as the one in hcl/examples/slurm.hcl: the peak, a rate in the unit of Memory."
	case "gpu_memory":
		return "The sources for Slurm report it where Jobstats measures jobs, and a mapping can: the peak, a rate in MiB."
	case "gpus":
		return "The sources for Slurm report it where Jobstats measures jobs, and a mapping can: a total in GPU-seconds."
	}
	return "A mapping can tell it in this component, a total in seconds."
}

// sumUnused is what groups could save in all: what one used beyond what it booked does not
// make up for what another did not use.
func sumUnused(groups []share) *big.Rat {
	sum := new(big.Rat)
	for i := range groups {
		sum.Add(sum, groups[i].unusedAmount())
	}
	return sum
}

// unusedAmount is what was booked and not used; 0 where more was used than booked.
func (s *share) unusedAmount() *big.Rat {
	if s.saved != nil {
		return s.saved
	}
	if s.used == nil || s.booked == nil || s.booked.Cmp(s.used) < 0 {
		return new(big.Rat)
	}
	return new(big.Rat).Sub(s.booked, s.used)
}

// mergeRest merges all but the first so many groups into one.
func (s *savings) mergeRest(top int) {
	if top <= 0 || len(s.groups) <= top {
		return
	}
	rest := share{name: view.Others(len(s.groups) - top), jobs: new(big.Rat), booked: new(big.Rat), used: new(big.Rat), saved: sumUnused(s.groups[top:])}
	for _, g := range s.groups[top:] {
		for _, part := range []struct{ to, from *big.Rat }{{rest.jobs, g.jobs}, {rest.booked, g.booked}, {rest.used, g.used}} {
			if part.from != nil {
				part.to.Add(part.to, part.from)
			}
		}
	}
	s.groups = append(s.groups[:top:top], rest)
}

// totalOf is a measure of all groups, divided; nil when it is not there.
func totalOf(a *v1.Usage, name string, by *big.Rat) *big.Rat {
	m := a.Find(name)
	if m == nil {
		return nil
	}
	return dividedBy(v1.Figure(m.Total).Number(), by)
}

// groupTotal is a measure of a group, divided; nil when it is not there.
func groupTotal(a *v1.Usage, name string, group int, by *big.Rat) *big.Rat {
	m := a.Find(name)
	if m == nil || group >= len(m.Totals) {
		return nil
	}
	return dividedBy(v1.Figure(m.Totals[group]).Number(), by)
}

func dividedBy(n, by *big.Rat) *big.Rat {
	if n == nil || by == nil || by.Sign() == 0 {
		return n
	}
	return new(big.Rat).Quo(n, by)
}
