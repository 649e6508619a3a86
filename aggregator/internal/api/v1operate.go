package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

type jsonAgent struct {
	Name        string       `json:"name"`
	Address     string       `json:"address"`
	Configured  bool         `json:"configured"`
	Import      bool         `json:"import"`
	Connected   bool         `json:"connected"`
	Error       string       `json:"error"`
	Remedy      string       `json:"remedy"`
	LastContact *string      `json:"last_contact"`
	LastFrames  *string      `json:"last_frames"`
	Behind      uint64       `json:"behind"`
	Cursor      uint64       `json:"cursor"`
	Epoch       string       `json:"epoch"`
	Gaps        int          `json:"gaps"`
	Sources     []jsonSource `json:"sources"`
}

type jsonSource struct {
	Type       string     `json:"type"`
	Label      string     `json:"label"`
	CompleteTo *string    `json:"complete_to"`
	Gaps       int        `json:"gaps"`
	Error      string     `json:"error"`
	Silent     bool       `json:"silent"`
	Counts     jsonCounts `json:"counts"`
}

type jsonCounts struct {
	Pulled      int64 `json:"pulled"`
	Added       int64 `json:"added"`
	Merged      int64 `json:"merged"`
	Unchanged   int64 `json:"unchanged"`
	Stale       int64 `json:"stale"`
	Withdrawn   int64 `json:"withdrawn"`
	Deleted     int64 `json:"deleted"`
	Conflicting int64 `json:"conflicting"`
	Quarantined int64 `json:"quarantined"`
	Conserved   bool  `json:"conserved"`
}

func countsJSON(c store.Counts) jsonCounts {
	return jsonCounts{
		Pulled: c.Pulled, Added: c.Added, Merged: c.Merged, Unchanged: c.Unchanged, Stale: c.Stale, Withdrawn: c.Withdrawn,
		Deleted: c.Deleted, Conflicting: c.Conflicting, Quarantined: c.Quarantined, Conserved: c.Conserved(),
	}
}

// v1Agents is GET /v1/agents: the agents of the configuration, and those that
// were pulled from before.
func (s *Server) v1Agents(w http.ResponseWriter, r *http.Request, view *access.View) error {
	agents, err := s.agents(r.Context(), view)
	if err == nil {
		answer(w, http.StatusOK, map[string]any{"agents": agents})
	}
	return err
}

func (s *Server) agents(ctx context.Context, view *access.View) ([]*jsonAgent, error) {
	pulls, deaf := s.pulls(ctx)
	if deaf != nil && StaleOf(ctx) == nil {
		return nil, refuse(http.StatusServiceUnavailable, "%v", deaf)
	}
	cursors, err := view.Agents()
	if err != nil {
		return nil, err
	}
	counters, err := view.Counters()
	if err != nil {
		return nil, err
	}
	gaps, err := view.Gaps()
	if err != nil {
		return nil, err
	}
	list, byName := []*jsonAgent{}, map[string]*jsonAgent{}
	find := func(name string) *jsonAgent {
		if byName[name] == nil {
			byName[name] = &jsonAgent{Name: name, Sources: []jsonSource{}}
			list = append(list, byName[name])
		}
		return byName[name]
	}
	for _, st := range pulls {
		a := find(st.Name)
		a.Address, a.Configured, a.Connected, a.Error = st.Address, true, st.Connected, st.Error
		a.LastContact, a.Behind, a.Remedy = stampStd(st.LastContact), st.Behind, st.Remedy
	}
	for i := range cursors {
		find(cursors[i].Agent).take(&cursors[i], counters)
	}
	for i := range gaps {
		find(gaps[i].Source.Agent).lacks(gaps[i].Source)
	}
	s.moods(byName, pulls)
	for _, a := range list {
		if deaf != nil {
			a.Error = deaf.Error()
		}
	}
	return list, nil
}

func (s *Server) pulls(ctx context.Context) ([]AgentStatus, error) {
	if s.opt.Agents == nil {
		return nil, nil
	}
	return s.opt.Agents.Agents(ctx)
}

// take adds what the store knows of the agent.
func (a *jsonAgent) take(c *store.Cursor, counters []store.SourceCounts) {
	a.Import = isImport(c.Epoch)
	a.Cursor, a.Epoch, a.LastFrames = c.Seq, fmt.Sprintf("%x", c.Epoch), stamp(c.Pulled)
	complete := map[record.Origin]*string{}
	for _, m := range c.Watermarks {
		complete[m.Source] = stamp(m.CompleteTo)
	}
	for _, n := range counters {
		if n.Source.Agent == c.Agent {
			a.Sources = append(a.Sources, jsonSource{n.Source.Type, n.Source.Label, complete[n.Source], 0, "", false, countsJSON(n.Counts)})
		}
	}
}

// v1Counters is GET /v1/counters: what became of all writes, by source.
func (s *Server) v1Counters(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	counters, err := view.Counters()
	if err != nil {
		return err
	}
	type row struct {
		Source string `json:"source"`
		jsonCounts
	}
	rows := []row{}
	for _, c := range counters {
		rows = append(rows, row{c.Source.String(), countsJSON(c.Counts)})
	}
	answer(w, http.StatusOK, map[string]any{"counters": rows})
	return nil
}

// v1Conflicts is GET /v1/conflicts.
func (s *Server) v1Conflicts(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	return entries(w, "conflicts", view.Conflicts)
}

// v1Waiting is GET /v1/waiting: stops that have no record yet.
func (s *Server) v1Waiting(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	return entries(w, "waiting", view.WaitingStops)
}

// v1Dismiss is DELETE /v1/waiting/{id}: the stop is forgotten.
func (s *Server) v1Dismiss(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	id := r.PathValue("id")
	entry, err := known(view, id)
	if err != nil {
		return err
	}
	if h := entry.Holding(record.Pushed); h == nil || !h.Waiting() {
		return refuse(http.StatusNotFound, "no stop waits for a record %s", id)
	}
	if err := s.commit(r.Context(), &store.DismissStopsCommand{IDs: []string{id}, Until: math.MaxInt64}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// entries answers a list of entries, at most a page.
func entries(w http.ResponseWriter, name string, each func(func(*record.Entry) error) error) error {
	list, more := []jsonEntry{}, false
	err := each(func(e *record.Entry) error {
		if more = len(list) == defaultPage; more {
			return errEnough
		}
		list = append(list, entryJSON(e))
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	answer(w, http.StatusOK, map[string]any{name: list, "more": more})
	return nil
}

// moods says which sources fail and which are silent.
func (s *Server) moods(byName map[string]*jsonAgent, pulls []AgentStatus) {
	find := func(agent, typ, label string) *jsonSource {
		if byName[agent] == nil {
			return nil
		}
		for i := range byName[agent].Sources {
			if of := &byName[agent].Sources[i]; of.Type == typ && of.Label == label {
				return of
			}
		}
		return nil
	}
	if s.opt.Pulse != nil {
		for _, silent := range s.opt.Pulse.Silent(s.now()) {
			if of := find(silent.Source.Agent, silent.Source.Type, silent.Source.Label); of != nil {
				of.Silent = true
			}
		}
	}
	for i := range pulls {
		for _, name := range slices.Sorted(maps.Keys(pulls[i].Failing)) {
			why := pulls[i].Failing[name]
			typ, label, _ := strings.Cut(name, "/")
			of := find(pulls[i].Name, typ, label)
			if a := byName[pulls[i].Name]; of == nil && a != nil { // nothing has come from it yet
				a.Sources = append(a.Sources, jsonSource{Type: typ, Label: label, Counts: countsJSON(store.Counts{})})
				of = &a.Sources[len(a.Sources)-1]
			}
			if of != nil {
				of.Error = why
			}
		}
	}
}
