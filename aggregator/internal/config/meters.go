package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// MeterFile is a block meter "name" { … }: a file with the energy that a meter counted. Several
// files may be of one meter; meters of different names add up. Its other columns are ignored.
type MeterFile struct {
	Name hcl.String `hcl:"name,label"`
	Path hcl.Path   `hcl:"path"`
	// Columns are the names in the file of from, to and the energy, which is one of kwh, wh, mwh
	// and joules, where they have others.
	Columns map[string]hcl.String `hcl:"columns,optional"`
	// Step is how long a reading without an end lasts at most, as [FactorFile.Step].
	Step  hcl.String `hcl:"step,optional"`
	Range hcl.Range  `hcl:",def_range"`
}

// meterUnit is a column of energy, and how many of the units of an [sums.EnergyModel] a
// billionth of its unit has.
type meterUnit struct {
	column string
	units  int64
}

func meterUnits() []meterUnit {
	return []meterUnit{{"kwh", 3_600_000_000}, {"wh", 3_600_000}, {"mwh", 3_600_000_000_000}, {"joules", 1_000}}
}

// loadMeters reads the files of meters.
func (e *Energy) loadMeters(offline bool) (diags hcl.Diagnostics) {
	for i := range e.Meters {
		m := &e.Meters[i]
		t, more := readTable(m.Path, e.Range, offline)
		if t != nil && !more.HasErrors() {
			more.Extend(m.chooseColumns(t))
		}
		if t != nil && !more.HasErrors() {
			f := &factorTable{Table: t, zone: -1, from: 0, to: 1, grams: 2}
			more.Extend(f.setEnds(m.Step.Value))
			t.File.Value = m.Name.Value
			e.meters = append(e.meters, *t)
		}
		diags.Extend(more)
	}
	return diags
}

// chooseColumns makes of the file's columns those of a committed file: from, to and the energy, whose
// name is its unit.
func (m *MeterFile) chooseColumns(t *Table) hcl.Diagnostics {
	wrong := func(at hcl.Range, format string, args ...any) hcl.Diagnostics {
		return hcl.Diagnostics{hcl.Errorf(at, "wrong file of a meter", "%s: "+format, append([]any{t.File.Value}, args...)...)}
	}
	known := []string{fromColumn, toColumn}
	for _, u := range meterUnits() {
		known = append(known, u.column)
	}
	for name, v := range m.Columns {
		if !slices.Contains(known, name) {
			return wrong(v.Range, "unknown column %q: use %s", name, strings.Join(known, ", "))
		}
		if columnOf(t, v.Value) < 0 {
			return wrong(v.Range, "column %q not found: the file has %s", v.Value, strings.Join(t.Columns, ", "))
		}
	}
	place := func(name string) int { return columnOf(t, cmp.Or(m.Columns[name].Value, name)) }
	from, to, energy, unit := place(fromColumn), place(toColumn), -1, ""
	for _, u := range meterUnits() {
		if _, named := m.Columns[u.column]; place(u.column) >= 0 && (energy < 0 || named) {
			energy, unit = place(u.column), u.column
		}
	}
	if from < 0 || energy < 0 {
		return wrong(m.Path.Range, "columns of the time and of the energy not found: set columns = { from = …, kwh = … }; the file has %s", strings.Join(t.Columns, ", "))
	}
	for i, row := range t.Rows {
		cells := []string{strings.TrimSpace(row[from]), "", roundDecimal(strings.TrimSpace(row[energy]), 9)}
		if to >= 0 {
			cells[1] = strings.TrimSpace(row[to])
		}
		t.Rows[i] = cells
	}
	t.Columns = []string{fromColumn, toColumn, unit}
	return nil
}

// readMeters reads the readings of the meters.
func (r *reader) readMeters(tables []Table) (list []accounting.Meter) {
	for i := range tables {
		t := &tables[i]
		at := slices.IndexFunc(list, func(m accounting.Meter) bool { return m.Name == t.File.Value })
		if at < 0 {
			at = len(list)
			list = append(list, accounting.Meter{Name: t.File.Value})
		}
		list[at].Readings = append(list[at].Readings, r.readMeterRows(t)...)
	}
	for i := range list {
		r.orderReadings(&list[i])
	}
	return list
}

// readMeterRows reads the rows of a file of a meter. Those without an end have none yet.
func (r *reader) readMeterRows(t *Table) (list []sums.MeterReading) {
	at := slices.IndexFunc(meterUnits(), func(u meterUnit) bool { return len(t.Columns) == 3 && u.column == t.Columns[2] })
	if at < 0 {
		r.diags.Add(hcl.Errorf(t.Range, "wrong file of a meter", "unknown columns %s", strings.Join(t.Columns, ", ")))
		return nil
	}
	for i, row := range t.Rows {
		m, err := meterReading(row, meterUnits()[at])
		if err != nil {
			r.diags.Add(hcl.Errorf(t.rowRange(i), "wrong row", "meter %q: %v", t.File.Value, err))
			return nil
		}
		list = append(list, m)
	}
	return list
}

func meterReading(row []string, unit meterUnit) (m sums.MeterReading, err error) {
	if len(row) != 3 {
		return m, fmt.Errorf("%d columns: want 3", len(row))
	}
	if m.From, err = factorTime(row[0]); err != nil || !m.From.Present() {
		return m, fmt.Errorf("from %q: use a date or a time, such as 2026-01-01T00:00:00Z", row[0])
	}
	if m.To, err = factorTime(row[1]); err != nil || m.To.Present() && m.To <= m.From {
		return m, fmt.Errorf("to %q: use a date or a time after from, or nothing", row[1])
	}
	energy, err := accounting.ParseDecimal(row[2])
	if err != nil {
		return m, fmt.Errorf("%s: %w", unit.column, err)
	}
	var fits bool
	if m.Energy, fits = sums.SumOf(int64(energy)).Times(unit.units); !fits {
		return m, fmt.Errorf("%s %s: too much", unit.column, energy)
	}
	return m, nil
}

// orderReadings puts the readings of a meter in the order of time. One without an end lasts until the
// next; the last one without an end is left out, which is a warning. Readings that overlap are
// an error.
func (r *reader) orderReadings(m *accounting.Meter) {
	list := m.Readings
	slices.SortStableFunc(list, func(a, b sums.MeterReading) int { return cmp.Compare(a.From, b.From) })
	for i := range list {
		last := i+1 == len(list)
		switch {
		case !last && !list[i].To.Present():
			list[i].To = list[i+1].From
		case last && !list[i].To.Present():
			r.diags.Add(hcl.Warnf(r.energy, "reading without an end", "the last reading of meter %q, from %s, has no end and is left out; set step, or add a column to", m.Name, list[i].From))
			list = list[:i]
		}
	}
	for i := 1; i < len(list); i++ {
		if before, next := &list[i-1], &list[i]; next.From < before.To || before.To <= before.From {
			r.diags.Add(hcl.Errorf(r.energy, "invalid energy", "meter %q has two readings for the time from %s", m.Name, max(before.From, next.From)))
			return
		}
	}
	m.Readings = list
	r.warnOfMeterGaps(m)
}

// warnOfMeterGaps names the times between readings of a meter that none has.
func (r *reader) warnOfMeterGaps(m *accounting.Meter) {
	const most = 10
	more, hidden := 0, record.Time(0)
	for i := 1; i < len(m.Readings); i++ {
		before, next := m.Readings[i-1].To, m.Readings[i].From
		switch {
		case before == next:
		case more >= most:
			more, hidden = more+1, hidden+next-before
		default:
			more++
			r.diags.Add(hcl.Warnf(r.energy, "gap in a meter", "meter %q has no reading from %s to %s (%s): the idle energy of that time is not known", m.Name, before, next, hoursText(next-before)))
		}
	}
	if more > most {
		r.diags.Add(hcl.Warnf(r.energy, "gap in a meter", "%d more gaps of meter %q, %s in all", more-most, m.Name, hoursText(hidden)))
	}
}
