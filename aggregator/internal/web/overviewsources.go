package web

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// sourcesPart says how the sources of records are doing.
type sourcesPart struct {
	Tiles   []tile
	Lines   []sourceHealth
	None    bool   // there is no agent
	When    string // the window of which runs may be missing
	Problem string
}

// sourceHealth is a source in a table.
type sourceHealth struct {
	Agent, Source string
	State, Tone   string
	Error         string
	Contact       time.Time
	Behind        uint64
	CompleteTo    time.Time
	Missing       int64 // runs of the window that the scheduler has and no one else
}

// sourcesPart asks for it. Who sees some of the records gets the conflicts of these.
// What failed has no tile: a zero would say that all is well.
func (p *Pages) sourcesPart(ctx context.Context, v *access.View, t *top) sourcesPart {
	s := sourcesPart{When: t.When}
	var odd []tile
	conflicts, conflictsErr := conflictCount(v)
	if conflictsErr == nil {
		odd = []tile{countTile("/ui/conflicts", "conflicts", conflicts)}
	}
	if !v.Principal().Rows.All() {
		s.Tiles, s.Problem = odd, p.lackText(ctx, conflictsErr)
		return s
	}
	agents, agentsErr := p.agentLines(ctx, v)
	if agentsErr == nil {
		s.Tiles, s.None = p.healthTiles(agents, p.currentTime()), len(agents) == 0
	}
	quarantine, quarantineErr := v.QuarantineCount()
	if quarantineErr == nil {
		s.Tiles = append(s.Tiles, countTile("/ui/quarantine", "in quarantine", bounded{N: int(quarantine)}))
	}
	s.Tiles = append(s.Tiles, odd...)
	for i := range agents {
		s.Lines = append(s.Lines, healthOf(&agents[i], t.answer)...)
	}
	s.Problem = p.lackText(ctx, errors.Join(conflictsErr, agentsErr, quarantineErr))
	return s
}

// countTile warns of what should be none.
func countTile(href, label string, n bounded) tile {
	t := tile{Href: href, Label: label, Value: view.Count(n.N)}
	if n.More {
		t.Value += "+"
	}
	if n.N > 0 {
		t.Tone = "warn"
	}
	return t
}

// healthTiles count the agents that answer, and say up to when all is known. Imports,
// and agents that no node pulls from any more, count in neither.
func (p *Pages) healthTiles(agents []agentLine, now time.Time) []tile {
	reached, pulled, known := 0, 0, false
	var least time.Time
	for _, a := range agents {
		if !a.Configured {
			continue
		}
		pulled++
		if a.Connected {
			reached++
		}
		for _, s := range a.Sources {
			if !known || s.CompleteTo.Before(least) {
				least, known = s.CompleteTo, true
			}
		}
	}
	answer := tile{Href: "/ui/agents", Label: "agents answer", Value: strconv.Itoa(reached), Small: "of " + strconv.Itoa(pulled)}
	if reached < pulled {
		answer.Tone = "warn"
	}
	complete := tile{Href: "/ui/agents", Label: "complete to", Value: "–"}
	if !least.IsZero() {
		complete.Value, complete.Exact = formatAge(now.Sub(least), least), p.formatTime(least)+" "+p.siteZone().String()
	}
	return []tile{answer, complete}
}

// healthOf are the sources of an agent; one line where it has none yet.
func healthOf(a *agentLine, known *v1.Usage) []sourceHealth {
	line := sourceHealth{Agent: a.Name, State: a.State(), Tone: a.Tone(), Error: a.Error, Contact: a.Contact, Behind: a.Behind}
	if len(a.Sources) == 0 {
		return []sourceHealth{line}
	}
	var out []sourceHealth
	for _, s := range a.Sources {
		l := line
		l.Source, l.CompleteTo = s.Name, s.CompleteTo
		line.Error = "" // once
		if known != nil {
			l.addCompleteness(known, a.Name+"/"+s.Name)
		}
		out = append(out, l)
	}
	return out
}

// addCompleteness puts in what an answer says of the source.
func (s *sourceHealth) addCompleteness(known *v1.Usage, name string) {
	for _, c := range known.Complete.Sources {
		if c.Source == name && c.Silent && s.Tone == "good" {
			s.State, s.Tone = "silent", "warn"
		}
	}
	for _, m := range known.Complete.Missing {
		if m.Source == name {
			s.Missing += m.Runs
		}
	}
}
