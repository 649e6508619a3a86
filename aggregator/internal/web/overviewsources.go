package web

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// sourcesPart says how the sources of records are doing.
type sourcesPart struct {
	Tiles   []tile
	Table   *shownTable // nil: unknown, or the reader may not see it
	Problem string
}

// sourcesPart asks for it. Who sees some of the records gets the conflicts of these.
// What failed has no tile: a zero would say that all is well.
func (p *Pages) sourcesPart(ctx context.Context, v *access.View, t *top) sourcesPart {
	var s sourcesPart
	var odd []tile
	conflicts, conflictsErr := conflictCount(v)
	if conflictsErr == nil {
		odd = []tile{countTile("/ui/conflicts", "conflicts", conflicts)}
	}
	if !v.Principal().Rows.All() {
		s.Tiles, s.Problem = odd, p.lackText(ctx, conflictsErr)
		return s
	}
	agents, agentsErr := p.V1.Agents(ctx, nil)
	if agentsErr == nil {
		table := p.showList(view.Sources(agents, t.answer), math.MaxInt, "")
		s.Tiles, s.Table = p.healthTiles(agents.Agents, p.currentTime()), &table
	}
	quarantine, quarantineErr := v.QuarantineCount()
	if quarantineErr == nil {
		s.Tiles = append(s.Tiles, countTile("/ui/quarantine", "in quarantine", bounded{N: int(quarantine)}))
	}
	s.Tiles = append(s.Tiles, odd...)
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
func (p *Pages) healthTiles(agents []v1.Agent, now time.Time) []tile {
	reached, pulled, known := 0, 0, false
	var least time.Time
	for _, a := range agents {
		if !a.Configured {
			continue
		}
		pulled++
		if a.Connected != nil && *a.Connected {
			reached++
		}
		for _, s := range a.Sources {
			if !known || s.CompleteTo.Before(least) {
				least, known = s.CompleteTo.Time, true
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
