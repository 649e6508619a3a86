package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/completeness"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Silence knows how long sources usually say nothing.
type Silence interface {
	// Allowed is the pause after which the source is silent.
	Allowed(source record.Origin) record.Time
	// Silent are the sources that are silent at an instant.
	Silent(now record.Time) []health.Silence
}

// allowedSilence is how long nothing must have come of a source for it to be silent.
func (s *Server) allowedSilence(source record.Origin) record.Time {
	if s.opt.Silences == nil {
		return health.DefaultSilence
	}
	return s.opt.Silences.Allowed(source)
}

// complete says how complete the records of a window are.
type complete struct{ v1.Complete }

// completeness looks up how complete a window is.
func (s *Server) completeness(view *access.View, w calendar.Window, now record.Time) (*complete, error) {
	c := &complete{v1.Complete{Sources: []v1.CompleteSource{}, Gaps: []v1.CompleteGap{}, Missing: s.missingStretches(w), Unknown: []v1.CompleteUnknown{}, Findings: []v1.CompleteFinding{}}}
	agents, err := view.Agents()
	if errors.Is(err, access.ErrRows) || errors.Is(err, access.ErrDenied) {
		c.Limited, c.Missing = true, []v1.CompleteMissing{}
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	c.addSources(agents, min(w.To, now), s.allowedSilence)
	if c.Unknown, err = s.unknownSources(view, agents, w, now); err != nil {
		return nil, err
	}
	gaps, err := view.Gaps()
	if err != nil {
		return nil, err
	}
	for _, g := range gaps {
		if g.From < w.To && (!g.To.Present() || g.To > w.From) {
			c.Gaps = append(c.Gaps, v1.CompleteGap{Source: g.Source.String(), From: v1.Stamp(g.From), To: v1.Stamp(g.To), Reason: g.Reason})
		}
	}
	c.Findings = s.findingsIn(w)
	n, err := view.QuarantineCount()
	c.Quarantined = &n
	return c, err
}

// findingsIn are the findings about records that touch the window.
func (s *Server) findingsIn(w calendar.Window) []v1.CompleteFinding {
	out := []v1.CompleteFinding{}
	if s.opt.Found == nil {
		return out
	}
	for _, f := range s.opt.Found() {
		if f.First.Before(w.To.Std()) && !f.Last.Before(w.From.Std()) {
			out = append(out, v1.CompleteFinding{
				Kind: f.Kind, Source: f.Source, About: f.About, What: f.What, Do: f.Do, Count: f.Count,
				First: v1.Time{Time: f.First}, Last: v1.Time{Time: f.Last}, Example: f.Example,
			})
		}
	}
	return out
}

// missingStretches are the days of the window that lack runs, as they were compared last.
func (s *Server) missingStretches(w calendar.Window) []v1.CompleteMissing {
	out := []v1.CompleteMissing{}
	if s.opt.Days == nil {
		return out
	}
	days, _ := s.opt.Days(completeness.Window{From: completeness.Begin(w.From), To: w.To})
	for _, t := range completeness.Stretches(days) {
		out = append(out, v1.CompleteMissing{Source: t.Source.String(), From: v1.Stamp(t.From), To: v1.Stamp(t.To), Runs: t.Missing})
	}
	return out
}

// addSources adds those of agents; end is up to when something is to be known.
func (c *complete) addSources(agents []store.Cursor, end record.Time, allowed func(record.Origin) record.Time) {
	least := record.None
	for i := range agents {
		a := &agents[i]
		ends := map[record.Origin]record.Time{}
		order := []record.Origin{}
		for _, p := range a.Checkpoints {
			ends[p.Source] = record.None
			order = append(order, p.Source)
		}
		for _, m := range a.Watermarks {
			if _, ok := ends[m.Source]; !ok {
				order = append(order, m.Source)
			}
			ends[m.Source] = m.CompleteTo
			if least == record.None || m.CompleteTo < least {
				least = m.CompleteTo
			}
		}
		for _, o := range order {
			s := v1.CompleteSource{Source: o.String(), CompleteTo: v1.Stamp(ends[o]), LastFrames: v1.Stamp(a.Pulled)}
			since := end - allowed(o)
			s.Silent = ends[o] < since && (ends[o].Present() || a.Pulled < since)
			if s.Silent {
				c.Silent++
			}
			c.Sources = append(c.Sources, s)
		}
	}
	c.CompleteTo = v1.Stamp(least)
}

// encodeJSON writes what the answer says of it.
func (c *complete) encodeJSON(page *usage.Table) []byte {
	c.Open = page.Open
	text, err := json.Marshal(c)
	if err != nil {
		return []byte("null")
	}
	return text
}

// setHeaders says in short what there is no room for in a table.
func (c *complete) setHeaders(h http.Header, page *usage.Table) {
	h.Set("X-Bursar-Index", strconv.FormatUint(page.Index, 10))
	from, to := page.Known()
	h.Set("X-Bursar-Known", "none")
	if from < to {
		h.Set("X-Bursar-Known", from.String()+".."+to.String())
	}
	h.Set("X-Bursar-Open", strconv.FormatUint(page.Open, 10))
	h.Set("X-Bursar-Several", strconv.FormatUint(page.Several, 10))
	if c.Limited {
		return
	}
	h.Set("X-Bursar-Complete-To", "unknown")
	if !c.CompleteTo.IsZero() {
		h.Set("X-Bursar-Complete-To", c.CompleteTo.String())
	}
	h.Set("X-Bursar-Silent-Sources", strconv.Itoa(c.Silent))
	h.Set("X-Bursar-Unknown-Sources", strconv.Itoa(len(c.Unknown)))
	h.Set("X-Bursar-Gaps", strconv.Itoa(len(c.Gaps)))
	runs := int64(0)
	for i := range c.Missing {
		runs += c.Missing[i].Runs
	}
	h.Set("X-Bursar-Missing-Runs", strconv.FormatInt(runs, 10))
	h.Set("X-Bursar-Quarantined", strconv.FormatUint(*c.Quarantined, 10))
}
