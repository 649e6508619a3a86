package web

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// choice is an option of a select.
type choice struct {
	Value, Text string
	Group       string // the heading above it
	Chosen      bool
}

// choices are options in groups.
type choices struct {
	Title string
	List  []choice
}

// usageForm are the fields above the chart.
type usageForm struct {
	Windows  []choice
	Custom   bool // the window is from and to
	From, To string
	Keys     []choice
	Measures []choices
	Steps    []choice
	Kinds    []choice
	Tops     []choice
}

func (page *usagePage) makeForm(keys []string, known *v1.Usage) usageForm {
	a := page.Ask
	f := usageForm{
		Custom:  a.Window == "" && a.From != "",
		Windows: markChosen(a.Window, windowChoices()),
		Kinds:   markChosen(a.Kind, []choice{{Value: stepped, Text: "Steps"}, {Value: bars, Text: "Bars"}}),
		Steps:   markChosen(a.Step, stepChoices()),
		Tops:    markChosen(strconv.Itoa(a.Top), []choice{{Value: "5"}, {Value: "10"}, {Value: "20"}, {Value: "50"}}),
	}
	for _, key := range keys {
		f.Keys = append(f.Keys, choice{Value: v1.JoinList(key), Text: keyName(key, a.own)})
	}
	if !slices.ContainsFunc(f.Keys, func(c choice) bool { return c.Value == a.By }) && a.By != "" {
		f.Keys = append(f.Keys, choice{Value: a.By, Text: keyNames(a.By, a.own)})
	}
	f.Keys = markChosen(a.By, f.Keys)
	if known != nil {
		zone := view.Zone(a.Clock)
		f.From, f.To = formatField(known.Window.From.Time, zone), formatField(known.Window.To.Time, zone)
	}
	if a.Measure != "" {
		f.Measures = groupChoices(nil, a.Measure)
	}
	return f
}

// formatField is a time as a field of a form has it.
func formatField(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("2006-01-02T15:04")
}

func windowChoices() []choice {
	return []choice{
		{Value: "today", Text: "Today"}, {Value: "7d", Text: "Last 7 days"}, {Value: "30d", Text: "Last 30 days"},
		{Value: "this-week", Text: "This week"}, {Value: "last-week", Text: "Last week"}, {Value: "this-month", Text: "This month"}, {Value: "last-month", Text: "Last month"},
		{Value: "this-quarter", Text: "This quarter"}, {Value: "last-quarter", Text: "Last quarter"}, {Value: "this-year", Text: "This year"}, {Value: "last-year", Text: "Last year"},
	}
}

func stepChoices() []choice {
	return []choice{{Value: "", Text: "automatic"}, {Value: "hour"}, {Value: "day"}, {Value: "week"}, {Value: "month"}, {Value: "quarter"}, {Value: "year"}}
}

// markChosen marks the chosen one, and adds it where it is not there.
func markChosen(chosen string, list []choice) []choice {
	found := false
	for i := range list {
		c := &list[i]
		if c.Text == "" {
			c.Text = c.Value
		}
		c.Chosen = c.Value == chosen
		found = found || c.Chosen
	}
	if !found && chosen != "" {
		list = append(list, choice{Value: chosen, Text: chosen, Chosen: true})
	}
	return list
}

// groupChoices is markChosen with headings.
func groupChoices(list []choice, chosen string) (out []choices) {
	for _, c := range markChosen(chosen, slices.Clone(list)) {
		if n := len(out); n == 0 || out[n-1].Title != c.Group {
			out = append(out, choices{Title: c.Group})
		}
		last := &out[len(out)-1]
		last.List = append(last.List, c)
	}
	return out
}

// keyName is a key for people.
func keyName(key string, own report.Keys) string {
	switch key {
	case "site_id":
		return "site"
	case own.Group:
		return "group"
	case own.User:
		return "user"
	case "pi":
		return "principal investigator"
	}
	return key
}

// keyNames are the keys of a list for people.
func keyNames(list string, own report.Keys) string {
	keys := v1.SplitList(list)
	for i := range keys {
		keys[i] = keyName(keys[i], own)
	}
	return strings.Join(keys, " and ")
}

// patternPath is the path that draws the pattern of a series on a square of 12; empty for
// the first.
func patternPath(n int) string {
	if n == 0 {
		return ""
	}
	return []string{"M-2 8 8 -2M4 14 14 4", "M-2 4 8 14M4 -2 14 8", "M0 3H12M0 9H12", "M3 2.2V3.8M9 2.2V3.8M6 8.2V9.8"}[(n-1)%4]
}
