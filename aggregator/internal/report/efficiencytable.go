package report

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// savingsTable says of each resource what could be saved.
func (p *efficiencyPeriod) savingsTable(list []savings) Table {
	t := Table{
		Name: fmt.Sprintf("saving-%d", p.number), Title: "Potential savings, " + p.Name,
		Columns: []Column{
			{Name: "resource", Title: "Resource", Kind: Text},
			{Name: "unit", Title: "In", Kind: Text},
			{Name: "booked", Title: "Booked", Kind: Number, Period: p.number},
			{Name: "used", Title: "Used", Kind: Number, Period: p.number},
			{Name: "efficiency", Title: "Efficiency", Kind: Share, Period: p.number},
			{Name: "saving", Title: "Could be saved", Kind: Number, Period: p.number},
			{Name: "kwh", Title: "Energy", Kind: Number, Unit: "kWh", Period: p.number},
			{Name: "co2", Title: "CO2", Kind: Number, Unit: "kg", Period: p.number},
		},
	}
	energy, known := new(big.Rat), 0
	for i := range list {
		s := &list[i]
		cells := p.savingsCells(s, &s.total)
		t.Rows = append(t.Rows, append([]Cell{v1.Words(s.title), v1.Words(s.unit)}, cells...))
		if s.total.used != nil && s.kWh != nil {
			energy.Add(energy, new(big.Rat).Mul(s.total.unusedAmount(), s.kWh))
			known++
		}
	}
	if known > 1 {
		t.Totals = []Cell{v1.Words("Total"), {}, {}, {}, {}, {}, v1.Rat(energy), v1.Rat(new(big.Rat).Mul(energy, exactDecimal(p.o.Factors.Carbon)))}
	}
	return t
}

// savingsCells are the cells from booked to carbon dioxide.
func (p *efficiencyPeriod) savingsCells(s *savings, g *share) []Cell {
	if g.used == nil {
		return []Cell{v1.Rat(g.booked), {}, {}, {}, {}, {}}
	}
	spare := g.unusedAmount()
	cells := []Cell{v1.Rat(g.booked), v1.Rat(g.used), Quotient(g.used, g.booked), v1.Rat(spare), {}, {}}
	if s.kWh != nil {
		energy := new(big.Rat).Mul(spare, s.kWh)
		cells[4], cells[5] = v1.Rat(energy), v1.Rat(new(big.Rat).Mul(energy, exactDecimal(p.o.Factors.Carbon)))
	}
	return cells
}

// Quotient is not known where one is divided by nothing.
func Quotient(a, b *big.Rat) Cell {
	if a == nil || b == nil || b.Sign() == 0 {
		return Cell{}
	}
	return v1.Rat(new(big.Rat).Quo(a, b))
}

// byKey is the table of a resource, by group.
func (p *efficiencyPeriod) byKey(s *savings) Table {
	t := Table{
		Name: fmt.Sprintf("%s-%d", s.name, p.number), Title: s.title + " by " + p.o.By + ", " + p.Name,
		Columns: []Column{
			{Name: p.o.By, Title: p.o.By, Kind: Text},
			{Name: "jobs count", Title: "Jobs", Kind: Number, Period: p.number},
			{Name: "booked " + s.unit, Title: "Booked", Kind: Number, Unit: s.unit, Period: p.number},
			{Name: "used " + s.unit, Title: "Used", Kind: Number, Unit: s.unit, Period: p.number},
			{Name: "efficiency of " + s.name, Title: "Efficiency", Kind: Share, Period: p.number},
			{Name: "saving " + s.unit, Title: "Could be saved", Kind: Number, Unit: s.unit, Period: p.number},
			{Name: "energy kWh", Title: "Energy", Kind: Number, Unit: "kWh", Period: p.number},
			{Name: "CO2 kg", Title: "CO2", Kind: Number, Unit: "kg", Period: p.number},
		},
		Chart: &Chart{Kind: Bars, Label: p.o.By, Values: []string{"booked " + s.unit, "used " + s.unit}},
	}
	for i := range s.groups {
		g := &s.groups[i]
		t.Rows = append(t.Rows, append([]Cell{v1.Words(g.name), v1.Rat(g.jobs)}, p.savingsCells(s, g)...))
	}
	if len(t.Rows) > 1 {
		t.Totals = append([]Cell{v1.Words("Total"), v1.Rat(s.total.jobs)}, p.savingsCells(s, &s.total)...)
	}
	if s.kWh == nil {
		t.dropColumn("energy kWh")
		t.dropColumn("CO2 kg")
	}
	return t
}

// waits are how long the jobs of a group waited.
type waits struct {
	name string
	list []time.Duration
}

// addJobTables adds the tables about waiting and, in the first period, the worst jobs.
func (p *efficiencyPeriod) addJobTables(ctx context.Context, all *v1.Usage) error {
	groups := map[string]*waits{}
	var worst []idle
	q := jobQuery{keys: p.o.Keys, where: p.o.Where, started: windowOf(all).timeTest(), most: p.o.Scan, note: p.addNote}
	if key := q.mixedKey(); key != "" {
		p.addNote("jobs are not looked at one by one, so that there are no jobs that left the most unused and no median and longest wait: no single job says its %s of itself.", key)
		return p.meanWaits(ctx, nil)
	}
	whole, err := q.forEachJob(ctx, p.r, func(j *job) bool {
		p.addWait(groups, j)
		if i, ok := p.unusedByJob(j); ok && p.number == 1 {
			worst = insertByUnused(worst, i, p.o.Worst)
		}
		return true
	})
	if err != nil {
		return err
	}
	if !whole {
		p.addNote("more than %d jobs began; only the %d that ran the longest were looked at one by one, so that median and longest wait are not known.", p.o.Scan, p.o.Scan)
		groups = nil
	}
	if slices.ContainsFunc(v1.SplitList(p.o.By), isDerivedKey) {
		p.addNote("median and longest wait are not known by %s: no single job says it of itself.", p.o.By)
		groups = nil
	}
	if err := p.meanWaits(ctx, groups); err != nil {
		return err
	}
	if len(worst) > 0 {
		p.tables = append(p.tables, p.worstJobs(worst))
	}
	return nil
}

func (p *efficiencyPeriod) addWait(groups map[string]*waits, j *job) {
	if j.SubmitTime.IsZero() || j.SubmitTime.After(j.StartTime.Time) {
		return
	}
	var group v1.UsageGroup
	for _, key := range v1.SplitList(p.o.By) {
		var known *string
		if value := j.firstValue(key); value != "" {
			known = &value
		}
		group.Values = append(group.Values, known)
	}
	name := view.GroupName(&group)
	if groups[name] == nil {
		groups[name] = &waits{name: name}
	}
	groups[name].list = append(groups[name].list, j.StartTime.Sub(j.SubmitTime.Time))
}

// medianWait is the middle; the mean of the two in the middle where the number is even.
func (w *waits) medianWait() time.Duration {
	slices.Sort(w.list)
	half := len(w.list) / 2
	if len(w.list)%2 == 1 {
		return w.list[half]
	}
	return (w.list[half-1] + w.list[half]) / 2
}

// minutesCell is a duration as a cell.
func minutesCell(d time.Duration) Cell {
	return v1.Rat(new(big.Rat).Mul(hoursOf(d), big.NewRat(60, 1)))
}

// meanWaits is the table about waiting; without groups median and longest are not known.
func (p *efficiencyPeriod) meanWaits(ctx context.Context, groups map[string]*waits) error {
	a, err := p.queryUsage(ctx, v1.UsageQuery{By: p.o.By, Measure: "started,wait"})
	if err != nil {
		return err
	}
	sixty := big.NewRat(60, 1)
	mean := totalOf(a, "wait", sixty)
	if mean == nil {
		p.addNote("how long jobs waited is not in the records: those that began say no time of submission.")
		return nil
	}
	t := Table{
		Name: fmt.Sprintf("wait-%d", p.number), Title: "Waiting by " + p.o.By + ", " + p.Name,
		Columns: []Column{
			{Name: p.o.By, Title: p.o.By, Kind: Text},
			{Name: "started", Title: "Jobs that began", Kind: Number, Period: p.number},
			{Name: "median", Title: "Median", Kind: Number, Unit: "minutes", Period: p.number},
			{Name: "mean", Title: "Mean", Kind: Number, Unit: "minutes", Period: p.number},
			{Name: "longest", Title: "Longest", Kind: Number, Unit: "minutes", Period: p.number},
		},
	}
	everybody := &waits{}
	for g := range a.Groups {
		name := view.GroupName(&a.Groups[g])
		started := groupTotal(a, "started", g, nil)
		if started == nil || started.Sign() == 0 {
			continue
		}
		row := []Cell{v1.Words(name), v1.Rat(started), {}, v1.Rat(groupTotal(a, "wait", g, sixty)), {}}
		if w := groups[name]; w != nil {
			row[2], row[4] = minutesCell(w.medianWait()), minutesCell(w.list[len(w.list)-1])
			everybody.list = append(everybody.list, w.list...)
		}
		t.Rows = append(t.Rows, row)
	}
	slices.SortStableFunc(t.Rows, func(x, y []Cell) int { return compareCells(y[3], x[3]) })
	if p.o.Top > 0 && len(t.Rows) > p.o.Top {
		p.addNote("of %d lines about waiting the %d with the longest mean are shown.", len(t.Rows), p.o.Top)
		t.Rows = t.Rows[:p.o.Top]
	}
	if len(t.Rows) > 1 {
		t.Totals = []Cell{v1.Words("Total"), v1.Rat(totalOf(a, "started", nil)), {}, v1.Rat(mean), {}}
		if len(everybody.list) > 0 {
			t.Totals[2], t.Totals[4] = minutesCell(everybody.medianWait()), minutesCell(everybody.list[len(everybody.list)-1])
		}
	}
	p.tables = append(p.tables, t)
	return nil
}

// idle is a job with what it left unused.
type idle struct {
	job
	cores, booked, used, spare *big.Rat
	memory, peak               *big.Rat // in GB; nil where not known
}

// unusedByJob looks at a job; false when it has no end, or does not say what it used.
func (p *efficiencyPeriod) unusedByJob(j *job) (idle, bool) {
	cores, _ := j.componentAmount("Cores")
	seconds, kind := j.componentAmount(p.o.CPU)
	if cores == nil || seconds == nil || kind != "total" || j.StopTime.IsZero() {
		return idle{}, false
	}
	i := idle{job: *j, cores: cores, booked: new(big.Rat).Mul(cores, j.runtimeHours()), used: new(big.Rat).Quo(seconds, big.NewRat(3600, 1))}
	i.spare = (&share{booked: i.booked, used: i.used}).unusedAmount()
	gb := exactDecimal(p.o.MemoryPerGB)
	if memory, _ := j.componentAmount("Memory"); memory != nil {
		i.memory = dividedBy(memory, gb)
	}
	if peak, kind := j.componentAmount(p.o.Memory); peak != nil && kind == "rate" {
		i.peak = dividedBy(peak, gb)
	}
	return i, i.spare.Sign() > 0
}

// insertByUnused adds a job to those that left the most unused, in that order, and drops the last of
// more than so many.
func insertByUnused(list []idle, one idle, most int) []idle {
	before := func(a, b *idle) bool {
		if c := a.spare.Cmp(b.spare); c != 0 {
			return c > 0
		}
		return a.RecordID < b.RecordID
	}
	at := len(list)
	for at > 0 && before(&one, &list[at-1]) {
		at--
	}
	return slices.Insert(list, at, one)[:min(len(list)+1, most)]
}

// worstJobs is the table of the jobs that left the most unused.
func (p *efficiencyPeriod) worstJobs(list []idle) Table {
	t := Table{
		Name: "jobs", Title: "The jobs that left the most core-hours unused, " + p.Name,
		Columns: []Column{
			{Name: "record_id", Title: "Record", Kind: Text},
			{Name: p.o.Keys.User, Title: "User", Kind: Text},
			{Name: "cores", Title: "Cores", Kind: Number, Period: p.number},
			{Name: "hours", Title: "Ran", Kind: Number, Unit: "hours", Period: p.number},
			{Name: "efficiency", Title: "Efficiency", Kind: Share, Period: p.number},
			{Name: "saving", Title: "Unused", Kind: Number, Unit: "core-hours", Period: p.number},
			{Name: "memory", Title: "Memory", Kind: Number, Unit: "GB", Period: p.number},
			{Name: "peak", Title: "Peak", Kind: Number, Unit: "GB", Period: p.number},
			{Name: "state", Title: "State", Kind: Text},
		},
	}
	var peaks bool
	for i := range list {
		j := &list[i]
		peaks = peaks || j.peak != nil
		t.Rows = append(t.Rows, []Cell{
			v1.Words(j.RecordID), v1.Words(j.Meta.First(p.o.Keys.User)), v1.Rat(j.cores), v1.Rat(j.runtimeHours()), Quotient(j.used, j.booked), v1.Rat(j.spare), v1.Rat(j.memory), v1.Rat(j.peak), textCell(j.State),
		})
	}
	if !peaks {
		t.dropColumn("peak")
	}
	return t
}

// dropColumn takes a column away of which nothing is known.
func (t *Table) dropColumn(name string) {
	at := t.columnIndex(name)
	t.Columns = slices.Delete(t.Columns, at, at+1)
	for i := range t.Rows {
		t.Rows[i] = slices.Delete(t.Rows[i], at, at+1)
	}
	if len(t.Totals) > 0 {
		t.Totals = slices.Delete(t.Totals, at, at+1)
	}
}
