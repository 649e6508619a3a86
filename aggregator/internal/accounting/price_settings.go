package accounting

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
)

// PriceSettings are price lists and budgets as they are written.
type PriceSettings struct {
	Lists   []PriceList
	Budgets []Budget
	// GroupKey is the meta key of groups; "" is [GroupKey].
	GroupKey string
}

func (s *PriceSettings) groupKey() string { return cmp.Or(s.GroupKey, GroupKey) }

// PriceList is a list of prices. Lists of one name follow each other in time: one ends
// where the next begins.
type PriceList struct {
	Name, Currency string
	// From is when it begins to hold and To when it ends, [record.None] for ever.
	From, To record.Time
	Rules    []PriceRule
	// At is where it is written, for messages; it may be empty.
	At string
}

// PriceRule is a price of a component.
type PriceRule struct {
	Component string
	// Kind is [record.Rate] when the price is for an hour of an amount of one, and
	// [record.Total] when it is for one of a total.
	Kind record.Kind
	// Billionths is the price in billionths of the currency.
	Billionths int64
	// When are conditions, each of another key, all of which hold; none is the price
	// for everyone.
	When []PriceCondition
	At   string
}

// PriceCondition is that a record's first value of a key, or the value that follows for
// it, is this one.
type PriceCondition struct{ Key, Value string }

// Budget is what someone may use in a period.
type Budget struct {
	Name string
	// Scope are conditions, each of another key, all of which hold.
	Scope []PriceCondition
	// Unit is the currency of the prices, [ServiceUnits], [CoreHours], [KWh], [CO2Unit], or
	// [HoursOf] with a Component.
	Unit, Component string
	// Billionths is the amount for each period, in billionths of the unit.
	Billionths *big.Int
	// Every is the unit of the calendar that is a period; [calendar.None] for a single
	// one, which is From, To.
	Every    calendar.Unit
	From, To record.Time
	// Zone is the name of the time zone by whose clock periods begin.
	Zone string
	// Pace is over how long the present pace is measured; 0 is [DefaultPace].
	Pace record.Time
	At   string
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

// coreComponent is the component of [CoreHours].
const coreComponent = "Cores"

// DefaultPace is over how long the present pace is measured.
const DefaultPace = 30 * record.Day

// Bounds of what is written.
const (
	maxRules      = 2000
	maxBudgets    = 5000
	maxConditions = 5
	maxPrice      = 1e9 // of a unit, so that sums stay within 128 bits
)

// PriceProblem is something wrong in [Settings].
type PriceProblem struct {
	// List and Budget are the indexes of where it is, -1 for neither; Rule is that in
	// the list, -1 for none.
	List, Rule, Budget int
	// Field is the attribute that is wrong; "" when it is several.
	Field string
	Text  string
}

// Check returns what is wrong; nil when nothing is.
func (s *PriceSettings) Check() []PriceProblem {
	c := &checker{s: s}
	c.checkLists()
	c.checkCurrencies()
	c.checkAmbiguity()
	c.checkBudgets()
	return c.found
}

// firstError makes an error of the first thing that is wrong; nil when nothing is.
func (s *PriceSettings) firstError() error {
	found := s.Check()
	if len(found) == 0 {
		return nil
	}
	p := found[0]
	where := ""
	switch {
	case p.Budget >= 0:
		where = fmt.Sprintf("budget %q", s.Budgets[p.Budget].Name)
	case p.List >= 0:
		where = fmt.Sprintf("price %q", s.Lists[p.List].Name)
		if p.Rule >= 0 {
			where += fmt.Sprintf(" per %q", s.Lists[p.List].Rules[p.Rule].Component)
		}
	}
	if p.Field != "" {
		where += ": " + p.Field
	}
	return fmt.Errorf("%s: %s", where, p.Text)
}

type checker struct {
	s     *PriceSettings
	found []PriceProblem
}

func (c *checker) addListProblem(i, rule int, field, format string, args ...any) {
	c.found = append(c.found, PriceProblem{List: i, Rule: rule, Budget: -1, Field: field, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) addBudgetProblem(i int, field, format string, args ...any) {
	c.found = append(c.found, PriceProblem{List: -1, Rule: -1, Budget: i, Field: field, Text: fmt.Sprintf(format, args...)})
}

// checkLists checks each list by itself, and those of one name.
func (c *checker) checkLists() {
	rules := 0
	for i := range c.s.Lists {
		l := &c.s.Lists[i]
		c.checkNameAndSpan(func(field, text string) { c.addListProblem(i, -1, field, "%s", text) }, l.Name, l.From, l.To)
		if len(l.Rules) == 0 {
			c.addListProblem(i, -1, "", "it has no prices; write per \"Cores\" { hour = … }")
		}
		for r := range l.Rules {
			c.checkRule(i, r)
		}
		if rules += len(l.Rules); rules > maxRules {
			c.addListProblem(i, -1, "", "there are more than %d prices in all lists", maxRules)
			return
		}
		for k := range i {
			c.checkSuccessors(i, &c.s.Lists[k])
		}
	}
}

// checkSuccessors checks two lists of one name.
func (c *checker) checkSuccessors(i int, o *PriceList) {
	l := &c.s.Lists[i]
	switch {
	case l.Name != o.Name:
	case l.From == o.From:
		c.addListProblem(i, -1, "from", "another list of the name %q begins then%s; lists of one name follow each other in time", l.Name, placeSuffix(o.At))
	case l.From < o.From && l.To.Present() && l.To > o.From, o.From < l.From && o.To.Present() && o.To > l.From:
		c.addListProblem(i, -1, "to", "two lists of the name %q hold at the same time, see the other one%s; without \"to\" a list ends where the next begins", l.Name, placeSuffix(o.At))
	}
}

// placeSuffix writes where something is, in brackets.
func placeSuffix(place string) string {
	if place == "" {
		return ""
	}
	return " (" + place + ")"
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

func (c *checker) checkRule(i, r int) {
	rule := &c.s.Lists[i].Rules[r]
	if text := record.ValidateName(rule.Component); text != "" {
		c.addListProblem(i, r, "component", "%s", text)
	}
	if rule.Billionths < 0 || rule.Billionths > maxPrice*1e9 {
		c.addListProblem(i, r, map[record.Kind]string{record.Rate: "hour", record.Total: "unit"}[rule.Kind], "it is more than %d", int64(maxPrice))
	}
	c.checkConditions(rule.When, func(field, text string) { c.addListProblem(i, r, field, "%s", text) })
}

// checkConditions checks those of a rule, or the scope of a budget.
func (c *checker) checkConditions(list []PriceCondition, wrong func(field, text string)) {
	if len(list) > maxConditions {
		wrong("match", fmt.Sprintf("there are more than %d conditions", maxConditions))
	}
	for i, one := range list {
		field := c.s.wordOf(one.Key)
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

// wordOf is the attribute by which a condition on a key is written.
func (s *PriceSettings) wordOf(key string) string {
	switch key {
	case s.groupKey():
		return "group"
	case ProjectKey:
		return "project"
	case PIKey:
		return "pi"
	case ClassKey:
		return "class"
	}
	return "match"
}

// checkCurrencies checks that all lists have one.
func (c *checker) checkCurrencies() {
	for i := range c.s.Lists {
		l, first := &c.s.Lists[i], &c.s.Lists[0]
		switch text := currencyProblem(l.Currency); {
		case text != "":
			c.addListProblem(i, -1, "currency", "%s", text)
		case l.Currency != first.Currency:
			c.addListProblem(i, -1, "currency", "%s, and price %q is in %s%s; a configuration has one currency, since sums of two would mean nothing", l.Currency, first.Name, first.Currency, placeSuffix(first.At))
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
		c.addBudgetProblem(maxBudgets, "", "there are more than %d budgets", maxBudgets)
		return
	}
	names := map[string]int{}
	for i := range c.s.Budgets {
		b := &c.s.Budgets[i]
		wrong := func(field, text string) { c.addBudgetProblem(i, field, "%s", text) }
		c.checkNameAndSpan(wrong, b.Name, b.From, b.To)
		if k, twice := names[b.Name]; twice {
			wrong("name", fmt.Sprintf("there is another budget %q%s", b.Name, placeSuffix(c.s.Budgets[k].At)))
		}
		names[b.Name] = i
		c.checkConditions(b.Scope, wrong)
		if len(b.Scope) == 0 {
			wrong("", "it does not say whose it is; write group, project, pi, or match = { key = value }")
		}
		if b.Billionths == nil || b.Billionths.Sign() <= 0 {
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
	if b.Pace != 0 && b.Pace < record.Day || b.Pace > 3660*record.Day {
		wrong("pace", "expected from a day to ten years, like \"30d\"")
	}
}
