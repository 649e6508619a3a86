package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/proto/alerts"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// alertType is the type of the actions that watch rules.
const alertType = "alert"

// alertRoutes returns the routes about alerts.
func (s *Server) alertRoutes() []route {
	return []route{
		{http.MethodGet, "/v1/alerts", s.withTable("alerts", s.withView(withoutQuery(s.withActions(s.v1Alerts))))},
		{http.MethodPost, "/v1/alerts/silences", s.withView(s.withActions(s.v1Silence))},
		{http.MethodDelete, "/v1/alerts/silences/{id...}", s.withView(s.withActions(s.v1ExpireSilence))},
	}
}

// alertStates are the states of the configured actions that watch rules, by their labels.
func (s *Server) alertStates(view *access.View) (map[string]*alerts.State, error) {
	if !view.Principal().Rows.All() {
		return nil, access.ErrRows // alerts name sources, budgets and runs
	}
	list, err := s.opt.Actions.List(view)
	if err != nil {
		return nil, err
	}
	out := map[string]*alerts.State{}
	for i := range list {
		if list[i].Name.Type != alertType || !list[i].Configured {
			continue
		}
		kept, err := s.opt.Actions.Kept(view, list[i].Name)
		if err != nil {
			return nil, err
		}
		if out[list[i].Name.Label], err = alerts.Read(kept); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// v1Alerts is GET /v1/alerts.
func (s *Server) v1Alerts(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	states, err := s.alertStates(view)
	if err != nil {
		return err
	}
	out := v1.Alerts{Alerts: []v1.Alert{}, Silences: []v1.AlertSilence{}, Receivers: []v1.AlertReceiver{}, Rules: []v1.AlertRule{}}
	now := s.currentTime().Std()
	at := func(t time.Time) v1.Time { return v1.Time{Time: t} }
	for _, label := range slices.Sorted(maps.Keys(states)) {
		state := states[label]
		for i := range state.Alerts {
			a := &state.Alerts[i]
			j := v1.Alert{
				Action: label, Rule: a.Rule, About: a.About, Severity: a.Severity, State: state.Word(a, now), What: a.What, Do: a.Do, Runbook: a.Runbook,
				Since: at(a.Since), Fired: at(a.Fired),
			}
			if q := state.Silenced(a, now); q != nil {
				j.Silence = v1.Text(q.ID)
			}
			if a.Ended.IsZero() {
				out.Alerts = append(out.Alerts, j)
			}
		}
		for _, q := range state.Silences {
			if now.Before(q.Until) {
				out.Silences = append(out.Silences, v1.AlertSilence{
					Action: label, ID: q.ID, Match: q.Match, From: at(q.From), Until: at(q.Until), Author: q.Author, Comment: q.Comment,
				})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(state.Receivers)) {
			r := state.Receivers[name]
			out.Receivers = append(out.Receivers, v1.AlertReceiver{
				Action: label, Name: name, Told: at(r.Told), Problem: v1.Text(r.Problem), FailingSince: at(r.Failing),
			})
		}
		for _, p := range state.Problems {
			out.Rules = append(out.Rules, v1.AlertRule{Action: label, Rule: p.Rule, Problem: p.Why, Since: at(p.Since)})
		}
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

// v1Silence is POST /v1/alerts/silences.
func (s *Server) v1Silence(w http.ResponseWriter, r *http.Request, view *access.View) error {
	var body v1.AlertSilenceOrder
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	in.DisallowUnknownFields()
	if err := in.Decode(&body); err != nil {
		return newRefusal(http.StatusBadRequest, `the body must be like {"match": {"rule": "backup"}, "seconds": 7200, "comment": "…"}: %v`, err)
	}
	now := s.currentTime().Std()
	q := alerts.Silence{
		ID: strings.ToLower(rand.Text()[:10]), Match: body.Match, From: now, Author: callerName(r), Comment: body.Comment,
		Until: now.Add(time.Duration(min(max(body.Seconds, 0), 1<<32)) * time.Second),
	}
	if err := q.Check(now); err != nil {
		return newRefusal(http.StatusBadRequest, "%v", err)
	}
	states, err := s.alertStates(view)
	if err != nil {
		return err
	}
	if body.Action != "" && states[body.Action] == nil {
		return newRefusal(http.StatusNotFound, "there is no action alert/%s", body.Action)
	}
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	maps.DeleteFunc(states, func(label string, _ *alerts.State) bool { return body.Action != "" && label != body.Action })
	return s.orderAlerts(r.Context(), w, states, q.ID, "silence", string(text))
}

// v1ExpireSilence is DELETE /v1/alerts/silences/{id}.
func (s *Server) v1ExpireSilence(w http.ResponseWriter, r *http.Request, view *access.View) error {
	id := r.PathValue("id")
	states, err := s.alertStates(view)
	if err != nil {
		return err
	}
	maps.DeleteFunc(states, func(_ string, state *alerts.State) bool {
		return !slices.ContainsFunc(state.Silences, func(q alerts.Silence) bool { return q.ID == id })
	})
	if len(states) == 0 {
		return newRefusal(http.StatusNotFound, "there is no silence %q", id)
	}
	return s.orderAlerts(r.Context(), w, states, id, "expire", id)
}

// orderAlerts orders a run of each action, which writes down what its argument says.
func (s *Server) orderAlerts(ctx context.Context, w http.ResponseWriter, states map[string]*alerts.State, id, argument, value string) error {
	out := v1.AlertOrdered{ID: id, Message: "the next run of each action takes it over", Orders: []v1.AlertOrder{}}
	if len(states) == 0 {
		return newRefusal(http.StatusNotFound, `there is no action of the type alert; a block action "alert" "LABEL" { … } in aggregator.hcl makes one`)
	}
	for _, label := range slices.Sorted(maps.Keys(states)) {
		at, err := s.opt.Actions.Run(ctx, action.Name{Type: alertType, Label: label}, access.From(ctx).Name, map[string]string{argument: value})
		if err != nil {
			return err
		}
		out.Orders = append(out.Orders, v1.AlertOrder{Action: label, Ordered: stampMicros(at)})
	}
	answerJSON(w, http.StatusAccepted, out)
	return nil
}
