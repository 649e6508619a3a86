package accounting

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Budgets are those of a configuration. They never change.
type Budgets struct {
	list []Budget // by name
}

// NewPricesAndBudgets makes the prices and the budgets of settings. An error says what is wrong.
func NewPricesAndBudgets(s PriceSettings) (*Prices, *Budgets, error) {
	p, err := NewPrices(s)
	if err != nil {
		return nil, nil, err
	}
	list := slices.Clone(s.Budgets)
	slices.SortFunc(list, func(a, b Budget) int { return strings.Compare(a.Name, b.Name) })
	return p, &Budgets{list: list}, nil
}

// Names are those of all budgets, in order.
func (b *Budgets) Names() []string {
	names := make([]string, len(b.list))
	for i := range b.list {
		names[i] = b.list[i].Name
	}
	return names
}

// Only are the budgets that a reader sees.
func (b *Budgets) Only(seen func(*Budget) bool) *Budgets {
	only := &Budgets{}
	for i := range b.list {
		if seen(&b.list[i]) {
			only.list = append(only.list, b.list[i])
		}
	}
	return only
}

// Period is a time for which a budget has its amount.
type Period struct {
	// Name is that of the unit of the calendar, such as 2026-Q3; "" of a single period.
	Name     string
	From, To record.Time
}

// location is the time zone, which was checked.
func (b *Budget) location() *time.Location {
	zone, err := calendar.Zone(b.Zone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// periodAt is the period that an instant is in: of a single one it is that, whatever the
// instant.
func (b *Budget) periodAt(at record.Time) (Period, error) {
	if b.Every == calendar.None {
		return Period{From: b.From, To: b.To}, nil
	}
	name, w, err := unitOf(at, b.Every, b.location())
	return Period{Name: name, From: w.From, To: w.To}, err
}

// unitOf returns the whole unit of the calendar that an instant is in.
func unitOf(at record.Time, u calendar.Unit, zone *time.Location) (string, calendar.Window, error) {
	name := calendar.Labels([]record.Time{at, at + 1}, u, zone)[0]
	w, err := calendar.ParseWindow(name, at, zone)
	if err != nil {
		return "", w, fmt.Errorf("the %s of %s: %w", u, at, err)
	}
	return name, w, nil
}

// pace is over how long the present pace is measured.
func (b *Budget) pace() record.Time { return cmp.Or(record.Time(b.Pace.Microseconds()), DefaultPace) }

// paceFrom is from when on the present pace is measured: the start of a day, since
// sums are kept by day, and not before a single period.
func (b *Budget) paceFrom(p Period, now record.Time) (record.Time, error) {
	_, day, err := unitOf(max(now-b.pace(), record.MinTime), calendar.Day, b.location())
	if b.Every == calendar.None {
		return max(day.From, p.From), err
	}
	return day.From, err
}

// measure is what a budget is counted in.
type measure struct {
	weight    string // "" for hours of the component
	component string
}

func (b *Budget) measure() measure {
	switch b.Unit {
	case CoreHours:
		return measure{component: Cores}
	case HoursOf:
		return measure{component: b.Component}
	case ServiceUnits:
		return measure{weight: serviceUnits}
	case KWh:
		return measure{weight: EnergyMeasure}
	case CO2Unit:
		return measure{weight: CO2Measure}
	}
	return measure{weight: Cost}
}

// Measure is the measure of /v1/usage in which the budget counts, of components in hours.
func (b *Budget) Measure() string {
	m := b.measure()
	return cmp.Or(m.weight, m.component)
}

// serviceUnits is the name of the weight of service units.
const serviceUnits = "su"

// scope are the keys of the conditions, in order, and their values.
func (b *Budget) scope() (keys, values []string) {
	for _, c := range slices.SortedFunc(slices.Values(b.Scope), func(a, b PriceCondition) int { return strings.Compare(a.Key, b.Key) }) {
		keys, values = append(keys, c.Key), append(values, c.Value)
	}
	return keys, values
}
