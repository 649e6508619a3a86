package web

import (
	"math"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// tab is a page of those about agents and sources.
type tab struct {
	Name, Path string
	Current    bool
	Count      bounded
	Counted    bool
	Warn       bool // something waits there
}

// agentTabs are the pages about agents and sources that the principal may see.
func agentTabs(v *access.View, current string) ([]tab, error) {
	list := []tab{}
	if v.MayFigures() == nil {
		list = append(list, tab{Name: "Agents and sources", Path: "/ui/agents"})
	}
	if v.Whole() == nil {
		n, err := v.QuarantineCount()
		if err != nil {
			return nil, err
		}
		list = append(list, tab{Name: "Quarantine", Path: "/ui/quarantine", Count: bounded{N: int(min(n, math.MaxInt))}, Counted: true, Warn: n > 0})
	}
	if v.Principal().May(identity.Read) {
		n, err := conflictCount(v)
		if err != nil {
			return nil, err
		}
		list = append(list, tab{Name: "Conflicts", Path: "/ui/conflicts", Count: n, Counted: true, Warn: n.N > 0})
	}
	for i := range list {
		list[i].Current = list[i].Path == "/ui/"+current
	}
	return list, nil
}

// conflictCount is how many conflicts the principal sees. Who sees all records has the
// number that the store keeps; of the others they are counted, up to a bound.
func conflictCount(v *access.View) (bounded, error) {
	if v.Whole() == nil {
		f, err := v.Figures()
		return bounded{N: f.Conflicts}, err
	}
	return countBounded(func(one func() error) error { return v.Conflicts(func(*record.Entry) error { return one() }) })
}

// agentsPage is what the page of agents and sources shows.
type agentsPage struct {
	Tabs     []tab
	Agents   shownTable
	Calendar *calendarPage
	Gaps     shownTable
	Results  shownTable
}

// gapView is what could not be had.
type gapView v1.Gap

// Source is the whole name, or the agent's where the gap is of all of it.
func (g gapView) Source() string {
	if g.SourceType == "" && g.SourceLabel == "" {
		return g.Agent
	}
	return g.Agent + "/" + g.SourceType + "/" + g.SourceLabel
}

// gapsShown is how many gaps the page shows, the newest first.
const gapsShown = 20

func (p *Pages) agentsContent(r *http.Request, v *access.View) (any, error) {
	if err := v.MayFigures(); err != nil {
		return nil, err
	}
	page := &agentsPage{}
	answer, err := p.V1.Agents(r.Context(), nil)
	if err != nil {
		return nil, err
	}
	page.Agents = p.showList(view.Agents(answer, p.siteZone().String()), math.MaxInt, "/v1/agents?format=csv")
	page.Results = p.showList(view.IngestResults(answer), math.MaxInt, "/v1/counters?format=csv")
	if page.Tabs, err = agentTabs(v, "agents"); err != nil {
		return nil, err
	}
	known, err := p.V1.Gaps(r.Context(), nil)
	if err != nil {
		return nil, err
	}
	page.Calendar, err = p.makeCalendar(r, mapViews(known.Gaps, func(g v1.Gap) gapView { return gapView(g) }))
	slices.SortStableFunc(known.Gaps, func(a, b v1.Gap) int { return b.Noticed.Compare(a.Noticed.Time) })
	page.Gaps = p.showList(view.Gaps(known), gapsShown, "/v1/gaps?format=csv")
	return page, err
}
