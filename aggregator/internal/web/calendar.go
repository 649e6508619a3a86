package web

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// calendarPage is what months say of sources: whether what schedulers have is there.
type calendarPage struct {
	First, Last    string // the first and the last month
	Earlier, Later string // addresses; "" for none
	One, Three     string
	Months         int
	Sources        []sourceMonths
	Silent         []string // sources of which no day was compared
	Legend         []sign
	Days           shownTable // that are not as they should be
	Stretches      shownTable
	CSV            string
}

// sourceMonths are the months of a source.
type sourceMonths struct {
	Source string
	Months []month
	Words  string
}

// month is a month in weeks, which begin on Monday.
type month struct {
	Name  string
	Weeks [][7]square
}

// square is a day in a calendar; Day 0 is none.
type square struct {
	Day                int
	Class, Sign, Words string
}

// sign says how a day is, without a colour.
type sign struct{ Class, Sign, Words string }

// calendarSigns are all of them, the worst first.
func calendarSigns() []sign {
	list := []sign{{"missing", "✗", ""}, {"gap", "▲", ""}, {"surplus", "+", ""}, {"ok", "✓", ""}, {"open", "…", ""}, {"unchecked", "·", ""}}
	for i := range list {
		list[i].Words = view.DayState(list[i].Class)
	}
	return list
}

func signOf(class string) sign {
	for _, s := range calendarSigns() {
		if s.Class == class {
			return s
		}
	}
	return sign{class, "?", class}
}

// dayFigures says in words what was counted and stored of a day.
func dayFigures(d *v1.Day) string {
	var parts []string
	add := func(n int64, word string) {
		if n > 0 {
			parts = append(parts, view.Count(n)+" "+word)
		}
	}
	if d.Runs != nil {
		parts = append(parts, view.Plural(*d.Runs, "run"))
	}
	add(d.Missing, "missing")
	add(d.Surplus, "too many")
	if d.Runs != nil || d.Stored > 0 {
		parts = append(parts, view.Count(d.Stored)+" stored")
	}
	if d.Filtered != nil {
		add(*d.Filtered, "filtered")
	}
	if d.Quarantined != nil {
		add(*d.Quarantined, "in quarantine")
	}
	add(d.Deleted, "deleted")
	return strings.Join(parts, ", ")
}

// maxMonths bounds what the calendar shows.
const maxMonths = 12

// parseMonths reads which months an address asks for; the present one and the two
// before it when it says nothing.
func parseMonths(form url.Values, now time.Time) (last time.Time, months int, err error) {
	present := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	last, months = present, 3
	if text := form.Get("month"); text != "" {
		if last, err = time.Parse("2006-01", text); err != nil || last.Year() < 1970 {
			return last, months, badRequest("%q is no month; write it like %s.", text, present.Format("2006-01"))
		}
	}
	if text := form.Get("months"); text != "" {
		if months, err = strconv.Atoi(text); err != nil || months < 1 || months > maxMonths {
			return last, months, badRequest("%q is not a number of months from 1 to %d.", text, maxMonths)
		}
	}
	if last.After(present) {
		last = present
	}
	return last, months, nil
}

// makeCalendar makes the calendar that an address asks for.
func (p *Pages) makeCalendar(r *http.Request, gaps []gapView) (*calendarPage, error) {
	now := p.currentTime()
	last, months, err := parseMonths(r.URL.Query(), now)
	if err != nil {
		return nil, err
	}
	first, end := last.AddDate(0, 1-months, 0), last.AddDate(0, 1, 0)
	a, err := p.comparedDays(r.Context(), first, end)
	if err != nil {
		return nil, err
	}
	c := &calendarPage{
		First: first.Format("2006-01"), Last: last.Format("2006-01"), Months: months,
		Days: p.showList(view.Days(*a, false), math.MaxInt, ""), Stretches: p.showList(view.Stretches(a.Stretches), math.MaxInt, ""),
		Earlier: monthsPath(first.AddDate(0, -1, 0), months), One: monthsPath(last, 1), Three: monthsPath(last, 3), CSV: v1.CompletenessAddress(daysQuery(first, end), "csv"),
	}
	if end.Before(now) {
		c.Later = monthsPath(last.AddDate(0, months, 0), months)
	}
	c.fillMonths(a.Days, gaps, first, end)
	return c, nil
}

func daysQuery(first, end time.Time) *v1.CompletenessQuery {
	return &v1.CompletenessQuery{From: first.Format(time.DateOnly), To: end.Format(time.DateOnly)}
}

// calendars are answers about days that were got a while ago. To get one goes through
// the records of months, while pages renew themselves every few seconds; and all who
// may have it get the same.
type calendars struct {
	mu      sync.Mutex
	answers map[v1.CompletenessQuery]calendarAnswer
}

type calendarAnswer struct {
	days *v1.Completeness
	at   time.Time
}

const (
	calendarAge  = time.Minute // after which the days are compared again
	maxCalendars = 32
)

// freshAnswer returns the answer to a query; nil when there is none that is new enough.
func (c *calendars) freshAnswer(query v1.CompletenessQuery, now time.Time) *v1.Completeness {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.answers[query]
	if age := now.Sub(a.at); !ok || age < 0 || age >= calendarAge {
		return nil
	}
	return a.days
}

// addAnswer remembers an answer, which no one changes any more.
func (c *calendars) addAnswer(query v1.CompletenessQuery, days *v1.Completeness, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || len(c.answers) >= maxCalendars {
		c.answers = map[v1.CompletenessQuery]calendarAnswer{}
	}
	c.answers[query] = calendarAnswer{days, now}
}

// comparedDays asks for the days of a window. The reader must have the right to see them.
func (p *Pages) comparedDays(ctx context.Context, first, end time.Time) (*v1.Completeness, error) {
	query, now := daysQuery(first, end), p.currentTime()
	if a := p.calendars.freshAnswer(*query, now); a != nil {
		return a, nil
	}
	answer, err := p.V1.Completeness(ctx, query)
	if err != nil {
		return nil, err
	}
	p.calendars.addAnswer(*query, &answer, now)
	return &answer, nil
}

func monthsPath(last time.Time, months int) string {
	return "/ui/agents?" + url.Values{"month": {last.Format("2006-01")}, "months": {strconv.Itoa(months)}}.Encode() + "#calendar"
}

// fillMonths makes the months of each source.
func (c *calendarPage) fillMonths(days []v1.Day, gaps []gapView, first, end time.Time) {
	used := map[string]bool{}
	for len(days) > 0 {
		n := 1
		for n < len(days) && days[n].Source == days[0].Source {
			n++
		}
		c.addSource(days[:n], gaps, first, end, used)
		days = days[n:]
	}
	for _, s := range calendarSigns() {
		if used[s.Class] {
			c.Legend = append(c.Legend, s)
		}
	}
}

// addSource adds the months of a source of which a day was compared.
func (c *calendarPage) addSource(days []v1.Day, gaps []gapView, first, end time.Time, used map[string]bool) {
	name, byDay, compared := days[0].Source, map[string]square{}, 0
	tally := map[string]int{}
	for i := range days {
		d := &days[i]
		s, gap := squareOf(d, gaps)
		byDay[d.Day] = s
		tally[s.Class]++
		if d.Runs != nil || gap {
			compared++
		}
	}
	if compared == 0 {
		c.Silent = append(c.Silent, name)
		return
	}
	out := sourceMonths{Source: name}
	for m := first; m.Before(end); m = m.AddDate(0, 1, 0) {
		out.Months = append(out.Months, monthOf(m, byDay))
	}
	var words []string
	for _, s := range calendarSigns() {
		if n := tally[s.Class]; n > 0 {
			used[s.Class] = true
			words = append(words, s.Words+" on "+view.Plural(n, "day"))
		}
	}
	out.Words = strings.Join(words, ", ")
	c.Sources = append(c.Sources, out)
}

// squareOf shows a day; gap says that a part of it could not be read.
func squareOf(d *v1.Day, gaps []gapView) (s square, gap bool) {
	class, words := d.State, dayFigures(d)
	if g := gapOn(d, gaps); g != nil {
		gap = true
		if class == "open" || class == "unchecked" {
			class = "gap"
		}
		words = strings.Trim(words+", a gap: "+g.Reason, ", ")
	}
	sign := signOf(class)
	s = square{Class: class, Sign: sign.Sign, Words: sign.Words}
	if words != "" {
		s.Words += ": " + words
	}
	return s, gap
}

// gapOn is a gap of the source, or of all of its agent, that touches the day.
func gapOn(d *v1.Day, gaps []gapView) *gapView {
	begin, err := time.Parse(time.DateOnly, d.Day)
	if err != nil {
		return nil
	}
	end := begin.AddDate(0, 0, 1)
	for i := range gaps {
		g := &gaps[i]
		if name := g.Source(); name != d.Source && !strings.HasPrefix(d.Source, name+"/") {
			continue
		}
		if (g.To.IsZero() || g.To.After(begin)) && g.From.Before(end) && !(g.From.IsZero() && g.To.IsZero()) {
			return g
		}
	}
	return nil
}

// monthOf puts days into the weeks of a month.
func monthOf(first time.Time, days map[string]square) month {
	m := month{Name: first.Format("2006-01")}
	column := (int(first.Weekday()) + 6) % 7
	var week [7]square
	for d := first; d.Month() == first.Month(); d = d.AddDate(0, 0, 1) {
		s, known := days[d.Format(time.DateOnly)]
		if !known {
			s.Class = "none"
		}
		s.Day = d.Day()
		week[column] = s
		if column++; column == 7 {
			m.Weeks, week, column = append(m.Weeks, week), [7]square{}, 0
		}
	}
	if column > 0 {
		m.Weeks = append(m.Weeks, week)
	}
	return m
}
