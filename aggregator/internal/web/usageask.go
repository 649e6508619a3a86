package web

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// usageAsk is what the address of the usage page asks for. What is not said is empty
// until the page chooses it.
type usageAsk struct {
	Window, From, To string
	// Zone is the time zone that was asked for, if any; Clock is by whose clock days begin.
	Zone, Clock string
	By          string // a list of keys as /v1 has it: see [v1.SplitList]
	Measure     string
	Step        string // a bucket of /v1/usage, or empty for what fits the window
	Kind        string // steps or bars
	Top         int
	own         report.Keys
	Where       []condition // from the widest to the narrowest
}

// condition is a step of the way down: a key and the list of values of which one is wanted.
type condition struct{ Key, Value string }

// What the page shows when nothing else is asked for.
const (
	usualTop    = 10
	mostTop     = 100
	usualWindow = "7d"
	stepped     = "steps"
	bars        = "bars"
)

// keysWidestFirst are keys from the widest to the narrowest.
func keysWidestFirst(own report.Keys) []string {
	return []string{"site_id", "cluster", "partition", "pi", "project", "account", own.Group, own.User}
}

// narrowerKey is the key by which one looks into a value of another; empty: at its records.
func narrowerKey(key string, own report.Keys) string {
	switch key {
	case own.User:
		return ""
	case "pi":
		return "project"
	case "project", "account", own.Group:
		return own.User
	}
	return own.Group
}

func readUsage(q url.Values, own report.Keys) (usageAsk, error) {
	a := usageAsk{
		Window: q.Get("window"), From: q.Get("from"), To: q.Get("to"), Zone: q.Get("zone"), By: q.Get("by"), Measure: q.Get("measure"), Step: q.Get("step"),
		Kind: q.Get("kind"), Top: usualTop, own: own,
	}
	for field := range q {
		inner, is := strings.CutPrefix(field, "where[")
		if key, whole := strings.CutSuffix(inner, "]"); is && whole && key != "" {
			a.Where = append(a.Where, condition{Key: key, Value: q.Get(field)})
		}
	}
	slices.SortFunc(a.Where, func(x, y condition) int {
		place := func(c condition) int { return slices.Index(keysWidestFirst(own), c.Key) }
		if d := place(x) - place(y); d != 0 {
			return d
		}
		return strings.Compare(x.Key, y.Key)
	})
	if a.Kind == "" {
		a.Kind = stepped
	}
	if where := q.Get("where"); where != "" {
		return a, badRequest("invalid filter %q: use KEY=VALUE, for example %s=NAME.", where, own.User)
	}
	if a.Kind != stepped && a.Kind != bars {
		a.Kind = stepped
		return a, badRequest("invalid kind %q: use steps or bars.", q.Get("kind"))
	}
	if top := q.Get("top"); top != "" {
		n, err := strconv.Atoi(top)
		if err != nil || n < 1 || n > mostTop {
			return a, badRequest("top is %q, want how many groups have a line of their own, from 1 to %d.", top, mostTop)
		}
		a.Top = n
	}
	return a, nil
}

// pageAddress is the page that shows this.
func (a usageAsk) pageAddress() string {
	q := url.Values{}
	fields := map[string]string{"by": a.By, "measure": a.Measure, "step": a.Step, "zone": a.Zone}
	if a.Window != "" {
		fields["window"] = a.Window
	} else {
		fields["from"], fields["to"] = a.From, a.To
	}
	if a.Kind != stepped {
		fields["kind"] = a.Kind
	}
	if a.Top != usualTop {
		fields["top"] = strconv.Itoa(a.Top)
	}
	for field, value := range fields {
		if value != "" {
			q.Set(field, value)
		}
	}
	for _, c := range a.Where {
		q.Set("where["+c.Key+"]", c.Value)
	}
	return "/ui/usage?" + q.Encode()
}

// usageQuery says when and of whom.
func (a usageAsk) usageQuery() *v1.UsageQuery {
	q := &v1.UsageQuery{Unit: "hour", Zone: a.Zone, Window: a.Window, Where: map[string]string{}}
	if a.Window == "" {
		q.From, q.To = a.From, a.To
	}
	for _, c := range a.Where {
		q.Where[c.Key] = c.Value
	}
	return q
}

// inIntervals returns where the window begins when it is shown by steps.
func (a usageAsk) inIntervals(from, to time.Time, step string) time.Time {
	unit, err := calendar.ParseUnit(step)
	if _, other := hcl.ParseDuration(a.Window); err != nil || other != nil {
		return from
	}
	zone := view.Zone(a.Clock)
	w, err := calendar.ParseWindow(a.Window, record.FromStd(to), zone)
	if err != nil {
		return from
	}
	return w.InIntervals(unit, zone).From.Std()
}

// withWindow is the same with another window.
func (a usageAsk) withWindow(from, to string) usageAsk {
	a.Window, a.From, a.To, a.Step = "", from, to, ""
	return a
}

// byKeys are those that give the lines.
func (a usageAsk) byKeys() []string { return v1.SplitList(a.By) }

// drillDown looks into one line, by the next narrower of the known keys; lacks says that the line
// has no value of a key.
func (a usageAsk) drillDown(g *v1.UsageGroup, known []string) (next usageAsk, lacks bool) {
	keys := a.byKeys()
	a.Where = slices.DeleteFunc(slices.Clone(a.Where), func(c condition) bool { return slices.Contains(keys, c.Key) })
	for i, key := range keys {
		value := ""
		if i < len(g.Values) && g.Values[i] != nil {
			value = *g.Values[i]
		} else {
			lacks = true
		}
		a.Where = append(a.Where, condition{Key: key, Value: v1.JoinList(value)})
	}
	for a.By = narrowerKey(keys[len(keys)-1], a.own); a.By != "" && (a.hasCondition(a.By) || !slices.Contains(known, a.By)); {
		a.By = narrowerKey(a.By, a.own)
	}
	return a, lacks
}

func (a usageAsk) hasCondition(key string) bool {
	return slices.ContainsFunc(a.Where, func(c condition) bool { return c.Key == key })
}

// drillUp shows the first n steps of the way down, by the key of the next.
func (a usageAsk) drillUp(n int) usageAsk {
	if n < len(a.Where) {
		a.By = v1.JoinList(a.Where[n].Key)
	}
	a.Where = a.Where[:n]
	return a
}

// tidyUsage is the address without what says nothing, and with a condition of the form as all
// conditions are; false when it is tidy.
func tidyUsage(q url.Values, own report.Keys) (url.Values, bool) {
	changed := false
	drop := func(field string) {
		if q.Has(field) {
			changed = true
			q.Del(field)
		}
	}
	for field, values := range q {
		if !strings.HasPrefix(field, "where[") && len(values) == 1 && values[0] == "" {
			drop(field)
		}
	}
	if key, value, ok := strings.Cut(strings.TrimSpace(q.Get("where")), "="); ok && key != "" && value != "" {
		for name, field := range fieldsOf(own) {
			if key == field {
				key = name
				break
			}
		}
		q.Set("where["+key+"]", value)
		drop("where")
	}
	if q.Get("window") != "" {
		drop("from")
		drop("to")
	}
	return q, changed
}
