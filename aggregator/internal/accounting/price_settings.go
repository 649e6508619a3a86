package accounting

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// PriceSettings are price lists and budgets. Those of a configuration say what they mean once
// they are [PriceSettings.Resolved].
type PriceSettings struct {
	Lists   []PriceList
	Budgets []Budget
	// GroupKey is the meta key of groups; "" is [GroupKey].
	GroupKey string
}

func (s *PriceSettings) groupKey() string { return cmp.Or(s.GroupKey, GroupKey) }

// PriceList is a block price "name" { … }: a list of prices for a time. Lists of one name
// follow each other in time: one ends where the next begins.
type PriceList struct {
	Name     string `hcl:"name,label"`
	Currency string `hcl:"currency"`
	// FromText and ToText are instants, or dates of Zone; without FromText it has always held,
	// and without ToText it holds until the next of its name begins.
	FromText string      `hcl:"from,optional"`
	ToText   string      `hcl:"to,optional"`
	Zone     string      `hcl:"zone,optional"`
	Rules    []PriceRule `hcl:"per,block,repeat"`
	Places   hcl.Places  `hcl:",places"`

	// From is when it begins to hold and To when it ends, [record.None] for ever.
	From, To record.Time
}

// PriceRule is a block per "Component" { … }: a price of a component.
type PriceRule struct {
	Component string `hcl:"component,label"`
	// Hour is the price of an amount of one for an hour, Unit that of one of a total.
	Hour   hcl.Decimal `hcl:"hour,optional"`
	Unit   hcl.Decimal `hcl:"unit,optional"`
	HourAt hcl.Range   `hcl:"hour,attr_range"`
	UnitAt hcl.Range   `hcl:"unit,attr_range"`
	Class  string      `hcl:"class,optional"`
	Target
	Places hcl.Places `hcl:",places"`

	// Kind is [record.Rate] when the price is for an hour of an amount of one, and
	// [record.Total] when it is for one of a total.
	Kind record.Kind
	// Billionths is the price in billionths of the currency.
	Billionths int64
	// When are conditions, each of another key, all of which hold; none is the price
	// for everyone.
	When []PriceCondition
}

// Target are attributes that say for whom a price or a budget is.
type Target struct {
	Group   string                `hcl:"group,optional"`
	Project string                `hcl:"project,optional"`
	PI      string                `hcl:"pi,optional"`
	Match   map[string]hcl.String `hcl:"match,optional"`
}

// PriceCondition is that a record's first value of a key, or the value that follows for
// it, is this one.
type PriceCondition struct{ Key, Value string }

// Budget is a block budget "name" { … }: what someone may use in a period.
type Budget struct {
	Name string `hcl:"name,label"`
	Target
	// Amount is that of each period.
	Amount Amount `hcl:"amount"`
	// Unit is the currency of the prices, [ServiceUnits], [CoreHours], [KWh], [CO2Unit], or
	// [HoursOf] with a Component.
	Unit      string `hcl:"unit"`
	Component string `hcl:"component,optional"`
	// Period is a unit of the calendar; or FromText and ToText, instants or dates, are a
	// single period.
	Period   string `hcl:"period,optional"`
	FromText string `hcl:"from,optional"`
	ToText   string `hcl:"to,optional"`
	// Zone is the name of the time zone of dates and by whose clock periods begin.
	Zone string `hcl:"zone,optional"`
	// Pace is over how long the present pace is measured; 0 is [DefaultPace].
	Pace   hcl.Duration `hcl:"pace,optional"`
	Places hcl.Places   `hcl:",places"`

	// Scope are conditions, each of another key, all of which hold.
	Scope []PriceCondition
	// Every is the unit of the calendar that is a period; [calendar.None] for a single
	// one, which is From, To.
	Every    calendar.Unit
	From, To record.Time
}

// GroupKey is the key of the condition group in a configuration, unless it names
// another one. Those of project, pi and class are [ProjectKey], [PIKey], [ClassKey].
const GroupKey = "group_id"

// The units of budgets that are no currency. Hours are those of a rate: an amount of
// one for an hour.
const (
	CoreHours    = "core-hours"
	HoursOf      = "hours"
	ServiceUnits = "SU"
)

// DefaultPace is over how long the present pace is measured.
const DefaultPace = 30 * record.Day

// Bounds of what is written.
const (
	maxRules      = 2000
	maxBudgets    = 5000
	maxConditions = 5
	maxPrice      = 1e9 // of a unit, so that sums stay within 128 bits
)

// Resolved returns the settings with what they mean: instants, which are dates of site where no
// zone is written, and conditions. These are what is written then, too, as a cluster commits it:
// instants in FromText and ToText, and all conditions in Match. The Zone of a budget is the one
// that counts. It is for settings as they were decoded, and not for its own result.
func (s PriceSettings) Resolved(site *time.Location) (PriceSettings, hcl.Diagnostics) {
	s.Lists, s.Budgets = slices.Clone(s.Lists), slices.Clone(s.Budgets)
	c := checker{s: &s}
	for i := range s.Lists {
		l := &s.Lists[i]
		zone := c.resolveZone(l.Places, l.Zone, site)
		l.From, l.To, l.Zone = c.resolveTime(l.Places, "from", &l.FromText, zone), c.resolveTime(l.Places, "to", &l.ToText, zone), ""
		l.Rules = slices.Clone(l.Rules)
		for k := range l.Rules {
			c.resolveRule(&l.Rules[k])
		}
	}
	for i := range s.Budgets {
		b := &s.Budgets[i]
		zone := c.resolveZone(b.Places, b.Zone, site)
		b.From, b.To, b.Zone = c.resolveTime(b.Places, "from", &b.FromText, zone), c.resolveTime(b.Places, "to", &b.ToText, zone), zone.String()
		b.Scope = b.resolveConditions(b.Places, s.groupKey(), "")
		var err error
		if b.Every, err = calendar.ParseUnit(b.Period); err != nil {
			c.addProblem(b.Places, "budget", "period", "%v", err)
		}
		b.Period = b.Every.String()
	}
	return s, c.found
}

func (c *checker) resolveZone(p hcl.Places, name string, site *time.Location) *time.Location {
	if name == "" {
		return site
	}
	zone, err := calendar.Zone(name)
	if err != nil {
		c.addProblem(p, "", "zone", "%v", err)
		return time.UTC
	}
	return zone
}

// resolveTime reads a date or a time, and makes an instant of its text; [record.None] where
// nothing is written.
func (c *checker) resolveTime(p hcl.Places, name string, text *string, zone *time.Location) record.Time {
	if !p.Has(name) {
		return record.None
	}
	t, err := parseFixedTime(*text, zone)
	if err != nil {
		c.addProblem(p, "", name, "%v", err)
		*text = ""
		return record.None
	}
	*text = t.String()
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

func (c *checker) resolveRule(r *PriceRule) {
	price, hour, unit := r.Hour, r.HourAt != (hcl.Range{}), r.UnitAt != (hcl.Range{})
	if unit {
		r.Kind, price = record.Total, r.Unit
	}
	switch {
	case hour == unit:
		c.addProblem(r.Places, "price", "", "expected either hour, the price of an amount of one for an hour, or unit, that of one of a total")
	case !price.IsSet(): // which has been said
	case !price.Billionths.IsInt64():
		c.found.Add(hcl.Errorf(price.Range, "invalid price", "%s is too much", price))
	default:
		r.Billionths = price.Billionths.Int64()
	}
	r.When = r.resolveConditions(r.Places, c.s.groupKey(), r.Class)
	r.Class = ""
}

// resolveConditions returns the conditions that are written, by key, and makes them those of Match.
func (w *Target) resolveConditions(p hcl.Places, groupKey, class string) (list []PriceCondition) {
	values := map[string]string{"class": class, "group": w.Group, "project": w.Project, "pi": w.PI}
	for _, one := range conditionAttributes(groupKey) {
		if p.Has(one.name) {
			list = append(list, PriceCondition{one.key, values[one.name]})
		}
	}
	for key, value := range w.Match {
		if value.Range != (hcl.Range{}) { // it could be read
			list = append(list, PriceCondition{key, value.Value})
		}
	}
	slices.SortStableFunc(list, func(a, b PriceCondition) int { return strings.Compare(a.Key, b.Key) })
	*w = Target{}
	for _, one := range list {
		if w.Match == nil {
			w.Match = map[string]hcl.String{}
		}
		w.Match[one.Key] = hcl.String{Value: one.Value, Range: p[""]}
	}
	return list
}

// conditionAttribute is an attribute by which a condition on a key is written, beside match.
type conditionAttribute struct{ name, key string }

// conditionAttributes are those attributes. Two of them have one key where the key of groups is
// that of another.
func conditionAttributes(groupKey string) []conditionAttribute {
	return []conditionAttribute{{"group", groupKey}, {"project", ProjectKey}, {"pi", PIKey}, {"class", ClassKey}}
}

// conditionField is the attribute by which a condition on a key is written.
func (s *PriceSettings) conditionField(key string) string {
	for _, one := range conditionAttributes(s.groupKey()) {
		if one.key == key {
			return one.name
		}
	}
	return "match"
}

// Check returns what is wrong with settings that are resolved.
func (s *PriceSettings) Check() hcl.Diagnostics {
	c := &checker{s: s}
	c.checkLists()
	c.checkCurrencies()
	c.checkAmbiguity()
	c.checkBudgets()
	return c.found
}

type checker struct {
	s     *PriceSettings
	found hcl.Diagnostics
}

// addProblem adds what is wrong with an attribute of a block, unless decoding has already
// reported that attribute as missing.
func (c *checker) addProblem(p hcl.Places, block, field, format string, args ...any) {
	missing := p != nil && !p.Has(field) && (field == "amount" || field == "currency" || field == "unit")
	if !missing {
		c.found.Add(p.Errorf(block, field, format, args...))
	}
}

// checkLists checks each list by itself, and those of one name.
func (c *checker) checkLists() {
	rules := 0
	for i := range c.s.Lists {
		l := &c.s.Lists[i]
		c.checkNameAndSpan(func(field, text string) { c.addProblem(l.Places, "price", field, "%s", text) }, l.Name, l.From, l.To)
		if len(l.Rules) == 0 {
			c.addProblem(l.Places, "price", "", "it has no prices; write per \"Cores\" { hour = … }")
		}
		for r := range l.Rules {
			c.checkRule(&l.Rules[r])
		}
		if rules += len(l.Rules); rules > maxRules {
			c.addProblem(l.Places, "price", "", "there are more than %d prices in all lists", maxRules)
			return
		}
		for k := range i {
			c.checkSuccessors(l, &c.s.Lists[k])
		}
	}
}

// checkSuccessors checks two lists of one name.
func (c *checker) checkSuccessors(l, o *PriceList) {
	switch {
	case l.Name != o.Name:
	case l.From == o.From:
		c.addProblem(l.Places, "price", "from", "another list of the name %q begins then%s; lists of one name follow each other in time", l.Name, placeSuffix(o.Places))
	case l.From < o.From && l.To.Present() && l.To > o.From, o.From < l.From && o.To.Present() && o.To > l.From:
		c.addProblem(l.Places, "price", "to", "two lists of the name %q hold at the same time, see the other one%s; without \"to\" a list ends where the next begins", l.Name, placeSuffix(o.Places))
	}
}

// placeSuffix writes where a block is, in brackets.
func placeSuffix(p hcl.Places) string {
	if !p.Has("") {
		return ""
	}
	return " (" + hcl.FileLine(p[""]) + ")"
}

// checkNameAndSpan checks what lists and budgets have in common.
func (c *checker) checkNameAndSpan(wrong func(field, text string), name string, from, to record.Time) {
	if text := record.ValidateName(name); text != "" {
		wrong("name", text)
	}
	if from.Present() && to.Present() && to <= from {
		wrong("to", fmt.Sprintf("it is not after from: %s", from))
	}
}

func (c *checker) checkRule(rule *PriceRule) {
	wrong := func(field, text string) { c.addProblem(rule.Places, "price", field, "%s", text) }
	if text := record.ValidateName(rule.Component); text != "" {
		wrong("component", text)
	}
	if rule.Billionths < 0 || rule.Billionths > maxPrice*1e9 {
		wrong(map[record.Kind]string{record.Rate: "hour", record.Total: "unit"}[rule.Kind], fmt.Sprintf("it is more than %d", int64(maxPrice)))
	}
	c.checkConditions(rule.When, wrong)
}

// checkConditions checks those of a rule, or the scope of a budget.
func (c *checker) checkConditions(list []PriceCondition, wrong func(field, text string)) {
	if len(list) > maxConditions {
		wrong("match", fmt.Sprintf("there are more than %d conditions", maxConditions))
	}
	for i, one := range list {
		field := c.s.conditionField(one.Key)
		switch text := record.ValidateName(one.Key); {
		case text != "":
			wrong("match", fmt.Sprintf("%q: %s", one.Key, text))
		case record.ValidateName(one.Value) != "":
			wrong(field, fmt.Sprintf("%q: %s", one.Value, record.ValidateName(one.Value)))
		case slices.ContainsFunc(list[:i], func(o PriceCondition) bool { return o.Key == one.Key }):
			wrong(field, fmt.Sprintf("there are two conditions on %s", one.Key))
		}
	}
}

// checkCurrencies checks that all lists have one.
func (c *checker) checkCurrencies() {
	for i := range c.s.Lists {
		l, first := &c.s.Lists[i], &c.s.Lists[0]
		switch text := currencyProblem(l.Currency); {
		case text != "":
			c.addProblem(l.Places, "price", "currency", "%s", text)
		case l.Currency != first.Currency:
			c.addProblem(l.Places, "price", "currency", "%s, and price %q is in %s%s; a configuration has one currency, since sums of two would mean nothing", l.Currency, first.Name, first.Currency, placeSuffix(first.Places))
		}
	}
}

func currencyProblem(s string) string {
	letters := strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
	switch {
	case s == "" || len(s) > 16 || !letters:
		return fmt.Sprintf("%q is no name of a currency; expected letters, like EUR", s)
	case strings.EqualFold(s, ServiceUnits), strings.EqualFold(s, HoursOf), strings.EqualFold(s, KWh):
		return fmt.Sprintf("%q is a unit of its own; expected a currency, like EUR", s)
	}
	return ""
}

// currency is that of the lists; "" without one.
func (s *PriceSettings) currency() string {
	if len(s.Lists) == 0 {
		return ""
	}
	return s.Lists[0].Currency
}

func (c *checker) checkBudgets() {
	if len(c.s.Budgets) > maxBudgets {
		c.addProblem(c.s.Budgets[maxBudgets].Places, "budget", "", "there are more than %d budgets", maxBudgets)
		return
	}
	names := map[string]int{}
	for i := range c.s.Budgets {
		b := &c.s.Budgets[i]
		wrong := func(field, text string) { c.addProblem(b.Places, "budget", field, "%s", text) }
		c.checkNameAndSpan(wrong, b.Name, b.From, b.To)
		if k, twice := names[b.Name]; twice {
			wrong("name", fmt.Sprintf("there is another budget %q%s", b.Name, placeSuffix(c.s.Budgets[k].Places)))
		}
		names[b.Name] = i
		c.checkConditions(b.Scope, wrong)
		if len(b.Scope) == 0 {
			wrong("", "it does not say whose it is; write group, project, pi, or match = { key = value }")
		}
		if b.Amount.Sign() <= 0 {
			wrong("amount", "it must be more than 0")
		}
		c.checkUnit(b, wrong)
		c.checkPeriod(b, wrong)
	}
}

func (c *checker) checkUnit(b *Budget, wrong func(field, text string)) {
	currency := c.s.currency()
	switch b.Unit {
	case CoreHours, ServiceUnits, KWh, CO2Unit:
	case HoursOf:
		if text := record.ValidateName(b.Component); text != "" {
			wrong("component", "hours are those of a component, like component = \"GPUs\"")
		}
	case currency:
		if b.Unit == "" {
			wrong("unit", "expected core-hours, SU, hours, kWh, kg CO2e or the currency of price lists")
		}
	default:
		known := "there is no price list"
		if currency != "" {
			known = "prices are in " + currency
		}
		wrong("unit", fmt.Sprintf("nothing is measured in %q: %s, and the other units are %s, %s, %s, %s and %s", b.Unit, known, CoreHours, HoursOf, ServiceUnits, KWh, CO2Unit))
	}
	if b.Unit != HoursOf && b.Component != "" {
		wrong("component", fmt.Sprintf("only a budget of unit = %q has one", HoursOf))
	}
}

func (c *checker) checkPeriod(b *Budget, wrong func(field, text string)) {
	if _, err := calendar.Zone(b.Zone); err != nil {
		wrong("zone", err.Error())
	}
	switch {
	case b.Every != calendar.None && b.Every < calendar.Day:
		wrong("period", "it is too short; expected day, week, month, quarter or year")
	case b.Every != calendar.None && (b.From.Present() || b.To.Present()):
		wrong("period", "a budget has either a period, which comes again and again, or from and to")
	case b.Every == calendar.None && (!b.From.Present() || !b.To.Present()):
		wrong("period", "a budget has either a period, like \"year\", or from and to")
	}
	if pace := b.pace(); pace < record.Day || pace > 3660*record.Day {
		wrong("pace", "expected from a day to ten years, like \"30d\"")
	}
}
