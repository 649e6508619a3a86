package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Price is a block price "name" { … }: a list of prices for a time.
type Price struct {
	// Name is that of the list; lists of one name follow each other in time.
	Name     hcl.String `hcl:"name,label"`
	Currency hcl.String `hcl:"currency"`
	// From and To are instants, or dates of Zone; without From it has always held, and
	// without To it holds until the next of its name begins.
	From hcl.String `hcl:"from,optional"`
	To   hcl.String `hcl:"to,optional"`
	Zone hcl.String `hcl:"zone,optional"`
	Per  []Per      `hcl:"per,block,repeat"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// Per is a block per "Component" { … }: what it costs.
type Per struct {
	Component hcl.String `hcl:"component,label"`
	// Hour is the price of an amount of one for an hour, Unit that of one of a total.
	Hour hcl.Decimal `hcl:"hour,optional"`
	Unit hcl.Decimal `hcl:"unit,optional"`
	// HourAt and UnitAt are where they are written.
	HourAt hcl.Range `hcl:"hour,attr_range"`
	UnitAt hcl.Range `hcl:"unit,attr_range"`
	// For whom it is; nothing is for everyone.
	Class   hcl.String            `hcl:"class,optional"`
	Group   hcl.String            `hcl:"group,optional"`
	Project hcl.String            `hcl:"project,optional"`
	PI      hcl.String            `hcl:"pi,optional"`
	Match   map[string]hcl.String `hcl:"match,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// Budget is a block budget "name" { … }: what someone may use in a period.
type Budget struct {
	Name hcl.String `hcl:"name,label"`
	// Whose it is.
	Group   hcl.String            `hcl:"group,optional"`
	Project hcl.String            `hcl:"project,optional"`
	PI      hcl.String            `hcl:"pi,optional"`
	Match   map[string]hcl.String `hcl:"match,optional"`
	Amount  hcl.Decimal           `hcl:"amount"`
	// Unit is the currency of the prices, core-hours, SU, or hours of Component.
	Unit      hcl.String `hcl:"unit"`
	Component hcl.String `hcl:"component,optional"`
	// Period is a unit of the calendar in Zone; or From and To are a single period.
	Period hcl.String `hcl:"period,optional"`
	From   hcl.String `hcl:"from,optional"`
	To     hcl.String `hcl:"to,optional"`
	Zone   hcl.String `hcl:"zone,optional"`
	// Pace is over how long the present pace is measured.
	Pace hcl.Duration `hcl:"pace,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// readMoney reads prices and budgets.
func (s *Settings) readMoney(to *Shared) hcl.Diagnostics {
	r := reader{group: s.groupKey(), site: s.siteZone()}
	set := &to.Money
	set.GroupKey = to.Directory.GroupKey
	for i := range s.Prices {
		set.Lists = append(set.Lists, r.readPriceList(&s.Prices[i]))
	}
	for i := range s.Budgets {
		set.Budgets = append(set.Budgets, r.readBudget(&s.Budgets[i]))
	}
	if r.diags.HasErrors() {
		return r.diags
	}
	s.warnOfEnergyPrices(&r)
	for _, p := range set.Check() {
		if s.isMissing(p) {
			continue
		}
		at, what := s.placeOf(p)
		r.diags.Add(hcl.Errorf(at, what, "%s", p.Text))
	}
	return r.diags
}

// warnOfEnergyPrices says where a price of energy or CO2 is of no use.
func (s *Settings) warnOfEnergyPrices(r *reader) {
	for i := range s.Prices {
		for k := range s.Prices[i].Per {
			p := &s.Prices[i].Per[k]
			unit := map[string]string{usage.PricedEnergy: accounting.KWh, usage.PricedCO2: accounting.CO2Unit}[p.Component.Value]
			switch {
			case unit == "":
			case s.Energy == nil:
				r.diags.Add(hcl.Warnf(p.Range, "price of a component", "without a block energy this is the price of a component of records that is called %q, and not of the measure", p.Component.Value))
			case p.HourAt != (hcl.Range{}):
				r.diags.Add(hcl.Warnf(p.Range, "price that nothing has", "%s is counted in %s: write unit, the price of 1 %s, in place of hour", p.Component.Value, unit, unit))
			}
		}
	}
}

// canonical has the times as instants, and conditions in match.
func (p *Price) canonical(r *reader) Price {
	l := r.readPriceList(p)
	out := Price{Name: p.Name, Currency: p.Currency, From: instantAt(l.From, p.From.Range), To: instantAt(l.To, p.To.Range), Range: p.Range}
	for i := range p.Per {
		per := &p.Per[i]
		out.Per = append(out.Per, Per{Component: per.Component, Hour: per.Hour, Unit: per.Unit, Match: matchOf(l.Rules[i].When, per.Range), Range: per.Range})
	}
	return out
}

// canonical has the times as instants, and the scope in match.
func (b *Budget) canonical(r *reader) Budget {
	m := r.readBudget(b)
	out := *b
	out.Group, out.Project, out.PI, out.Match = hcl.String{}, hcl.String{}, hcl.String{}, matchOf(m.Scope, b.Range)
	out.From, out.To = instantAt(m.From, b.From.Range), instantAt(m.To, b.To.Range)
	out.Period.Value = m.Every.String()
	return out
}

func instantAt(t record.Time, at hcl.Range) hcl.String {
	if !t.Present() {
		return hcl.String{}
	}
	return hcl.String{Value: t.String(), Range: at}
}

func matchOf(list []accounting.PriceCondition, at hcl.Range) map[string]hcl.String {
	if len(list) == 0 {
		return nil
	}
	out := map[string]hcl.String{}
	for _, c := range list {
		out[c.Key] = hcl.String{Value: c.Value, Range: at}
	}
	return out
}

// isMissing reports whether a problem is that something required is not written, which
// has been said.
func (s *Settings) isMissing(p accounting.PriceProblem) bool {
	switch p.Field {
	case "amount":
		return !s.Budgets[p.Budget].Amount.IsSet()
	case "unit":
		return p.Budget >= 0 && s.Budgets[p.Budget].Unit.Range == (hcl.Range{})
	case "currency":
		return s.Prices[p.List].Currency.Range == (hcl.Range{})
	}
	return false
}

// placeOf is where a problem is, and what it is about.
func (s *Settings) placeOf(p accounting.PriceProblem) (hcl.Range, string) {
	var at hcl.Range
	var places map[string]hcl.Range
	block := "price"
	switch {
	case p.Budget >= 0:
		b := &s.Budgets[p.Budget]
		at, block = b.Range, "budget"
		places = map[string]hcl.Range{
			"name": b.Name.Range, "group": b.Group.Range, "project": b.Project.Range, "pi": b.PI.Range, "amount": b.Amount.Range, "unit": b.Unit.Range,
			"component": b.Component.Range, "period": b.Period.Range, "from": b.From.Range, "to": b.To.Range, "zone": b.Zone.Range, "pace": b.Pace.Range,
		}
	case p.Rule >= 0:
		r := &s.Prices[p.List].Per[p.Rule]
		at = r.Range
		places = map[string]hcl.Range{
			"component": r.Component.Range, "class": r.Class.Range, "group": r.Group.Range, "project": r.Project.Range, "pi": r.PI.Range,
			"hour": r.Hour.Range, "unit": r.Unit.Range,
		}
	default:
		l := &s.Prices[p.List]
		at = l.Range
		places = map[string]hcl.Range{"name": l.Name.Range, "currency": l.Currency.Range, "from": l.From.Range, "to": l.To.Range}
	}
	if exact := places[p.Field]; exact != (hcl.Range{}) {
		return exact, fmt.Sprintf("invalid value for %q", p.Field)
	}
	return at, "invalid " + block
}

func (r *reader) readPriceList(p *Price) accounting.PriceList {
	l := accounting.PriceList{Name: p.Name.Value, Currency: p.Currency.Value, At: placeText(p.Range)}
	zone := r.readZone(p.Zone)
	l.From, l.To = r.readInstant("from", p.From, zone), r.readInstant("to", p.To, zone)
	for i := range p.Per {
		l.Rules = append(l.Rules, r.readPriceRule(&p.Per[i]))
	}
	return l
}

func (r *reader) readPriceRule(p *Per) accounting.PriceRule {
	rule := accounting.PriceRule{Component: p.Component.Value, At: placeText(p.Range)}
	price, hour, unit := p.Hour, p.HourAt != (hcl.Range{}), p.UnitAt != (hcl.Range{})
	if unit {
		rule.Kind, price = record.Total, p.Unit
	}
	switch {
	case hour == unit:
		r.diags.Add(hcl.Errorf(p.Range, "invalid price", "expected either hour, the price of an amount of one for an hour, or unit, that of one of a total"))
	case !price.IsSet(): // which has been said
	case !price.Billionths.IsInt64():
		r.diags.Add(hcl.Errorf(price.Range, "invalid price", "%s is too much", price))
	default:
		rule.Billionths = price.Billionths.Int64()
	}
	rule.When = r.readConditions(map[string]hcl.String{accounting.ClassKey: p.Class, r.group: p.Group, accounting.ProjectKey: p.Project, accounting.PIKey: p.PI}, p.Match)
	return rule
}

func (r *reader) readBudget(b *Budget) accounting.Budget {
	out := accounting.Budget{
		Name: b.Name.Value, Unit: b.Unit.Value, Component: b.Component.Value, Billionths: b.Amount.Billionths,
		Pace: record.Time(b.Pace.Microseconds()), At: placeText(b.Range),
	}
	zone := r.readZone(b.Zone)
	out.Zone = zone.String()
	out.From, out.To = r.readInstant("from", b.From, zone), r.readInstant("to", b.To, zone)
	out.Scope = r.readConditions(map[string]hcl.String{r.group: b.Group, accounting.ProjectKey: b.Project, accounting.PIKey: b.PI}, b.Match)
	var err error
	out.Every, err = calendar.ParseUnit(b.Period.Value)
	r.addProblem("period", b.Period, err)
	return out
}

// readConditions are those of words that are written and of match, by key.
func (r *reader) readConditions(words, match map[string]hcl.String) (list []accounting.PriceCondition) {
	for _, from := range []map[string]hcl.String{words, match} {
		for _, key := range slices.Sorted(maps.Keys(from)) {
			if v := from[key]; v.Range != (hcl.Range{}) {
				list = append(list, accounting.PriceCondition{Key: key, Value: v.Value})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b accounting.PriceCondition) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// readInstant reads a date or a time; [record.None] where nothing is written.
func (r *reader) readInstant(name string, v hcl.String, zone *time.Location) record.Time {
	if v.Range == (hcl.Range{}) {
		return record.None
	}
	t, err := parseFixedTime(v.Value, zone)
	if err != nil {
		r.addProblem(name, v, err)
		return record.None
	}
	return t
}

// parseFixedTime reads a point in time that is the same whenever it is read.
func parseFixedTime(word string, zone *time.Location) (record.Time, error) {
	const early, late = record.Time(0), 50 * 366 * record.Day
	t, err := calendar.Point(word, early, zone)
	again, wrong := calendar.Point(word, late, zone)
	if why := calendar.Impossible(word); why != "" {
		return 0, fmt.Errorf("invalid date %q: %s", word, why)
	}
	if err = errors.Join(err, wrong); err != nil || t != again {
		return 0, fmt.Errorf("invalid date %q: use e.g. 2026-01-01, 2026-Q3 or 2026, which mean their start, or RFC 3339, like 2026-01-01T00:00:00Z", word)
	}
	return t, nil
}
