package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// overviewPage is what the first page shows. A part that fails says so in its own
// place, and the others stay.
type overviewPage struct {
	Outage  *clusterPage // in place of all others, while no figures can be read
	Clock   string       // of its times
	Verdict *verdict     // nil: no one judges
	Whole   bool         // the reader sees all records, and what is about all
	Tiles   []tile
	Top     top
	Sources sourcesPart
	Newest  []line
	own     report.Keys
	Lacks   string // why there is no Newest
}

// NewestTable are the newest records.
func (p *overviewPage) NewestTable() recordTable { return tableOf(p.Newest, p.Clock, p.own) }

// tile is a number with what it is.
type tile struct {
	Href, Value, Exact string
	Small              string // beside the value
	Label              string
	More               []string // lines below it
	Tone               string   // "" or warn
}

// bounded is a number that is counted up to a bound.
type bounded struct {
	N    int
	More bool
}

// countUp bounds what a page counts by going through it.
const countUp = 10_000

var errEnough = errors.New("enough")

// countBounded counts how often each calls its argument.
func countBounded(each func(one func() error) error) (b bounded, err error) {
	err = each(func() error {
		if b.N == countUp {
			b.More = true
			return errEnough
		}
		b.N++
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return b, err
}

// newest is how many records the overview shows.
const newest = 5

func (p *Pages) overviewContent(r *http.Request, v *access.View) (any, error) {
	ctx := r.Context()
	page := &overviewPage{own: p.ownKeys(), Clock: p.siteZone().String(), Whole: v.Principal().Rows.All()}
	if page.Whole {
		page.Verdict = p.currentVerdict(ctx)
	}
	running, err := p.runningTile(ctx, v)
	if err != nil {
		return nil, err // who may not even see this sees nothing here
	}
	page.Top = p.makeTop(ctx, r.URL.Query())
	page.Tiles = append(page.Tiles, p.utilizationTile(ctx))
	page.Tiles = append(page.Tiles, p.hoursTiles(ctx)...)
	page.Tiles = append(page.Tiles, running, p.recordsTile(ctx, v, &page.Top))
	if page.Whole {
		page.Tiles = append(page.Tiles, p.alertsTile(ctx)...)
	}
	page.Sources = p.sourcesPart(ctx, v, &page.Top)
	page.Lacks = p.lackText(ctx, v.Query(ctx, store.Query{Order: store.BySeq, Desc: true, Limit: newest}, func(row *columns.Row) error {
		page.Newest = append(page.Newest, lineOf(row, page.own))
		return nil
	}))
	return page, nil
}

// agentLine is an agent in a table.
type agentLine struct {
	Name       string
	Configured bool // this node pulls from it
	Connected  bool
	Error      string
	Contact    time.Time
	Behind     uint64
	Sources    []sourceLine
}

// sourceLine is a source of an agent.
type sourceLine struct {
	Name       string
	CompleteTo time.Time
}

// State is how the agent is doing, in one word.
func (a agentLine) State() string {
	switch {
	case !a.Configured:
		return "not configured"
	case a.Connected && a.Behind > 0:
		return "catching up"
	case a.Connected:
		return "up to date"
	case a.Error != "":
		return "unreachable"
	}
	return "connecting"
}

// Tone is the colour of the state.
func (a agentLine) Tone() string {
	switch {
	case a.Configured && a.Connected:
		return "good"
	case a.Error != "":
		return "bad"
	}
	return "dim"
}

// agentLines joins what the pulls say with what the store holds, by name.
func (p *Pages) agentLines(ctx context.Context, v *access.View) ([]agentLine, error) {
	all := map[string]*agentLine{}
	pulls, err := p.Pulls(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range pulls {
		all[s.Name] = fromStatus(s)
	}
	cursors, err := v.Agents()
	if err != nil {
		return nil, err
	}
	counters, err := v.Counters()
	if err != nil {
		return nil, err
	}
	for _, c := range cursors {
		a := all[c.Agent]
		if a == nil {
			a = &agentLine{Name: c.Agent, Contact: stdTime(c.Pulled)}
			all[c.Agent] = a
		}
		a.Sources = sourceLines(c, counters)
	}
	lines := make([]agentLine, 0, len(all))
	for _, a := range all {
		lines = append(lines, *a)
	}
	slices.SortFunc(lines, func(a, b agentLine) int { return cmp.Compare(a.Name, b.Name) })
	return lines, nil
}

func fromStatus(s ingest.Status) *agentLine {
	a := &agentLine{Name: s.Name, Configured: true, Connected: s.Connected, Contact: s.LastContact, Behind: s.Behind}
	if s.Err != nil {
		a.Error = s.Err.Error()
		if s.Remedy != "" {
			a.Error += "; do first: " + s.Remedy
		}
	}
	return a
}

// sourceLines are those of an agent, with the time up to which each is complete.
func sourceLines(c store.Cursor, counters []store.SourceCounts) []sourceLine {
	var out []sourceLine
	for _, n := range counters {
		if n.Source.Agent != c.Agent {
			continue
		}
		s := sourceLine{Name: n.Source.Type + "/" + n.Source.Label}
		if n.Source.Type == "" {
			s.Name = "pushed to the agent"
		}
		for _, w := range c.Watermarks {
			if w.Source == n.Source {
				s.CompleteTo = stdTime(w.CompleteTo)
			}
		}
		out = append(out, s)
	}
	return out
}
