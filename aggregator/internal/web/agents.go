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
	Agents   []agentView
	Sources  bool // there is one
	Calendar *calendarPage
	Gaps     shownTable
}

// agentView is an agent as the pages show it.
type agentView struct {
	v1.Agent

	Sources []sourceView
}

func viewAgent(a v1.Agent) agentView {
	return agentView{a, mapViews(a.Sources, func(s v1.AgentSource) sourceView { return sourceView(s) })}
}

type sourceView v1.AgentSource

// gapView is what could not be had.
type gapView v1.Gap

// State is how the agent is doing, in one word.
func (a agentView) State() string {
	switch {
	case a.Import:
		return "import"
	case a.Connected == nil && a.Error != "":
		return "unknown" // no leader says
	}
	return a.statusLine().State()
}

// Tone is the colour of the state.
func (a agentView) Tone() string {
	if a.Import {
		return "dim"
	}
	return a.statusLine().Tone()
}

func (a agentView) statusLine() agentLine {
	l := agentLine{Configured: a.Configured, Error: a.Error}
	if a.Connected != nil {
		l.Connected = *a.Connected
	}
	if a.Behind != nil {
		l.Behind = *a.Behind
	}
	return l
}

// Contact is when something came from it last.
func (a agentView) Contact() v1.Time {
	if a.LastContact.IsZero() {
		return a.LastFrames
	}
	return a.LastContact
}

// Name is type/label.
func (s sourceView) Name() string {
	if s.Type == "" {
		return "pushed to the agent"
	}
	return s.Type + "/" + s.Label
}

// Health is how the source is doing, in one word.
func (s sourceView) Health() string {
	switch {
	case s.Error != "":
		return "does not collect"
	case s.Silent:
		return "silent"
	case s.State == "configuring" || s.State == "paused":
		return s.State
	}
	return "collects"
}

// Tone is the colour of the state.
func (s sourceView) Tone() string {
	switch {
	case s.Error != "":
		return "bad"
	case s.Silent || s.State == "configuring" || s.State == "paused":
		return "warn"
	}
	return "good"
}

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
	page.Agents = mapViews(answer.Agents, viewAgent)
	for i := range page.Agents {
		page.Sources = page.Sources || len(page.Agents[i].Sources) > 0
	}
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
