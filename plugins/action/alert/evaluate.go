package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/alerts"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// condition is what a rule finds.
type condition struct {
	about, severity, what, do string
	since                     time.Time // zero: now
	unknown                   bool      // whether it holds is not known: an alert about it stays as it is
}

const (
	// maxAlerts is how many alerts there are at most, so that the state is small enough.
	maxAlerts = 300
	// maxText bounds what an alert says.
	maxText = 400
	// endedFor is how long an alert that has ended is remembered, for an Alertmanager that
	// was not told.
	endedFor = 15 * time.Minute
)

// errMissing is wrapped by the error of a rule over something that does not exist.
var errMissing = errors.New("not found")

// evaluateRules looks at each rule. The alerts of one that cannot be evaluated stay as they are.
func (p *planner) evaluateRules(ctx context.Context) error {
	known := map[string]*alerts.Alert{}
	for i := range p.state.Alerts {
		known[p.state.Alerts[i].Key()] = &p.state.Alerts[i]
	}
	var next []alerts.Alert
	var problems []alerts.Problem
	for i := range p.rules {
		r := &p.rules[i]
		found, err := p.evaluateRule(ctx, r)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && r.lenient && isMissing(err):
			found = nil
		case err != nil:
			problems = append(problems, p.noteProblem(r.Name, err))
			for _, a := range p.state.Alerts {
				if a.Rule == r.Name {
					next = append(next, a)
					delete(known, a.Key())
				}
			}
			continue
		}
		for _, c := range found {
			if c.unknown {
				key := (&alerts.Alert{Rule: r.Name, About: cutText(c.about)}).Key()
				if before := known[key]; before != nil {
					next = append(next, *before)
					delete(known, key)
				}
				continue
			}
			a := p.newAlert(r, &c, known)
			if slices.ContainsFunc(next, func(o alerts.Alert) bool { return o.Key() == a.Key() }) {
				continue
			}
			delete(known, a.Key())
			next = append(next, a)
		}
	}
	for _, a := range known { // what no rule finds any more
		if a.Fired.IsZero() || !a.Ended.IsZero() && p.now.Sub(a.Ended) > endedFor {
			continue
		}
		if a.Over.IsZero() {
			a.Over = p.now
		}
		if a.Ended.IsZero() && p.now.Sub(a.Over) >= p.Keep {
			a.Ended = p.now
		}
		next = append(next, *a)
	}
	slices.SortFunc(next, func(a, b alerts.Alert) int { return strings.Compare(a.Key(), b.Key()) })
	if len(next) > maxAlerts {
		p.noteLack("%d alerts are more than the %d that are kept; the others are not told", len(next), maxAlerts)
		next = next[:maxAlerts]
	}
	p.state.Alerts, p.state.Problems = next, problems
	return nil
}

// isMissing reports whether there is nothing that a rule could look at.
func isMissing(err error) bool {
	refusal, refused := errors.AsType[*sdk.ResponseError](err)
	return errors.Is(err, errMissing) || refused && (refusal.Status < http.StatusInternalServerError || refusal.Status == http.StatusNotImplemented)
}

// noteProblem notes that a rule cannot be evaluated, and since when.
func (p *planner) noteProblem(rule string, err error) alerts.Problem {
	out := alerts.Problem{Rule: rule, Why: cutText(err.Error()), Since: p.now}
	for _, before := range p.state.Problems {
		if before.Rule == rule {
			out.Since = before.Since
		}
	}
	p.noteLack("rule %s cannot be evaluated: %s", rule, out.Why)
	return out
}

// newAlert is the alert of a condition that holds.
func (p *planner) newAlert(r *rule, c *condition, known map[string]*alerts.Alert) alerts.Alert {
	a := alerts.Alert{Rule: r.Name, About: cutText(c.about), Since: cmp.Or(c.since, p.now)}
	if before := known[a.Key()]; before != nil && before.Ended.IsZero() {
		a = *before
		a.Over = time.Time{}
	}
	a.Severity, a.What, a.Do, a.Runbook = cmp.Or(r.Severity, c.severity, "warning"), cutText(c.what), cutText(c.do), r.Runbook
	if a.Fired.IsZero() && p.now.Sub(a.Since) >= r.For {
		a.Fired = p.now
	}
	return a
}

// cutText bounds a text.
func cutText(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// evaluateRule returns what a rule finds.
func (p *planner) evaluateRule(ctx context.Context, r *rule) ([]condition, error) {
	switch {
	case len(r.Findings) > 0:
		return p.findingConditions(ctx, r)
	case r.Budget != "":
		return p.budgetConditions(ctx, r)
	case r.Conflicts:
		return p.conflictConditions(ctx)
	case r.Share != nil:
		return p.shareConditions(ctx, r.Share)
	}
	return p.usageConditions(ctx, r)
}

func (p *planner) findingConditions(ctx context.Context, r *rule) (out []condition, err error) {
	status, err := p.readStatus(ctx)
	if err != nil {
		return nil, err
	}
	if status.Verdict == nil {
		return nil, errors.New("the cluster's health is not known to the node that leads")
	}
	for _, f := range status.Findings {
		if slices.Contains(r.Findings, f.ID) {
			out = append(out, condition{about: strings.TrimSpace(f.About + distinguishFinding(r, f.ID, f.About)), severity: f.Severity, what: f.What, do: f.Do, since: f.Since.Time})
		}
	}
	return out, nil
}

// distinguishFinding tells the findings about the same thing apart that one rule names.
func distinguishFinding(r *rule, id, about string) string {
	if len(r.Findings) == 1 {
		return ""
	}
	if about == "" {
		return id
	}
	return " (" + id + ")"
}

func (p *planner) budgetConditions(ctx context.Context, r *rule) (out []condition, err error) {
	answer, err := p.budgetList(ctx)
	if err != nil {
		return nil, err
	}
	var known []string
	for i := range answer.Budgets {
		b := &answer.Budgets[i]
		known = append(known, b.Name)
		if b.Period.State != "present" || r.Budget != "*" && r.Budget != b.Name {
			continue
		}
		if why := whyUnknown(b); why != "" {
			if r.Budget != "*" {
				return nil, fmt.Errorf("budget %q: %s", b.Name, why)
			}
			p.noteOnce("budget %s is not looked at: %s", b.Name, why)
			out = append(out, condition{about: b.Name, unknown: true})
			continue
		}
		if c, ok := p.budgetCondition(r, b); ok {
			out = append(out, c)
		}
	}
	if r.Budget != "*" && !slices.Contains(known, r.Budget) {
		return nil, fmt.Errorf("budget %q %w: the budgets are %s", r.Budget, errMissing, listInWords(known))
	}
	return out, nil
}

// whyUnknown says why it is not known how much of a budget is used; "" where it is.
func whyUnknown(b *v1.Budget) string {
	switch {
	case b.BudgetStanding == nil:
		return cmp.Or(string(b.Problem), "its use cannot be worked out")
	case b.Share == nil:
		return "nothing of its use in " + b.Unit + " is known"
	}
	return ""
}

// budgetCondition is the condition of a budget of which the use is known; false: it is not met.
func (p *planner) budgetCondition(r *rule, b *v1.Budget) (condition, bool) {
	share, amount := ratOf(*b.Share), ratOf(b.Amount)
	used := percentOf(share)
	var atEnd *big.Rat // nil: not known
	if b.Pace != nil && amount.Sign() > 0 {
		days := new(big.Rat).SetFrac64(int64(b.Period.To.Sub(p.now)/time.Second), 24*60*60)
		rest := days.Mul(days, ratOf(b.Pace.PerDay))
		atEnd = rest.Add(share, rest.Quo(rest, amount))
	}
	if r.Used != nil && used < *r.Used || r.Forecast != nil && (atEnd == nil || percentOf(atEnd) < *r.Forecast) {
		return condition{}, false
	}
	what := fmt.Sprintf("budget %s: %s of %s %s used", b.Name, v1.Show("share", v1.Rat(share)), v1.ShowIn("number", b.Unit, v1.Rat(amount)), b.Unit)
	if b.Period.Name != "" {
		what += " in " + string(b.Period.Name)
	}
	switch {
	case b.Exhausted:
		what += "; it is exhausted"
	case atEnd != nil && !b.GoneAt.IsZero():
		what += fmt.Sprintf("; at the present pace it is exhausted on %s, and %s are used at the end", b.GoneAt.In(zoneOf(b)).Format(time.DateOnly), v1.Show("share", v1.Rat(atEnd)))
	case atEnd != nil:
		what += fmt.Sprintf("; at the present pace %s are used at the end", v1.Show("share", v1.Rat(atEnd)))
	}
	return condition{about: b.Name, what: what, do: "bursar budgets " + b.Name}, true
}

// zoneOf is by whose clock a budget's periods begin.
func zoneOf(b *v1.Budget) *time.Location {
	zone, err := time.LoadLocation(b.Period.Zone)
	if err != nil {
		return time.UTC
	}
	return zone
}

func ratOf(n interface{ String() string }) *big.Rat {
	out, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return new(big.Rat)
	}
	return out
}

func percentOf(r *big.Rat) float64 {
	f, _ := new(big.Rat).Mul(r, big.NewRat(100, 1)).Float64()
	return f
}

func (p *planner) conflictConditions(ctx context.Context) (out []condition, err error) {
	answer, err := p.data.API().Conflicts(ctx, &v1.Reading{})
	if err != nil {
		return nil, err
	}
	for i := range answer.Conflicts {
		e := &answer.Conflicts[i]
		var origins []string
		for _, h := range e.Holdings {
			origins = append(origins, h.Origin)
		}
		out = append(out, condition{
			about: e.RecordID, what: fmt.Sprintf("origins disagree about the start of run %s: %s", e.RecordID, strings.Join(origins, ", ")), do: "bursar conflicts",
		})
	}
	if answer.More {
		p.noteLack("there are more conflicts than are listed: bursar conflicts")
	}
	return out, nil
}

func (p *planner) usageConditions(ctx context.Context, r *rule) (out []condition, err error) {
	u := r.Usage
	answer, err := p.data.API().Usage(ctx, &v1.UsageQuery{Window: u.Window, Zone: u.Zone, By: u.By, Measure: u.Measure, Where: u.Where, Unit: "hour"})
	if err != nil {
		return nil, err
	}
	if len(answer.Measures) != 1 {
		return nil, fmt.Errorf("measure %q has %d figures; one is allowed", u.Measure, len(answer.Measures))
	}
	m := &answer.Measures[0]
	for i, g := range answer.Groups {
		if i >= len(m.Totals) || m.Totals[i] == nil {
			continue // there is no figure
		}
		figure, _ := ratOf(m.Totals[i]).Float64()
		if u.Above != nil && figure <= *u.Above || u.Below != nil && figure >= *u.Below {
			continue
		}
		about := ""
		if len(g.Values) == 1 {
			about = u.By + "="
			if g.Values[0] != nil {
				about += *g.Values[0]
			}
		}
		out = append(out, condition{about: about, what: u.sayFigure(m, *m.Totals[i], about), do: usageDo(u)})
	}
	return out, nil
}

// sayFigure is what a figure beyond its bound says.
func (u *usageRule) sayFigure(m *v1.Measure, figure json.Number, about string) string {
	bound, side := u.Above, "above"
	if u.Below != nil {
		bound, side = u.Below, "below"
	}
	kind, after := "number", ""
	if m.Kind == "ratio" {
		kind = "ratio"
	} else if unit := m.UnitText(); unit != "" {
		after = " " + unit
	}
	shown := func(n json.Number) string { return v1.ShowIn(kind, string(m.Unit), v1.Figure(&n)) + after }
	if about != "" {
		about = " by " + about
	}
	return fmt.Sprintf("%s in %s%s is %s, %s %s", u.Measure, u.Window, about, shown(figure), side, shown(json.Number(strconv.FormatFloat(*bound, 'g', -1, 64))))
}

func usageDo(u *usageRule) string {
	do := "bursar usage -window " + u.Window + " -measure " + u.Measure
	if u.By != "" {
		do += " -by " + u.By
	}
	return do
}

// shareConditions are the contributors whose use is beyond a bound. Who is exempt or contributed
// nothing has no share to compare with.
func (p *planner) shareConditions(ctx context.Context, s *shareRule) (out []condition, err error) {
	answer, err := p.data.API().Subscription(ctx, &v1.SubscriptionQuery{Window: s.Over, Zone: s.Zone})
	if err != nil {
		return nil, err
	}
	for i := range answer.Shares {
		h := &answer.Shares[i]
		if h.State == "exempt" || h.UsedShare == nil || h.ContributionShare == nil || ratOf(h.ContributionShare).Sign() == 0 {
			continue
		}
		ratio := json.Number("0") // of what was contributed nothing was used
		if h.Ratio != nil {
			ratio = *h.Ratio
		} else if ratOf(h.UsedShare).Sign() != 0 {
			continue
		}
		side, bound := s.sideBeyond(ratio)
		if side == "" {
			continue
		}
		what := fmt.Sprintf("%s used %s times the share of the contributions in %s (%s of the use, %s of the contributions), %s %s",
			cmp.Or(string(h.Name), h.PI), v1.ShowIn("number", "", v1.Figure(&ratio)), s.Over, v1.Show("share", v1.Figure(h.UsedShare)), v1.Show("share", v1.Figure(h.ContributionShare)),
			side, strconv.FormatFloat(bound, 'g', -1, 64))
		out = append(out, condition{about: fmt.Sprintf("pi=%s (%s)", h.PI, side), what: what, do: "bursar subscription -window " + s.Over})
	}
	return out, nil
}

// sideBeyond is the side on which a ratio is out of bounds, and the bound; "" when it is within.
func (s *shareRule) sideBeyond(ratio json.Number) (side string, bound float64) {
	figure, _ := ratOf(ratio).Float64()
	switch {
	case s.Above != nil && figure > *s.Above:
		return "above", *s.Above
	case s.Below != nil && figure < *s.Below:
		return "below", *s.Below
	}
	return "", 0
}
