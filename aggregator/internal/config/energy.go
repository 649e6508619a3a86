package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Energy is the block energy { … }: how energy and CO2 follow from records.
type Energy struct {
	EnergyModel
	// Factors are files of comma separated values with the CO2 of a kWh by time.
	Factors []hcl.Path `hcl:"factors,optional"`
	// Files are more of them, with columns of their own.
	Files []FactorFile `hcl:"factor_file,block"`
	// Meters are files with what the site drew.
	Meters []MeterFile `hcl:"meter,block"`
	Range  hcl.Range   `hcl:",def_range"`

	tables []Table // what the files of factors say
	// unclear are the times, by zone, that two factors have.
	unclear map[string][]factorSpan
	meters  []Table // and those of meters, by whose names they are called
}

// EnergyTables are the block energy { … } as it is committed, with what its files say.
type EnergyTables struct {
	EnergyModel
	Tables []Table   `hcl:"file,block,repeat"`
	Meters []Table   `hcl:"meter,block,repeat"`
	Range  hcl.Range `hcl:",def_range"`

	unclear map[string][]factorSpan // as of [Energy], where the files were read
}

// EnergyModel is what components draw.
type EnergyModel struct {
	// Component is the total of joules that records may carry; "" is Energy.
	Component hcl.String `hcl:"component,optional"`
	// PUE is what the site draws for a watt of its computers; none is 1.
	PUE   hcl.Decimal   `hcl:"pue,optional"`
	Since []EnergySince `hcl:"since,block"`
	// Zone is that of the factors.
	Zone    hcl.String    `hcl:"zone,optional"`
	Classes []EnergyClass `hcl:"class,block"`
}

// EnergyClass is a block class "name" { … }. A record is in the first one that takes it.
type EnergyClass struct {
	Name hcl.String `hcl:"name,label"`
	// Match is what the first values of meta keys must be, as of a [Cluster]; none takes all
	// records.
	Match map[string]hcl.Strings `hcl:"match,optional"`
	// PUE and Zone are those of the block energy where they are not written.
	PUE   hcl.Decimal   `hcl:"pue,optional"`
	Since []EnergySince `hcl:"since,block"`
	Zone  hcl.String    `hcl:"zone,optional"`
	Per   []EnergyPer   `hcl:"per,block"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// EnergySince is a block since "date" { … } of the block energy or of a class: the PUE from
// then on.
type EnergySince struct {
	From  hcl.String  `hcl:"from,label"`
	PUE   hcl.Decimal `hcl:"pue"`
	Range hcl.Range   `hcl:",def_range"`
}

// EnergyPer is a block per "Component" { … }: what it draws.
type EnergyPer struct {
	Component hcl.String `hcl:"component,label"`
	// Watts are those of an amount of Amount under load.
	Watts  hcl.Decimal `hcl:"watts"`
	Amount int64       `hcl:"amount,optional" default:"1" min:"1" max:"1000000000000"`
	// Idle is the part of Watts that is drawn without load, and Busy the total of seconds
	// under load; without Idle it draws all of it always.
	Idle hcl.Decimal `hcl:"idle,optional"`
	Busy hcl.String  `hcl:"busy,optional"`
	// Embodied is the CO2 of its making in kg, over a life of so many years.
	Embodied hcl.Decimal `hcl:"embodied_kg,optional"`
	Years    hcl.Decimal `hcl:"life_years,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// The names that are assumed.
const (
	energyComponent = "Energy"
	coresComponent  = "Cores"
	cpuComponent    = "TotalCPU"
)

// committedTables is the block with what its files say; nil without it.
func (e *Energy) committedTables() *EnergyTables {
	if e == nil {
		return nil
	}
	return &EnergyTables{EnergyModel: e.EnergyModel, Tables: e.tables, Meters: e.meters, Range: e.Range, unclear: e.unclear}
}

// readEnergy reads how energy follows from records.
func (s *Settings) readEnergy(to *Shared) hcl.Diagnostics {
	if s.Energy == nil {
		return nil
	}
	e := s.Energy
	r := &reader{site: s.siteZone(), energy: e.Range}
	out := &accounting.EnergySettings{Measured: energyComponent, Overheads: r.readOverheads(e.PUE, e.Since), Zone: e.Zone.Value}
	if e.Component.Value != "" {
		out.Measured = e.Component.Value
	}
	for i := range e.Classes {
		out.Classes = append(out.Classes, r.readPowerClass(&e.Classes[i]))
	}
	for i := range e.Tables {
		out.Factors = append(out.Factors, r.readFactors(&e.Tables[i])...)
	}
	slices.SortStableFunc(out.Factors, func(a, b accounting.CO2Factor) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.From, b.From))
	})
	r.warnOfGaps(out.Factors, e.unclear, e.Range)
	out.Meters = r.readMeters(e.Meters)
	if _, err := out.Weights(); err != nil && !r.diags.HasErrors() {
		at := e.Range
		if wrong, is := errors.AsType[*accounting.FactorError](err); is {
			at = rangeOf(wrong.Place, at)
		}
		r.diags.Add(hcl.Errorf(at, "invalid energy", "%v", err))
	}
	to.Energy = out
	return r.diags
}

// readDecimalUpTo reads a number that is not more than most; without one it is 0.
func (r *reader) readDecimalUpTo(name string, v hcl.Decimal, most accounting.Decimal) accounting.Decimal {
	if !v.IsSet() {
		return 0
	}
	if !v.Billionths.IsInt64() || v.Billionths.Int64() > int64(most) {
		r.diags.Add(hcl.Errorf(v.Range, fmt.Sprintf("invalid value for %q", name), "%s is more than %s", v, most))
		return 0
	}
	return accounting.Decimal(v.Billionths.Int64())
}

// readOverheads reads the PUE by time; none where nothing is written.
func (r *reader) readOverheads(plain hcl.Decimal, since []EnergySince) (list []accounting.Overhead) {
	if plain.IsSet() {
		list = append(list, accounting.Overhead{From: record.MinTime, PUE: r.readPUE(plain)})
	}
	for i := range since {
		o := accounting.Overhead{From: r.readSince(since[i].From), PUE: r.readPUE(since[i].PUE)}
		if slices.ContainsFunc(list, func(p accounting.Overhead) bool { return p.From == o.From }) {
			r.diags.Add(hcl.Errorf(since[i].Range, "invalid since", "the PUE from %q is given more than once", since[i].From.Value))
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b accounting.Overhead) int { return cmp.Compare(a.From, b.From) })
	return list
}

// readPUE reads a PUE, which is at least 1.
func (r *reader) readPUE(v hcl.Decimal) accounting.Decimal {
	if !v.IsSet() { // which has been said
		return accounting.One
	}
	d := r.readDecimalUpTo("pue", v, 10*accounting.One)
	if d < accounting.One && !r.diags.HasErrors() {
		r.diags.Add(hcl.Errorf(v.Range, `invalid value for "pue"`, "%s is less than 1: a site draws at least what its computers draw", v))
	}
	return d
}

func (r *reader) readPowerClass(c *EnergyClass) accounting.PowerClass {
	out := accounting.PowerClass{Name: c.Name.Value, Zone: c.Zone.Value, Overheads: r.readOverheads(c.PUE, c.Since)}
	for _, key := range slices.Sorted(maps.Keys(c.Match)) {
		if wrong := record.ValidateName(key); wrong != "" {
			r.diags.Add(hcl.Errorf(c.Range, `invalid value in "match"`, "invalid meta key %q: %s", key, wrong))
		}
		if len(c.Match[key]) == 0 {
			r.diags.Add(hcl.Errorf(c.Range, `invalid value in "match"`, "%s has no values", key))
		}
		out.Match = append(out.Match, accounting.NodeMatch{Key: key, Values: c.Match[key]})
	}
	for i := range c.Per {
		out.Draws = append(out.Draws, r.readDraw(&c.Per[i]))
	}
	return out
}

func (r *reader) readDraw(p *EnergyPer) accounting.Draw {
	d := accounting.Draw{
		Component: p.Component.Value, Amount: p.Amount, Watts: r.readDecimalUpTo("watts", p.Watts, accounting.MaxWatts),
		Idle: r.readDecimalUpTo("idle", p.Idle, accounting.One), Busy: p.Busy.Value,
		Embodied: r.readDecimalUpTo("embodied_kg", p.Embodied, accounting.MaxWatts), Years: r.readDecimalUpTo("life_years", p.Years, 1000*accounting.One),
	}
	if wrong := record.ValidateName(d.Component); wrong != "" {
		r.diags.Add(hcl.Errorf(p.Component.Range, "invalid name of a component", "%q: %s", d.Component, wrong))
	}
	switch {
	case p.Idle.IsSet() && d.Busy == "" && d.Component == coresComponent:
		d.Busy = cpuComponent
	case p.Idle.IsSet() && d.Busy == "":
		r.diags.Add(hcl.Errorf(p.Idle.Range, `invalid value for "idle"`, "nothing says how long %s is under load; name a total of seconds, such as busy = \"GPUTime\"", d.Component))
	case !p.Idle.IsSet() && d.Busy != "":
		r.diags.Add(hcl.Errorf(p.Busy.Range, `invalid value for "busy"`, "idle is missing, the part of watts that is drawn without load"))
	}
	if (d.Embodied > 0) != (d.Years > 0) {
		r.diags.Add(hcl.Errorf(p.Range, "invalid embodied CO2", "write both embodied_kg, the CO2 of its making, and life_years, which are more than 0"))
	}
	return d
}

// readFactors reads the rows of a file of factors.
func (r *reader) readFactors(t *Table) (list []accounting.CO2Factor) {
	column := map[string]int{}
	for i, name := range t.Columns {
		if name = strings.ToLower(strings.TrimSpace(name)); !slices.Contains(factorColumns(), name) {
			r.diags.Add(hcl.Errorf(t.File.Range, "wrong file of factors", "%s: unknown column %q: use %s, or a block factor_file with columns", t.File.Value, name, strings.Join(factorColumns(), ", ")))
			return nil
		}
		column[name] = i
	}
	for _, name := range []string{zoneColumn, fromColumn, gramsColumn} {
		if _, is := column[name]; !is {
			r.diags.Add(hcl.Errorf(t.File.Range, "wrong file of factors", "%s: column %q is missing", t.File.Value, name))
			return nil
		}
	}
	for i, row := range t.Rows {
		cell := func(name string) string {
			if c, is := column[name]; is && c < len(row) {
				return strings.TrimSpace(row[c])
			}
			return ""
		}
		f, err := parseFactor(cell)
		if err != nil {
			r.diags.Add(hcl.Errorf(t.rowRange(i), "wrong row", "%s: %v", t.File.Value, err))
			return list
		}
		if i < len(t.table.Lines) {
			f.Place = fmt.Sprintf("%s:%d", t.table.File, t.table.Lines[i])
		}
		list = append(list, f)
	}
	return list
}

func parseFactor(cell func(string) string) (f accounting.CO2Factor, err error) {
	f.Zone = cell(zoneColumn)
	if wrong := record.ValidateName(f.Zone); wrong != "" {
		return f, fmt.Errorf("zone %q: %s", f.Zone, wrong)
	}
	if f.From, err = factorTime(cell(fromColumn)); err != nil || !f.From.Present() {
		return f, fmt.Errorf("from %q: use a date or a time, such as 2026-01-01T00:00:00Z", cell(fromColumn))
	}
	if f.To, err = factorTime(cell(toColumn)); err != nil || f.To.Present() && f.To <= f.From {
		return f, fmt.Errorf("to %q: use a date or a time after from, or nothing", cell(toColumn))
	}
	grams, err := accounting.ParseDecimal(cell(gramsColumn))
	if err != nil {
		return f, fmt.Errorf("g_per_kwh: %w", err)
	}
	if grams > accounting.MaxGrams || grams%1000 != 0 {
		return f, fmt.Errorf("g_per_kwh %s: use at most %s, with up to six digits after the point", grams, accounting.MaxGrams)
	}
	f.Grams = int64(grams / 1000)
	return f, nil
}
