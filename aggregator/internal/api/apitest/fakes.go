package apitest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/alerts"
)

// Agents implements [api.Agents].
func (a Agents) Agents(context.Context) ([]api.AgentStatus, error) { return a, nil }

// Retry implements [api.Agents].
func (Agents) Retry(context.Context, *store.Quarantined) error { return nil }

// Members is a cluster that changes as it is told.
type Members struct {
	List []api.Member
	Err  error // of each change
}

// Members implements [api.Members].
func (m *Members) Members() []api.Member { return m.List }

// Add implements [api.Members].
func (m *Members) Add(context.Context, string, string) error { return m.Err }

// Remove implements [api.Members].
func (m *Members) Remove(context.Context, string) error { return m.Err }

// Transfer implements [api.Members].
func (m *Members) Transfer(context.Context) error { return m.Err }

// Checked is the outcome of a check of the node.
type Checked []string

// Check implements [api.Checker].
func (c Checked) Check(context.Context) (uint64, []string, error) { return 7, c, nil }

// Actions are those of a cluster: what is known of them, and the requests that were made.
type Actions struct {
	Statuses []action.Status
	Runs     []*action.Run // of each action, the newest first
	Effects  []action.Effect
	Bytes    []byte // the payload of each effect
	Shown    string // how it is shown
	Planned  *sdk.Plan
	State    []byte // that counts, of each action
	Ordered  int64  // when the newest run was ordered, in microseconds

	mu       sync.Mutex
	requests []string
}

// Asked are the requests so far.
func (a *Actions) Asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests
}

func (a *Actions) addRequest(what ...any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, strings.TrimSpace(fmt.Sprintln(what...)))
	return nil
}

// List implements [api.Actions].
func (a *Actions) List(action.Documents) ([]action.Status, error) { return a.Statuses, nil }

// History implements [api.Actions].
func (a *Actions) History(_ action.Documents, _ action.Name, yield func(*action.Run) bool) error {
	for _, run := range a.Runs {
		if !yield(run) {
			break
		}
	}
	return nil
}

// Show implements [api.Actions].
func (a *Actions) Show(_ action.Documents, name action.Name, number uint64) (*action.Run, []action.Effect, error) {
	for _, run := range a.Runs {
		if run.Number == number {
			return run, a.Effects, nil
		}
	}
	return nil, nil, fmt.Errorf("%w: %s has no run %d", action.ErrNone, name, number)
}

// Payload implements [api.Actions].
func (a *Actions) Payload(action.Documents, action.Name, uint64, int) ([]byte, string, error) {
	return a.Bytes, a.Shown, nil
}

// Kept implements [api.Actions].
func (a *Actions) Kept(action.Documents, action.Name) ([]byte, error) { return a.State, nil }

// Plan implements [api.Actions]. There is none for the month "never".
func (a *Actions) Plan(_ context.Context, name action.Name, arguments map[string]string) (*sdk.Plan, *action.Run, error) {
	if err := a.addRequest("plan", name, arguments); err != nil || arguments["month"] == "never" {
		return nil, nil, errors.Join(err, errors.New("never is no month"))
	}
	return a.Planned, &action.Run{Arguments: arguments}, nil
}

// Run implements [api.Actions].
func (a *Actions) Run(_ context.Context, name action.Name, by string, arguments map[string]string) (int64, error) {
	return a.Ordered, a.addRequest("run", name, by, arguments)
}

// Pause implements [api.Actions].
func (a *Actions) Pause(_ context.Context, name action.Name, by, why string) error {
	return a.addRequest("pause", name, by, why)
}

// Resume implements [api.Actions].
func (a *Actions) Resume(_ context.Context, name action.Name) error {
	return a.addRequest("resume", name)
}

// Retry implements [api.Actions].
func (a *Actions) Retry(_ context.Context, name action.Name, by string, run uint64, effect int) error {
	return a.addRequest("retry", name, by, run, effect)
}

// Skip implements [api.Actions].
func (a *Actions) Skip(_ context.Context, name action.Name, by string, run uint64, effect int) error {
	return a.addRequest("skip", name, by, run, effect)
}

// Watching is a cluster with an action that watches rules: an alert in each state, a silence, a
// receiver that takes nothing, and a rule that cannot be evaluated.
func Watching() *Actions {
	hour := func(n int) time.Time { return Noon().Add(time.Duration(n) * time.Hour) }
	state := alerts.State{
		Alerts: []alerts.Alert{
			{Rule: "backup", About: "agg1", Severity: "warning", What: "the backup of agg1 <fails>", Do: "df -h", Since: hour(-3), Fired: hour(-2), Told: true},
			{Rule: "budget-100", About: "atlas", Severity: "critical", What: "budget atlas is exhausted", Runbook: "https://example.org/#budget", Since: hour(-2), Fired: hour(-2), Told: true},
			{Rule: "gap", Severity: "warning", What: "2 gaps", Do: "bursar gaps", Since: hour(-1), Fired: hour(-1)},
			{Rule: "gone", Severity: "warning", What: "it is over", Since: hour(-2), Fired: hour(-1), Ended: hour(0)},
			{Rule: "quarantine", Severity: "notice", What: "1 job is quarantined", Since: hour(0)},
		},
		Silences:  []alerts.Silence{{ID: "k3v9x2m4qa", Match: map[string]string{"rule": "ga*"}, From: hour(-1), Until: hour(1), Author: "anna", Comment: "<known>"}},
		Problems:  []alerts.Problem{{Rule: "money", Why: `budget "bell" not found`, Since: hour(-5)}},
		Receivers: map[string]*alerts.Receiver{"mail ops to=a@example.org": {Problem: "550 <no>", Failing: hour(-1)}, "webhook chat": {Told: hour(-1)}},
	}
	kept, err := state.Bytes()
	if err != nil {
		panic(err) // texts and times only
	}
	ordered := int64(At("2026-03-01T12:00:00Z"))
	return &Actions{
		Statuses: []action.Status{{Name: action.Name{Type: "alert", Label: "site"}, Configured: true, Schedule: "1m"}},
		Runs:     []*action.Run{{Number: 1, Why: action.WhyOrder, Ordered: ordered, Planned: ordered}},
		State:    kept, Ordered: ordered,
	}
}
