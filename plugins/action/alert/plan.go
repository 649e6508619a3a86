package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/alerts"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// planner makes the plan of a run.
type planner struct {
	*config

	now       time.Time
	arguments map[string]string
	before    []byte // the state as it was
	data      *sdk.Data
	state     *alerts.State

	// What was asked of the cluster, once.
	health *v1.Status
	money  *v1.Budgets

	out sdk.Plan
}

func newPlanner(c *config, start sdk.PlanStart, data *sdk.Data) (*planner, error) {
	state, err := alerts.Read(start.State)
	if err != nil {
		return nil, err
	}
	if state.Receivers == nil {
		state.Receivers = map[string]*alerts.Receiver{}
	}
	return &planner{config: c, now: start.Now.UTC(), arguments: start.Arguments, before: start.State, data: data, state: state}, nil
}

func (p *planner) readStatus(ctx context.Context) (*v1.Status, error) {
	if p.health == nil {
		answer, err := p.data.API().Status(ctx, nil)
		if err != nil {
			return nil, err
		}
		p.health = &answer
	}
	return p.health, nil
}

// setZone sets an unset zone to the site's, or to UTC if the cluster cannot be asked: alerts
// are sent all the same.
func (p *planner) setZone(ctx context.Context) {
	zone, err := p.data.API().Clock(ctx, p.Zone)
	if err != nil {
		zone = time.UTC
	}
	c := *p.config
	c.Zone, c.zone = zone.String(), zone
	p.config = &c
}

func (p *planner) budgetList(ctx context.Context) (*v1.Budgets, error) {
	if p.money == nil {
		answer, err := p.data.API().Budgets(ctx, &v1.BudgetsQuery{})
		if err != nil {
			return nil, err
		}
		p.money = &answer
	}
	return p.money, nil
}

// noteLack notes what the plan should have and has not.
func (p *planner) noteLack(format string, args ...any) {
	p.out.Partial = true
	p.out.Notes = append(p.out.Notes, fmt.Sprintf(format, args...))
}

// noteOnce notes what several rules find.
func (p *planner) noteOnce(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.out.Notes, text) {
		p.out.Notes = append(p.out.Notes, text)
	}
}

// The arguments of a run.
const (
	argSilence = "silence" // a silence as JSON
	argExpire  = "expire"  // the id of one that is to end
)

// maxSilences is how many silences there are at most.
const maxSilences = 100

// followOrders does what the arguments of the run want, and drops silences that are over.
func (p *planner) followOrders() error {
	s := p.state
	s.Silences = slices.DeleteFunc(s.Silences, func(q alerts.Silence) bool { return !p.now.Before(q.Until) })
	for name, value := range p.arguments {
		switch name {
		case argSilence:
			var q alerts.Silence
			if err := json.Unmarshal([]byte(value), &q); err != nil {
				return fmt.Errorf("argument silence: %w; use: bursar alerts silence", err)
			}
			if err := q.Check(p.now); err != nil {
				return err
			}
			if len(s.Silences) >= maxSilences {
				return fmt.Errorf("there are %d silences already: end some with: bursar alerts expire ID", len(s.Silences))
			}
			s.Silences = append(s.Silences, q)
		case argExpire:
			n := len(s.Silences)
			if s.Silences = slices.DeleteFunc(s.Silences, func(q alerts.Silence) bool { return q.ID == value }); len(s.Silences) == n {
				return fmt.Errorf("silence %q not found: bursar alerts list shows them", value)
			}
		default:
			return fmt.Errorf("unknown argument %q: a run of an alert takes none; bursar alerts silence makes a silence", name)
		}
	}
	return nil
}

// readOutcomes looks up in the ledger what became of the messages of the last runs.
func (p *planner) readOutcomes(ctx context.Context) error {
	waits := slices.ContainsFunc(slices.Collect(maps.Values(p.state.Receivers)), func(r *alerts.Receiver) bool { return r.Sent != nil })
	if !waits {
		return nil
	}
	list, err := p.data.API().ActionRuns(ctx, "alert", p.label, &v1.ActionRunsQuery{Limit: 100})
	if err != nil {
		return err
	}
	effects := map[int64][]v1.ActionEffect{} // by when the run was planned
	for _, r := range list.Runs {
		at := r.Planned.UnixMicro()
		wanted := slices.ContainsFunc(slices.Collect(maps.Values(p.state.Receivers)), func(r *alerts.Receiver) bool {
			return r.Sent != nil && r.Sent.Planned.UnixMicro() == at
		})
		if !wanted || r.Failure != "" {
			continue
		}
		answer, err := p.data.API().ActionRun(ctx, "alert", p.label, r.Run, nil)
		if err != nil {
			return err
		}
		effects[at] = answer.Effects
	}
	for _, r := range p.state.Receivers {
		if r.Sent != nil {
			p.applyOutcome(r, effects[r.Sent.Planned.UnixMicro()])
		}
	}
	return nil
}

// applyOutcome takes over what became of a message. One of which the ledger knows nothing any more
// counts as told.
func (p *planner) applyOutcome(r *alerts.Receiver, effects []v1.ActionEffect) {
	i := slices.IndexFunc(effects, func(e v1.ActionEffect) bool { return e.Name == r.Sent.Effect })
	state, words := "done", ""
	if i >= 0 {
		state = effects[i].State
		if n := len(effects[i].Attempts); n > 0 {
			words = effects[i].Attempts[n-1].Message
		}
	}
	sent := r.Sent
	switch _, rest, retry := strings.Cut(words, notDelivered); { // what the host says of a probe stands before it
	case state == "planned", state == "dispatched":
		return // it is under way
	case state == "done":
		*r = alerts.Receiver{Through: r.Through, Told: sent.Planned}
		return
	case state == "rejected" && retry:
		r.Through, words = sent.Before, rest
		r.Tries++
		r.Next = sent.Planned.Add(min(time.Minute<<min(r.Tries-1, 3), maxPause))
	case state == "rejected":
		r.Tries, r.Next = 0, time.Time{}
	default: // unknown, or skipped by a person: the action says so
		words = r.Problem
	}
	r.Sent = nil
	if words != "" {
		r.Problem, r.Failing = cutText(words), cmp.Or(r.Failing, sent.Planned)
	}
}

// maxPause is how long a receiver that takes nothing is left alone at most.
const maxPause = 5 * time.Minute

// endPlan writes the state and says how many alerts there are.
func (p *planner) endPlan() (sdk.Plan, error) {
	s := p.state
	counts := map[string]int{"firing": 0, "pending": 0, "silenced": 0}
	for i := range s.Alerts {
		a := &s.Alerts[i]
		if word := s.Word(a, p.now); word != "recovered" {
			counts[word]++
		}
		if a.Firing() && len(p.out.Gauges) < 150 {
			p.out.Gauges = append(p.out.Gauges, sdk.Gauge{Name: "firing", Value: 1, Labels: map[string]string{"rule": cutLabel(a.Rule), "about": cutLabel(a.About), "severity": a.Severity}})
		}
	}
	for name, n := range counts {
		p.out.Gauges = append(p.out.Gauges, sdk.Gauge{Name: "alerts", Value: float64(n), Labels: map[string]string{"state": name}})
	}
	failing := 0
	for _, r := range s.Receivers {
		if r.Problem != "" {
			failing++
		}
	}
	p.out.Gauges = append(p.out.Gauges, sdk.Gauge{Name: "receivers_failing", Value: float64(failing)}, sdk.Gauge{Name: "rules_failing", Value: float64(len(s.Problems))})
	state, err := p.writeState()
	if err != nil {
		return sdk.Plan{}, err
	}
	if string(state) != string(p.before) {
		p.out.State = state
	}
	return p.out, nil
}

// cutLabel bounds the value of a label.
func cutLabel(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// maxState is how large a state may be, below what a daemon keeps.
const maxState = 60 << 10

// writeState writes the state. Of changes that no receiver takes, the oldest are given up where there
// is no room.
func (p *planner) writeState() ([]byte, error) {
	for {
		b, err := p.state.Bytes()
		if err != nil || len(b) <= maxState {
			return b, err
		}
		n := len(p.state.Changes)
		if n == 0 {
			return nil, errors.New("the alerts do not fit into the state of the action: make fewer rules by key, or leave some out")
		}
		p.noteLack("%d changes are given up: the state is full until the receivers take them", n/2+1)
		p.state.Changes = p.state.Changes[n/2+1:]
	}
}
