package report

import (
	"cmp"
	"context"
	"math/big"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// projectsEntry is what projects used and have left.
func projectsEntry() Entry {
	of := whereParam()
	of.Name, of.Title, of.Words = "of", "Subject", []string{"project=bell", "pi=curie", "group_id=atlas"}
	return Entry{
		Report: v1.Report{
			Name: "projects", Title: "Projects", About: "What projects used, who their members are, how budgets are used up, what was wasted, and the largest jobs.",
			Parameters: boardParams(of),
		},
		Long: `What projects used in a period, beside the period before: each project, each member
with efficiency and what was left unused, the budgets with a chart of how they are used
up and a forecast, core-hours by the state in which jobs ended, with those that were lost,
advice for each user, and the largest jobs. Without -of it has all that the reader may
see. Where no project is configured the lines are groups.
` + adviceHelp,
		Example: "  bursar report projects -of pi=curie\n  bursar report projects -of project=bell -period last-month -o bell.html",
		make: func(ctx context.Context, r v1.API, q Query) (*Document, error) {
			b, err := newBoard(ctx, r, &q, q.Pairs("of"), "projects", "Projects")
			if err != nil {
				return nil, err
			}
			key, err := b.projectKey(ctx)
			if err != nil {
				return nil, err
			}
			parts := []func(context.Context) (*Table, error){b.figureTiles, b.membersTable("projects", q.Keys.columnTitle(key)+"s", key), b.usageOverTime(key, false), b.buildBudgets}
			down, err := b.burndownParts(ctx)
			if err != nil {
				return nil, err
			}
			parts = append(parts, down...)
			return b.addParts(ctx, append(parts, b.membersTable("members", "Members", q.Keys.User), b.lostByState, b.buildAdvice, b.largestJobs)...)
		},
	}
}

// projectKey is the key of the lines: the project, or the group where there are none.
func (b *board) projectKey(ctx context.Context) (string, error) {
	if b.o.subjectValues()["project"] != nil {
		return "project", nil
	}
	a, err := b.usageOfPeriod(ctx, v1.UsageQuery{By: "project", Measure: "records"}, 0)
	if hasStatus(err, http.StatusBadRequest, http.StatusForbidden) {
		return b.o.Keys.Group, nil
	}
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(a.Groups, func(g v1.UsageGroup) bool { return len(g.Values) == 1 && g.Values[0] != nil }) {
		return b.o.Keys.Group, nil
	}
	return "project", nil
}

// membersTable makes the table of who used what, with what was left unused.
func (b *board) membersTable(name, title, key string) func(context.Context) (*Table, error) {
	return func(ctx context.Context) (*Table, error) {
		order := "jobs"
		measures := "jobs,wait,efficiency,unused"
		if b.now.Find("Cores") != nil {
			order, measures = "Cores", "Cores,"+measures
		}
		q := v1.UsageQuery{By: key, Measure: measures, Order: order, Top: b.o.Top}
		a, err := b.usageOfPeriod(ctx, q, 0)
		if err != nil {
			return nil, err
		}
		before := map[string]*big.Rat{}
		if past, err := b.usageOfPeriod(ctx, v1.UsageQuery{By: key, Measure: order}, 1); err == nil {
			for g := range past.Groups {
				before[view.GroupName(&past.Groups[g])] = groupTotal(past, order, g, nil)
			}
		} else if !hasStatus(err, http.StatusBadRequest) {
			return nil, err
		}
		t := &Table{
			Name: name, Title: title,
			Columns: []Column{
				{Name: key, Title: b.o.Keys.columnTitle(key), Kind: Text}, {Name: "jobs", Title: "Jobs", Kind: Number},
				{Name: "used", Title: "Used", Kind: Number, Unit: "core-hours"}, {Name: "share", Title: "Share", Kind: Share}, {Name: "change", Title: "Change", Kind: Change},
				{Name: "wait", Title: "Mean wait", Kind: Number, Unit: "minutes"}, {Name: "efficiency", Title: "CPU efficiency", Kind: Share},
				{Name: "unused", Title: "Unused", Kind: Number, Unit: "core-hours"},
			},
			Chart: &Chart{Kind: Bars, Label: key, Values: []string{"used"}},
		}
		for g := range a.Groups {
			who := view.GroupName(&a.Groups[g])
			used, spare := groupTotal(a, "Cores", g, nil), unusedHours(groupTotal(a, "unused", g, nil))
			if a.Groups[g].Others > 0 { // who used more than was booked does not make up for others
				spare = nil
			}
			t.Rows = append(t.Rows, []Cell{
				v1.Words(who), v1.Rat(groupTotal(a, "jobs", g, nil)), v1.Rat(used), Quotient(used, totalOf(a, "Cores", nil)), b.changeOfSum(groupTotal(a, order, g, nil), before[who]),
				v1.Rat(inMinutes(a.Find("wait"), groupTotal(a, "wait", g, nil))), v1.Rat(groupTotal(a, "efficiency", g, nil)), v1.Rat(spare),
			})
		}
		return t, nil
	}
}

// mostBurndowns is of how many budgets a report has a chart.
const mostBurndowns = 12

// burndownParts make a table for each budget on which the subject draws: how it is used up.
func (b *board) burndownParts(ctx context.Context) (parts []func(context.Context) (*Table, error), err error) {
	a, err := b.askBudgets(ctx)
	if hasStatus(err, http.StatusForbidden) {
		return nil, nil // the table of budgets has said so
	}
	if err != nil {
		return nil, err
	}
	own, err := b.ownBudgets(ctx, a.Budgets)
	if err != nil {
		return nil, err
	}
	for i := range own[:min(len(own), mostBurndowns)] {
		parts = append(parts, func(ctx context.Context) (*Table, error) {
			return burndownTable(ctx, b.r, &own[i], i+1, cmp.Or(a.Now.Time, b.o.Now))
		})
	}
	return parts, nil
}
