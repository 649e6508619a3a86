package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// StatementOptions say whose statement it is, and of when.
type StatementOptions struct {
	Of     map[string]string // group_id, project, pi, user_id or any key, with its value
	Period string            // in the words of /v1/usage; "": last-month
	Zone   string
	Top    int // how many people and jobs are named at most, up to 100; 0: 10
	// MemoryPerGB is how much of the component Memory is a GiB; 0: 1024.
	MemoryPerGB float64
	Keys        Keys
	Now         time.Time
}

// statementEntry is the statement of one group, project or person.
func statementEntry() Entry {
	period := periodParam()
	period.Most, period.Default = 1, []string{"last-month"}
	period.About = "The time that is reported, such as last-month, 2026-03 or 14d; it stands beside the one before it."
	return Entry{
		Report: v1.Report{Name: "statement", Title: "Statement", About: "What a group, project or person used in a month, its cost, and what is left of budgets.", Parameters: []Param{
			{
				Name: "of", Title: "Subject", Kind: ParamPairs, Most: 5, Needed: true, Default: []string{}, Words: []string{"group_id=atlas", "project=bell", "pi=curie", "user_id=alice"},
				About: "Of whom, as KEY=VALUE; a comma of the value is written \\,. Several must all hold.",
			},
			period,
			numberParam("top", "People and jobs at most", "How many people and how many jobs are named, from 1 to 100.", 10),
			memoryParam(), zoneParam(),
		}},
		Long: `What a group, project, principal investigator or person used in a month and what it
costs by the prices in effect, compared with the month before; what is left of the
budgets that it draws on, with a forecast; usage by user; and the largest jobs.`,
		Example: "  bursar report statement -of group_id=atlas -o atlas.html\n  bursar report statement -of pi=curie -period 2026-10\n  bursar report statement -of user_id=alice -period this-month -format csv",
		make: func(ctx context.Context, r v1.API, q Query) (*Document, error) {
			o := StatementOptions{Of: q.Pairs("of"), Period: q.One("period"), Zone: q.One("zone"), Top: q.Number("top"), Now: q.Now, Keys: q.Keys}
			if err := q.readFactors(factor{"memory_per_gb", &o.MemoryPerGB}); err != nil {
				return nil, err
			}
			if err := checkBounds(bounds{"top", float64(o.Top), 1, mostJobs}, bounds{"memory_per_gb", o.MemoryPerGB, leastMemory, mostFactor}); err != nil {
				return nil, err // 0 is no default here
			}
			return Statement(ctx, r, o)
		},
	}
}

// Statement is what a group, a project or a person gets at the end of a month: what was
// used and what it costs beside the month before, what is left of the budgets and how
// long it lasts, who used it, the largest jobs, and the prices that held.
func Statement(ctx context.Context, r v1.API, o StatementOptions) (*Document, error) {
	if err := o.checkSubject(); err != nil {
		return nil, err
	}
	o.Keys = o.Keys.Whole()
	if o.Period == "" {
		o.Period = "last-month"
	}
	if o.Top == 0 {
		o.Top = 10
	}
	if o.MemoryPerGB == 0 {
		o.MemoryPerGB = 1024
	}
	if err := checkBounds(bounds{"top", float64(o.Top), 1, mostJobs}, bounds{"memory_per_gb", o.MemoryPerGB, leastMemory, mostFactor}); err != nil {
		return nil, err
	}
	zone, err := clockOf(ctx, r, &o.Zone)
	if err != nil {
		return nil, fmt.Errorf("report statement: %w", err)
	}
	s := &statement{o: &o, r: r, zone: zone}
	d := &Document{Format: Format, Report: "statement", Title: "Statement", Subject: subjectText(o.Of), Made: v1.Time{Time: o.Now.UTC()}, Zone: zone.String()}
	if err := s.resolvePeriods(ctx); err != nil {
		return nil, err
	}
	d.Periods = s.periods
	for _, part := range []func(context.Context) (*Table, error){s.usageFigures, s.buildBudgets, s.buildPeople, s.largestJobs, s.buildPrices} {
		t, err := part(ctx)
		if err != nil {
			return nil, fmt.Errorf("report statement: %w", err)
		}
		if t != nil {
			d.Add(*t)
		}
	}
	d.Notes = append(s.aboutNotes(), s.notes...)
	return d, d.Check()
}

// checkSubject returns an error where it is not said of whom the statement is: it is of one,
// whose values /v1/usage does not take for several or for those of none.
func (o *StatementOptions) checkSubject() error {
	if len(o.Of) == 0 {
		return fmt.Errorf("%w: of whom the statement is is not said", ErrQuery)
	}
	for _, key := range slices.Sorted(maps.Keys(o.Of)) {
		switch values := v1.SplitList(o.Of[key]); {
		case len(values) > 1:
			return fmt.Errorf("%w: a statement is of one, and %s is %.60q; make one for each, or a report of the usage of all of them; a comma of a value is written \\,", ErrQuery, key, o.Of[key])
		case strings.TrimSpace(values[0]) == "":
			return fmt.Errorf("%w: a statement needs a subject, and %s has no value", ErrQuery, key)
		}
	}
	return nil
}

// subjectValues are the values of the subject, by key.
func (o *StatementOptions) subjectValues() map[string][]string {
	out := map[string][]string{}
	for key, list := range o.Of {
		out[key] = v1.SplitList(list)
	}
	return out
}

// statement is one that is being made.
type statement struct {
	o       *StatementOptions
	r       v1.API
	zone    *time.Location
	money   string // the currency; "" without prices
	list    []v1.Price
	past    []v1.Price // those of the time before
	costs   bool       // something that was used in the month has a price
	now     *v1.Usage  // of the month
	before  *v1.Usage  // of the time before that is as long
	known   bool       // all of both is known, as far as they have come
	periods []Period
	notes   []string

	measures string       // what usageFigures asks beside its own
	figures  [2]*v1.Usage // what it was told, of each period

	standing *v1.Budgets         // what askBudgets was told; nil before
	own      map[string][]string // what belongs has found; nil before
	large    []large             // what scanJobs has found; nil before
}

func (s *statement) addNote(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// usageOfPeriod asks for the usage of the subject in one of the two periods.
func (s *statement) usageOfPeriod(ctx context.Context, q v1.UsageQuery, period int) (*v1.Usage, error) {
	q.From, q.To = s.periods[period].From.UTC().Format(time.RFC3339Nano), s.periods[period].To.UTC().Format(time.RFC3339Nano)
	q.Unit, q.Zone, q.Where = "hour", s.o.Zone, s.o.Of
	return askUsage(ctx, s.r, q)
}

// resolvePeriods finds out what the period is, what it is compared with, and whether there is
// anything in it. A length begins with a whole day, or up to 3 days with a full hour, as the tables by these do.
func (s *statement) resolvePeriods(ctx context.Context) error {
	q := v1.UsageQuery{Unit: "hour", Zone: s.o.Zone, Where: s.o.Of}
	var unit calendar.Unit
	q.Window, q.From, unit = wholeWindow(s.o.Period, s.o.Now, s.zone)
	var err error
	if s.now, err = askUsage(ctx, s.r, q); err != nil {
		return fmt.Errorf("report statement of %s: %w", s.o.Period, err)
	}
	if s.now.Records == 0 {
		n := absent{of: "report statement", where: s.o.Of, zone: s.o.Zone, periods: []string{s.o.Period}, begin: windowOf(s.now).From}
		return n.explainAbsence(ctx, s.r)
	}
	before := previousWindow(s.o.Period, windowOf(s.now), unit, s.o.Now, s.zone)
	s.periods = namePeriods(s.o.Period, windowOf(s.now), before, s.o.Now, s.zone)
	if s.before, err = s.usageOfPeriod(ctx, v1.UsageQuery{}, 1); err != nil {
		return fmt.Errorf("report statement of %s: %w", s.periods[1].Name, err)
	}
	if s.before.Records == 0 {
		s.addNote("%s: no record ran, so that nothing is compared with it.", s.periods[1].Name)
	}
	s.known = coversStart(s.now) && coversStart(s.before) && !s.before.Known.To.Before(s.before.Window.To.Time)
	if s.money, s.list, err = pricesOf(ctx, s.r, s.periods[0]); err == nil && s.money != "" {
		_, s.past, err = pricesOf(ctx, s.r, s.periods[1])
	}
	if err != nil {
		return fmt.Errorf("report statement: %w", err)
	}
	return nil
}

// wholeWindow returns what to ask for of a period, its word or its start: a length begins with a whole
// day, or up to 3 days with a full hour. The unit is what it begins with.
func wholeWindow(word string, now time.Time, zone *time.Location) (window, from string, unit calendar.Unit) {
	w, err := calendar.ParseWindow(word, record.Time(now.UnixMicro()), zone)
	if err != nil { // which /v1 says
		return word, "", calendar.Day
	}
	unit = calendar.Day
	if Interval(w.To.Std().Sub(w.From.Std())) == "hour" {
		unit = calendar.Hour
	}
	if whole := w.InIntervals(unit, zone).From; whole != w.From {
		return "", whole.Std().Format(time.RFC3339), unit
	}
	return word, "", unit
}

// namePeriods names a period that was asked for by a word, and the one before it: of a month that
// goes on, and of the start of the one before, to the same day.
func namePeriods(word string, now, before span, at time.Time, zone *time.Location) []Period {
	starts := func(t time.Time, interval string) bool { return t.In(zone).Equal(intervalStart(t.In(zone), interval)) }
	list := []Period{now.namedPeriod(word, zone), before.namedPeriod("", zone)}
	if name := &list[0].Name; now.To.After(at) && starts(now.To, "day") && !strings.HasSuffix(*name, v1.ToDate) {
		*name += v1.ToDate
	}
	if before.To.Before(now.From) && starts(before.From, "month") && before.From.In(zone).AddDate(0, 1, 0).Equal(now.From) {
		list[1].Name = before.From.In(zone).Format("January 2006") + " to the same day"
	}
	return list
}

// coversStart reports whether a window is known from its start on.
func coversStart(a *v1.Usage) bool {
	return a.Known != nil && !a.Known.From.After(a.Window.From.Time)
}

// aboutNotes say which part of the periods is known and how complete that is.
func (s *statement) aboutNotes() []string {
	return view.PeriodNotes(s.now, s.before, s.periods[0].Name, s.periods[1].Name, s.known)
}

// changeOfSum is the part by which a sum grew; not known where not all of both periods is. A mean
// or a quotient has [relativeChange], of the known part of either.
func (s *statement) changeOfSum(now, before *big.Rat) Cell {
	if !s.known {
		return Cell{}
	}
	return relativeChange(now, before)
}

// pricesOfPeriod returns the prices of the first period, 0, or of the one before.
func (s *statement) pricesOfPeriod(period int) []v1.Price {
	if period == 0 {
		return s.list
	}
	return s.past
}

// costOfPeriod returns nil where nothing is priced of what was used in the period.
func (s *statement) costOfPeriod(a *v1.Usage, period int) *big.Rat {
	used := s.now
	if period > 0 {
		used = s.before
	}
	sum := totalOf(a, "cost", nil)
	priced := func(p v1.Price) bool {
		return s.canMatch(p.Match) && used.Find(p.Component) != nil
	}
	if sum != nil && sum.Sign() == 0 && !slices.ContainsFunc(s.pricesOfPeriod(period), priced) {
		return nil
	}
	return sum
}

// previousWindow is the window before that of a word, as /v1/usage compares: the month before a
// month, of what goes on the start of it, and of a length by intervals the same time before.
func previousWindow(word string, s span, unit calendar.Unit, now time.Time, zone *time.Location) span {
	at := record.Time(now.UnixMicro())
	before, err := calendar.ParseWindow(word, at, zone)
	if err == nil {
		before, err = before.InIntervals(unit, zone).Comparison("previous", at, zone)
	}
	if err != nil {
		return span{From: s.From.Add(-s.To.Sub(s.From)), To: s.From}
	}
	return span{From: time.UnixMicro(int64(before.From)), To: time.UnixMicro(int64(before.To))}
}

// usageFigures are what was used in all, beside the time before.
func (s *statement) usageFigures(ctx context.Context) (*Table, error) {
	t := &Table{
		Name: "figures", Title: "What was used",
		Columns: []Column{
			{Name: "what", Title: "What", Kind: Text},
			{Name: "unit", Title: "In", Kind: Text},
			{Name: "now", Title: s.periods[0].Name, Kind: Number},
			{Name: "before", Title: s.periods[1].Name, Kind: Number},
			{Name: "change", Title: "Change", Kind: Change},
		},
	}
	measure := "jobs,people"
	if s.money != "" {
		measure = "cost," + measure
	}
	measure += s.measures
	both := &s.figures
	for i := range both {
		var err error
		if both[i], err = s.usageOfPeriod(ctx, v1.UsageQuery{Measure: measure}, i); err != nil {
			return nil, err
		}
	}
	add := func(what, unit string, now, before *big.Rat) {
		if s.before.Records == 0 {
			before = nil
		}
		t.Rows = append(t.Rows, []Cell{v1.Words(what), v1.Words(unit), v1.Rat(now), v1.Rat(before), s.changeOfSum(now, before)})
	}
	sum := func(name string) {
		add(wordFor(name), "", totalOf(both[0], name, nil), totalOf(both[1], name, nil))
	}
	if s.money != "" {
		now := s.costOfPeriod(both[0], 0)
		s.costs = now != nil
		add(wordFor("cost"), s.money, now, s.costOfPeriod(both[1], 1))
		for i := range both {
			s.noteUnpriced(both[i], i)
		}
	}
	for i := range s.now.Measures {
		if m := &s.now.Measures[i]; m.Kind == "rate" {
			by := s.unitDivisor(m.Name)
			add(m.Name, componentUnit(m.Name), dividedBy(v1.Figure(m.Total).Number(), by), totalOf(s.before, m.Name, by))
		}
	}
	sum("jobs")
	sum("people")
	return t, nil
}

// noteUnpriced notes what has no price in a period, all of it or at its time.
func (s *statement) noteUnpriced(a *v1.Usage, period int) {
	m := a.Find("cost")
	if m == nil {
		return
	}
	var never []string
	for _, u := range m.Unpriced {
		switch {
		case isZero(u.Total):
		case !s.hasPrice(u.Component, period):
			never = append(never, u.Component)
		default:
			used := v1.Rat(dividedBy(v1.Rational(u.Total.String()), s.unitDivisor(u.Component)))
			unit := u.UnitText()
			if s.unitDivisor(u.Component) != nil {
				unit = componentUnit(u.Component)
			}
			s.notes = append(s.notes, view.Of(s.periods[period].Name, view.UnpricedNote(used, unit, u.Component, s.money, "the cost"))...)
		}
	}
	if len(never) > 0 {
		s.addNote("%s: nothing of %s has a price, and it is not in the cost.", s.periods[period].Name, strings.Join(never, ", "))
	}
}

// hasPrice reports whether a component has a price at all in a period.
func (s *statement) hasPrice(component string, period int) bool {
	if measure, _, is := v1.EnergyOf(component); is {
		component = measure
	}
	return slices.ContainsFunc(s.pricesOfPeriod(period), func(p v1.Price) bool { return p.Component == component })
}

func wordFor(measure string) string {
	return map[string]string{"cost": "Cost", "jobs": "Jobs", "people": "People"}[measure]
}

// componentUnit is in what a rate is counted.
func componentUnit(name string) string {
	if name == "Memory" || name == usedMemory {
		return "GiB-hours"
	}
	return v1.UsageUnit(name, "hour")
}

// unitDivisor is by what a component is divided for its unit; nil where it is not.
func (s *statement) unitDivisor(name string) *big.Rat {
	if name == "Memory" || name == usedMemory {
		return exactDecimal(s.o.MemoryPerGB)
	}
	return nil
}

// relativeChange is the part by which something grew; not known where there was nothing, or less.
func relativeChange(now, before *big.Rat) Cell {
	if now == nil || before == nil || before.Sign() <= 0 {
		return Cell{}
	}
	return v1.Rat(new(big.Rat).Quo(new(big.Rat).Sub(now, before), before))
}

// peopleKey is the key of the lines of the table of people: the users of a group, and the
// groups of a user.
func (s *statement) peopleKey() string {
	if _, one := s.o.Of[s.o.Keys.User]; one {
		return s.o.Keys.Group
	}
	return s.o.Keys.User
}

// buildPeople makes the table of who used it.
func (s *statement) buildPeople(ctx context.Context) (*Table, error) {
	order, measure := "Cores", "jobs"
	if s.now.Find("Cores") != nil {
		measure += ",Cores"
	}
	if s.costs {
		order, measure = "cost", "cost,"+measure
	}
	if !strings.Contains(measure, order) {
		order = "jobs"
	}
	q := v1.UsageQuery{By: s.peopleKey(), Measure: measure, Order: order, Top: s.o.Top}
	a, err := s.usageOfPeriod(ctx, q, 0)
	if err != nil {
		return nil, err
	}
	before, err := s.usageOfPeriod(ctx, v1.UsageQuery{By: s.peopleKey(), Measure: order}, 1)
	if hasStatus(err, http.StatusBadRequest) { // there was no such component
		before, err = &v1.Usage{}, nil
	}
	if err != nil {
		return nil, err
	}
	return s.peopleTable(a, before, order), nil
}

func (s *statement) peopleTable(a, before *v1.Usage, order string) *Table {
	unit, kind := componentUnit("Cores"), Number
	word := "Cores"
	switch order {
	case "cost":
		unit, kind, word = s.money, Money, "Cost"
	case "jobs":
		unit, word = "", "Jobs"
	}
	t := &Table{
		Name: "people", Title: map[bool]string{true: "Who used it", false: "In which groups"}[s.peopleKey() == s.o.Keys.User],
		Columns: []Column{
			{Name: s.peopleKey(), Title: s.peopleKey(), Kind: Text},
			{Name: "jobs", Title: "Jobs", Kind: Number},
			{Name: "cores", Title: "Cores", Kind: Number, Unit: componentUnit("Cores")},
			{Name: "value", Title: word, Kind: kind, Unit: unit},
			{Name: "part", Title: "Part", Kind: Share},
			{Name: "before", Title: word + ", " + s.periods[1].Name, Kind: kind, Unit: unit},
			{Name: "change", Title: "Change", Kind: Change},
		},
		Chart: &Chart{Kind: Bars, Label: s.peopleKey(), Values: []string{"value", "before"}},
	}
	if s.before.Records == 0 {
		t.Chart.Values = t.Chart.Values[:1]
	}
	if order == "cost" && s.costOfPeriod(before, 1) == nil { // 0 would be no cost
		before = &v1.Usage{}
	}
	past := map[string]*big.Rat{}
	for g := range before.Groups {
		past[view.GroupName(&before.Groups[g])] = groupTotal(before, order, g, nil)
	}
	whole := totalOf(a, order, nil)
	for g := range a.Groups {
		name, value := view.GroupName(&a.Groups[g]), groupTotal(a, order, g, nil)
		t.Rows = append(t.Rows, []Cell{
			v1.Words(name), v1.Rat(groupTotal(a, "jobs", g, nil)), v1.Rat(groupTotal(a, "Cores", g, nil)), v1.Rat(value), Quotient(value, whole), v1.Rat(past[name]), s.changeOfSum(value, past[name]),
		})
	}
	if len(t.Rows) > 1 {
		var was *big.Rat
		if s.before.Records > 0 {
			was = totalOf(before, order, nil)
		}
		t.Totals = []Cell{v1.Words("Total"), v1.Rat(totalOf(a, "jobs", nil)), v1.Rat(totalOf(a, "Cores", nil)), v1.Rat(whole), {}, v1.Rat(was), s.changeOfSum(whole, was)}
	}
	if order != "cost" { // once is enough
		t.dropColumn(map[string]string{"Cores": "cores", "jobs": "jobs"}[order])
	}
	return t
}

// hasStatus reports whether an answer was a problem with one of these statuses.
func hasStatus(err error, statuses ...int) bool {
	p, ok := errors.AsType[*client.Problem](err)
	return ok && slices.Contains(statuses, p.Status)
}
