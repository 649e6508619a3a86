package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// top is who used most: a line with a bar for each group.
type top struct {
	What, Who, When string // as in "GPU-hours", "groups", "last week"
	Choices         []topChoice
	Bars            []bar
	Sum             string
	Exact           string
	Usage           string // links to the same in other forms
	Report          string
	CSV             string
	Problem         string
	Nothing         string // there is none, in words

	answer *v1.Usage // of the window; nil: there is none
}

// topChoice is a row of links of which one is chosen.
type topChoice struct {
	Name  string
	Links []topLink
}

type topLink struct {
	Text, Href string
	Chosen     bool
}

// bar is a group.
type bar struct {
	Name, Href, Value, Exact, Share string
	Paint                           report.Paint
	Width                           string // of 100
}

const topBars = 8

// The words of the choices, and how they are called.
func topWindows() [][2]string {
	return [][2]string{{"today", "today"}, {"7d", "last 7 days"}, {"last-week", "last week"}, {"this-month", "this month"}, {"last-month", "last month"}}
}

func topKeys(own report.Keys) [][2]string {
	return [][2]string{{own.Group, "groups"}, {own.User, "users"}, {"site_id", "sites"}}
}

// topAsk is what is asked for, as it stands in the address.
type topAsk struct {
	of, by, in string
	own        report.Keys
}

// makeTop asks who used most.
func (p *Pages) makeTop(ctx context.Context, q url.Values) top {
	ask := topAsk{q.Get("of"), q.Get("by"), q.Get("in"), p.ownKeys()}
	if ask.in == "" {
		ask.in = "7d"
	}
	a, err := p.topSums(ctx, &ask)
	of := cmp.Or(ask.of, "Cores")
	t := top{What: hoursOf(of), Who: labelOf(topKeys(ask.own), ask.by), When: labelOf(topWindows(), ask.in), answer: a}
	if err != nil {
		t.answer, t.Problem = nil, p.lackText(ctx, err)
		t.Choices = ask.topChoices([]string{"Cores"})
		return t
	}
	t.Choices = ask.topChoices(rateComponents(a))
	ask.of = of
	t.makeBars(a, ask)
	t.paintBars()
	return t
}

// topSums asks for the groups with all their components. Where no key is asked for it
// is the first of which there are values.
func (p *Pages) topSums(ctx context.Context, ask *topAsk) (a *v1.Usage, err error) {
	keys := []string{ask.by}
	if ask.by == "" {
		keys = nil
		for _, k := range topKeys(ask.own) {
			keys = append(keys, k[0])
		}
	}
	for _, key := range keys {
		ask.by = key
		if a, err = p.mostOf(ctx, ask); !refusedAsBad(err) {
			break
		}
	}
	if err != nil && len(keys) > 1 {
		ask.by = keys[0]
	}
	return a, err
}

// mostOf asks for the groups that have most of what is asked for: of Cores when nothing
// is, or where no one has any, of the first component that is used over time.
func (p *Pages) mostOf(ctx context.Context, ask *topAsk) (*v1.Usage, error) {
	by := func(of string) (*v1.Usage, error) {
		return p.usageInHours(ctx, v1.UsageQuery{Window: ask.in, By: ask.by, Top: topBars, Order: of})
	}
	a, err := by(cmp.Or(ask.of, "Cores"))
	if ask.of != "" || !refusedAsBad(err) {
		return a, err
	}
	if a, err = by(""); err != nil {
		return a, err
	}
	if components := rateComponents(a); len(components) > 0 {
		ask.of = components[0]
		return by(ask.of)
	}
	return a, nil
}

// refusedAsBad reports whether /v1 does not know what it was asked for.
func refusedAsBad(err error) bool {
	problem, ok := errors.AsType[*client.Problem](err)
	return ok && problem.Status == http.StatusBadRequest
}

// labelOf is what a word is called; itself where there is no other name.
func labelOf(list [][2]string, word string) string {
	for _, w := range list {
		if w[0] == word {
			return w[1]
		}
	}
	return word
}

// rateComponents are the components of an answer that are used over time.
func rateComponents(a *v1.Usage) (out []string) {
	for i := range a.Measures {
		if a.Measures[i].Kind == "rate" {
			out = append(out, a.Measures[i].Name)
		}
	}
	return out
}

// pageAddress is the address of the overview with other words.
func (k topAsk) pageAddress() string {
	q := url.Values{}
	for name, word := range map[string]string{"of": k.of, "by": k.by, "in": k.in} {
		if word != "" {
			q.Set(name, word)
		}
	}
	return "/?" + q.Encode() + "#top"
}

// topChoices are the links to the same of other components, groups and times.
func (k topAsk) topChoices(components []string) []topChoice {
	link := func(text string, chosen bool, change func(*topAsk)) topLink {
		other := k
		change(&other)
		return topLink{Text: text, Href: other.pageAddress(), Chosen: chosen}
	}
	of, who, when := topChoice{Name: "Of what"}, topChoice{Name: "Of whom"}, topChoice{Name: "When"}
	if k.of != "" && !slices.Contains(components, k.of) {
		components = append(components, k.of)
	}
	for _, c := range components {
		of.Links = append(of.Links, link(hoursOf(c), c == k.of || k.of == "" && c == "Cores", func(a *topAsk) { a.of = c }))
	}
	for _, w := range topKeys(k.own) {
		who.Links = append(who.Links, link(w[1], w[0] == k.by, func(a *topAsk) { a.by = w[0] }))
	}
	for _, w := range topWindows() {
		when.Links = append(when.Links, link(w[1], w[0] == k.in, func(a *topAsk) { a.in = w[0] }))
	}
	return []topChoice{of, when, who}
}

// makeBars makes a bar for each group that used something.
func (t *top) makeBars(a *v1.Usage, ask topAsk) {
	query := url.Values{"window": {ask.in}, "by": {ask.by}, "measure": {ask.of}}
	t.Usage = "/ui/usage?" + query.Encode()
	t.CSV = v1.UsageAddress(&v1.UsageQuery{Window: ask.in, By: ask.by, Measure: v1.JoinList(ask.of), Order: ask.of, Unit: "hour"}, "csv")
	t.Report = "/ui/reports?" + url.Values{"report": {"usage"}, "period": {ask.in}, "by": {ask.by}, "measure": {v1.JoinList(ask.of)}, "order": {ask.of}}.Encode()
	m, all := a.Find(ask.of), totalOf(a, ask.of)
	if m == nil || all == nil || all.Sign() <= 0 {
		t.Nothing = fmt.Sprintf("No %s are known of %s.", t.What, t.When)
		return
	}
	t.Sum, t.Exact = showNumber(report.Number, all), v1.Rat(all).String()
	most := new(big.Rat)
	values := make([]*big.Rat, len(a.Groups))
	for g := range a.Groups {
		if g < len(m.Totals) {
			values[g] = v1.Figure(m.Totals[g]).Number()
		}
		if values[g] != nil && a.Groups[g].Others == 0 && values[g].Cmp(most) > 0 {
			most = values[g]
		}
	}
	for g, n := range values {
		if n == nil || n.Sign() <= 0 {
			continue
		}
		b := t.groupBar(&a.Groups[g], ask)
		b.Value, b.Exact, b.Share = showNumber(report.Number, n), v1.Rat(n).String(), showNumber(report.Share, new(big.Rat).Quo(n, all))
		if most.Sign() > 0 {
			part, _ := new(big.Rat).Quo(n, most).Float64()
			b.Width = fmt.Sprintf("%.1f", 100*min(part, 1))
		}
		t.Bars = append(t.Bars, b)
	}
}

// paintBars gives the bars the colours of their names.
func (t *top) paintBars() {
	names := make([]string, len(t.Bars))
	for i := range t.Bars {
		names[i] = t.Bars[i].Name
	}
	for i, paint := range report.Paints(names) {
		t.Bars[i].Paint = paint
	}
}

// groupBar names a group and leads to what it used.
func (t *top) groupBar(g *v1.UsageGroup, ask topAsk) bar {
	if g.Others > 0 {
		return bar{Name: view.GroupName(g), Href: t.Usage}
	}
	next, _ := usageAsk{Window: ask.in, By: ask.by, Measure: ask.of, Kind: stepped, Top: usualTop}.drillDown(g, nil) // that page chooses the key
	return bar{Name: groupName(g), Href: next.pageAddress()}
}
