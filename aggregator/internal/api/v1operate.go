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
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func countsJSON(c store.Counts) v1.Counts {
	return v1.Counts{
		Pulled: c.Pulled, Added: c.Added, Merged: c.Merged, Unchanged: c.Unchanged, Stale: c.Stale, Withdrawn: c.Withdrawn,
		Deleted: c.Deleted, Conflicting: c.Conflicting, Quarantined: c.Quarantined, Conserved: c.Conserved(),
	}
}

// v1Agents is GET /v1/agents: the agents of the configuration, and those that
// were pulled from before.
func (s *Server) v1Agents(w http.ResponseWriter, r *http.Request, view *access.View) error {
	agents, err := s.listAgents(r.Context(), view)
	if err == nil {
		answerJSON(w, http.StatusOK, v1.Agents{Agents: agents})
	}
	return err
}

func (s *Server) listAgents(ctx context.Context, view *access.View) ([]v1.Agent, error) {
	pulls, deaf := s.pullStatus(ctx)
	if deaf != nil && StaleOf(ctx) == nil {
		return nil, newRefusal(http.StatusServiceUnavailable, "%v", deaf)
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
	joined, err := enrol.Agents(view)
	if err != nil {
		return nil, err
	}
	names, byName := []string{}, map[string]*v1.Agent{}
	find := func(name string) *v1.Agent {
		if byName[name] == nil {
			byName[name] = &v1.Agent{Name: name, Sources: []v1.AgentSource{}}
			names = append(names, name)
		}
		return byName[name]
	}
	for _, st := range pulls {
		a := find(st.Name)
		a.Address, a.DialsIn, a.Configured, a.Connected, a.Error = st.Address, st.Address == "", true, &st.Connected, st.Error
		a.LastContact, a.Behind, a.Remedy = v1.Time{Time: st.LastContact}, &st.Behind, st.Remedy
	}
	for _, m := range joined {
		a := find(m.Name)
		a.Joined = true
		if !a.Configured {
			a.Address, a.DialsIn = m.Address, m.Address == ""
		}
	}
	for i := range cursors {
		addCursor(find(cursors[i].Agent), &cursors[i], counters)
	}
	for i := range gaps {
		countGap(find(gaps[i].Source.Agent), gaps[i].Source)
	}
	s.addSourceStates(byName, pulls)
	if err := quarantinedBySource(view, byName); err != nil {
		return nil, err
	}
	list := make([]v1.Agent, len(names))
	for i, name := range names {
		list[i] = *byName[name]
		if deaf != nil {
			list[i].Error = deaf.Error()
		}
	}
	return list, nil
}

// quarantinedBySource adds how many jobs of each source are quarantined.
func quarantinedBySource(view *access.View, agents map[string]*v1.Agent) (err error) {
	for _, a := range agents {
		for i := range a.Sources {
			s := &a.Sources[i]
			if s.Quarantined, err = view.QuarantinedOf(record.Origin{Agent: a.Name, Type: s.Type, Label: s.Label}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) pullStatus(ctx context.Context) ([]AgentStatus, error) {
	if s.opt.Agents == nil {
		return nil, nil
	}
	return s.opt.Agents.Agents(ctx)
}

// addCursor adds what the store knows of the agent.
func addCursor(a *v1.Agent, c *store.Cursor, counters []store.SourceCounts) {
	a.Import = store.IsImport(c.Epoch)
	a.Cursor, a.Epoch, a.LastFrames = c.Seq, fmt.Sprintf("%x", c.Epoch), v1.Stamp(c.Pulled)
	complete := map[record.Origin]v1.Time{}
	for _, m := range c.Watermarks {
		complete[m.Source] = v1.Stamp(m.CompleteTo)
	}
	for _, n := range counters {
		if n.Source.Agent == c.Agent {
			a.Sources = append(a.Sources, v1.AgentSource{Type: n.Source.Type, Label: n.Source.Label, CompleteTo: complete[n.Source], Counts: countsJSON(n.Counts)})
		}
	}
}

// v1Counters is GET /v1/counters: what became of all writes, by source.
func (s *Server) v1Counters(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	counters, err := view.Counters()
	if err != nil {
		return err
	}
	rows := []v1.SourceCounts{}
	for _, c := range counters {
		rows = append(rows, v1.SourceCounts{Source: c.Source.String(), Counts: countsJSON(c.Counts)})
	}
	answerJSON(w, http.StatusOK, v1.Counters{Counters: rows})
	return nil
}

// v1Conflicts is GET /v1/conflicts.
func (s *Server) v1Conflicts(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	list, more, err := listEntries(view.Conflicts)
	if err == nil {
		answerJSON(w, http.StatusOK, v1.Conflicts{Conflicts: list, More: more})
	}
	return err
}

// v1Waiting is GET /v1/waiting: stops that have no record yet.
func (s *Server) v1Waiting(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	list, more, err := listEntries(view.WaitingStops)
	if err == nil {
		answerJSON(w, http.StatusOK, v1.Waiting{Waiting: list, More: more})
	}
	return err
}

// v1Dismiss is DELETE /v1/waiting/{id}: the stop is forgotten.
func (s *Server) v1Dismiss(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	id := r.PathValue("id")
	entry, err := findEntry(view, id)
	if err != nil {
		return err
	}
	if h := entry.Holding(record.Pushed); h == nil || !h.Waiting() {
		return newRefusal(http.StatusNotFound, "no stop waits for a record %s", id)
	}
	if err := s.commitCommand(r.Context(), &store.DismissStopsCommand{IDs: []string{id}, Until: math.MaxInt64}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// listEntries lists entries, at most a page.
func listEntries(each func(func(*record.Entry) error) error) (list []v1.Entry, more bool, err error) {
	list = []v1.Entry{}
	err = each(func(e *record.Entry) error {
		if more = len(list) == defaultPage; more {
			return errEnough
		}
		entry, err := entryJSON(e)
		list = append(list, entry)
		return err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return list, more, err
}

// addSourceStates says in which state sources are, which fail and which are silent. A source of
// which the agent speaks is listed also when nothing has come from it yet.
func (s *Server) addSourceStates(byName map[string]*v1.Agent, pulls []AgentStatus) {
	if s.opt.Silences != nil {
		for _, silent := range s.opt.Silences.Silent(s.currentTime()) {
			if a := byName[silent.Source.Agent]; a != nil {
				if of := findSource(a, silent.Source.Type, silent.Source.Label); of != nil {
					of.Silent = true
				}
			}
		}
	}
	for i := range pulls {
		p, a := &pulls[i], byName[pulls[i].Name]
		if a == nil {
			continue
		}
		names := map[string]string{}
		maps.Copy(names, p.Failing) // of a leader that says no states
		maps.Copy(names, p.States)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			typ, label, _ := strings.Cut(name, "/")
			of := findSource(a, typ, label)
			if of == nil {
				a.Sources = append(a.Sources, v1.AgentSource{Type: typ, Label: label, Counts: countsJSON(store.Counts{})})
				of = &a.Sources[len(a.Sources)-1]
			}
			of.State, of.Error = p.States[name], p.Failing[name]
		}
	}
}

// findSource returns the source of an agent; nil when it is not listed.
func findSource(a *v1.Agent, typ, label string) *v1.AgentSource {
	i := slices.IndexFunc(a.Sources, func(s v1.AgentSource) bool { return s.Type == typ && s.Label == label })
	if i < 0 {
		return nil
	}
	return &a.Sources[i]
}
