package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

type jsonAgent struct {
	Name        string       `json:"name"`
	Address     string       `json:"address"`
	Configured  bool         `json:"configured"`
	Connected   bool         `json:"connected"`
	Error       string       `json:"error"`
	LastContact *string      `json:"last_contact"`
	LastFrames  *string      `json:"last_frames"`
	Behind      uint64       `json:"behind"`
	Cursor      uint64       `json:"cursor"`
	Epoch       string       `json:"epoch"`
	Sources     []jsonSource `json:"sources"`
}

type jsonSource struct {
	Type       string     `json:"type"`
	Label      string     `json:"label"`
	CompleteTo *string    `json:"complete_to"`
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
func (s *Server) v1Agents(w http.ResponseWriter, _ *http.Request, view *store.View) error {
	agents, err := s.agents(view)
	if err == nil {
		answer(w, http.StatusOK, map[string]any{"agents": agents})
	}
	return err
}

func (s *Server) agents(view *store.View) ([]*jsonAgent, error) {
	cursors, err := view.Agents()
	if err != nil {
		return nil, err
	}
	counters, err := view.Counters()
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
	for _, st := range s.status() {
		a := find(st.Name)
		a.Address, a.Configured, a.Connected, a.Error = st.Address, true, st.Connected, st.Error
		a.LastContact, a.Behind = stampStd(st.LastContact), st.Behind
	}
	for i := range cursors {
		find(cursors[i].Agent).take(&cursors[i], counters)
	}
	return list, nil
}

func (s *Server) status() []AgentStatus {
	if s.opt.Agents == nil {
		return nil
	}
	return s.opt.Agents.Agents()
}

// take adds what the store knows of the agent.
func (a *jsonAgent) take(c *store.Cursor, counters []store.SourceCounts) {
	a.Cursor, a.Epoch, a.LastFrames = c.Seq, fmt.Sprintf("%x", c.Epoch), stamp(c.Pulled)
	complete := map[record.Origin]*string{}
	for _, m := range c.Watermarks {
		complete[m.Source] = stamp(m.CompleteTo)
	}
	for _, n := range counters {
		if n.Source.Agent == c.Agent {
			a.Sources = append(a.Sources, jsonSource{n.Source.Type, n.Source.Label, complete[n.Source], countsJSON(n.Counts)})
		}
	}
}

// v1Counters is GET /v1/counters: what became of all writes, by source.
func (s *Server) v1Counters(w http.ResponseWriter, _ *http.Request, view *store.View) error {
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

type jsonQuarantined struct {
	Agent      string  `json:"agent"`
	SourceType string  `json:"source_type"`
	Label      string  `json:"source_label"`
	ID         string  `json:"id"`
	Reason     string  `json:"reason"`
	Message    string  `json:"message"`
	RecordID   string  `json:"record_id"`
	First      *string `json:"first"`
	Last       *string `json:"last"`
	Count      int64   `json:"count"`
	Truncated  bool    `json:"truncated"`
	Raw        *string `json:"raw,omitempty"`
}

func quarantinedJSON(q *store.Quarantined) jsonQuarantined {
	return jsonQuarantined{
		Agent: q.Source.Agent, SourceType: q.Source.Type, Label: q.Source.Label, ID: q.ID, Reason: q.Reason, Message: q.Message,
		RecordID: q.RecordID, First: stamp(q.First), Last: stamp(q.Last), Count: q.Count, Truncated: q.Truncated,
	}
}

// errEnough ends a scan early.
var errEnough = errors.New("enough")

// v1Quarantine is GET /v1/quarantine, without the raw input.
func (s *Server) v1Quarantine(w http.ResponseWriter, _ *http.Request, view *store.View) error {
	list, more := []jsonQuarantined{}, false
	err := view.Quarantine(func(q *store.Quarantined) error {
		if more = len(list) == maxPage; more {
			return errEnough
		}
		list = append(list, quarantinedJSON(q))
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	answer(w, http.StatusOK, map[string]any{"quarantine": list, "more": more})
	return nil
}

// quarantineKey reads the source and the id of a path. "-" stands for an empty
// type or label, as what is pushed to an agent has.
func quarantineKey(r *http.Request) store.Settled {
	part := func(name string) string {
		if v := r.PathValue(name); v != "-" {
			return v
		}
		return ""
	}
	return store.Settled{Source: record.Origin{Agent: part("agent"), Type: part("type"), Label: part("label")}, ID: r.PathValue("id")}
}

func (s *Server) quarantined(view *store.View, key store.Settled) (store.Quarantined, error) {
	q, found, err := view.Quarantined(key.Source, key.ID)
	if err == nil && !found {
		err = refuse(http.StatusNotFound, "there is no quarantined job "+key.ID+" of "+key.Source.String())
	}
	return q, err
}

// v1Quarantined is GET /v1/quarantine/{agent}/{type}/{label}/{id}, with the raw
// input.
func (s *Server) v1Quarantined(w http.ResponseWriter, r *http.Request, view *store.View) error {
	q, err := s.quarantined(view, quarantineKey(r))
	if err != nil {
		return err
	}
	out := quarantinedJSON(&q)
	raw := string(q.Raw)
	if !utf8.ValidString(raw) {
		raw = strings.ToValidUTF8(raw, "\uFFFD")
	}
	out.Raw = &raw
	answer(w, http.StatusOK, out)
	return nil
}

// v1QuarantineDrop is DELETE of a quarantined job.
func (s *Server) v1QuarantineDrop(w http.ResponseWriter, r *http.Request, view *store.View) error {
	key := quarantineKey(r)
	if _, err := s.quarantined(view, key); err != nil {
		return err
	}
	if err := s.commit(r.Context(), &store.QuarantineDropCommand{Keys: []store.Settled{key}}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// commit writes a command of /v1, which may answer that it cannot now.
func (s *Server) commit(ctx context.Context, c store.Command) error {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Patience)
	defer cancel()
	if _, err := s.opt.Writer.Write(ctx, c); err != nil {
		return refuse(http.StatusServiceUnavailable, "it may or may not have been done, look again: "+err.Error())
	}
	return nil
}

// v1QuarantineRetry is POST …:retry: the agent maps the job again.
func (s *Server) v1QuarantineRetry(w http.ResponseWriter, r *http.Request, view *store.View) error {
	key := quarantineKey(r)
	id, ok := strings.CutSuffix(key.ID, ":retry")
	if !ok {
		return refuse(http.StatusNotFound, "the path of a retry ends with :retry")
	}
	key.ID = id
	q, err := s.quarantined(view, key)
	if err != nil {
		return err
	}
	if s.opt.Agents == nil {
		return refuse(http.StatusServiceUnavailable, "this node pulls from no agents")
	}
	if err := s.opt.Agents.Retry(r.Context(), &q); err != nil {
		return refuse(http.StatusConflict, err.Error())
	}
	answer(w, http.StatusAccepted, map[string]string{"message": "the agent has mapped the job; its record comes with the next pull and settles the quarantine"})
	return nil
}

// v1Conflicts is GET /v1/conflicts.
func (s *Server) v1Conflicts(w http.ResponseWriter, _ *http.Request, view *store.View) error {
	return entries(w, "conflicts", view.Conflicts)
}

// v1Waiting is GET /v1/waiting: stops that have no record yet.
func (s *Server) v1Waiting(w http.ResponseWriter, _ *http.Request, view *store.View) error {
	return entries(w, "waiting", view.WaitingStops)
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

// v1Status is GET /v1/status: the node and the cluster in a few numbers.
func (s *Server) v1Status(w http.ResponseWriter, _ *http.Request, view *store.View) error {
	index, term := view.Applied()
	id, version := view.Cluster()
	count := func(each func(func(*record.Entry) error) error) (n int, err error) {
		err = each(func(*record.Entry) error { n++; return nil })
		return n, err
	}
	conflicts, err := count(view.Conflicts)
	if err != nil {
		return err
	}
	waiting, err := count(view.WaitingStops)
	if err != nil {
		return err
	}
	quarantine := 0
	if err := view.Quarantine(func(*store.Quarantined) error { quarantine++; return nil }); err != nil {
		return err
	}
	agents, err := s.agents(view)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]any{
		"version": s.opt.Version, "cluster": id, "cluster_version": version, "index": index, "term": term, "hash": fmt.Sprintf("%x", view.Hash()),
		"records": view.Count(), "last_change": view.Seq(), "quarantined": quarantine, "conflicts": conflicts, "waiting_stops": waiting, "agents": agents,
	})
	return nil
}
