package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Actions are what the server needs of actions. Orders are carried out by whoever
// leads.
type Actions interface {
	List(from action.Documents) ([]action.Status, error)
	History(from action.Documents, name action.Name, yield func(*action.Run) bool) error
	Show(from action.Documents, name action.Name, run uint64) (*action.Run, []action.Effect, error)
	Payload(from action.Documents, name action.Name, run uint64, effect int) (payload []byte, show string, err error)
	// Kept is the state that counts of an action; nil: none.
	Kept(from action.Documents, name action.Name) ([]byte, error)
	// Plan makes a plan here and now, and does nothing.
	Plan(ctx context.Context, name action.Name, arguments map[string]string) (*sdk.Plan, *action.Run, error)
	Run(ctx context.Context, name action.Name, by string, arguments map[string]string) (ordered int64, err error)
	Pause(ctx context.Context, name action.Name, by, why string) error
	Resume(ctx context.Context, name action.Name) error
	Retry(ctx context.Context, name action.Name, by string, run uint64, effect int) error
	Skip(ctx context.Context, name action.Name, by string, run uint64, effect int) error
}

func stampMicros(micros int64) v1.Time {
	if micros == 0 {
		return v1.Time{}
	}
	return v1.Time{Time: action.Instant(micros)}
}

func markJSON(m *action.Mark) *v1.ActionMark {
	if m == nil {
		return nil
	}
	return &v1.ActionMark{By: v1.Text(m.By), At: stampMicros(m.At), Why: v1.Text(m.Why)}
}

// failureJSON describes why an action has no plan. Who does not see all records is told only
// since when: the text may name people.
func failureJSON(m *action.Mark, view *access.View) *v1.ActionMark {
	out := markJSON(m)
	if out != nil && !view.SeesAll() {
		out.Why = ""
	}
	return out
}

func actionJSON(s *action.Status, view *access.View) v1.Action {
	return v1.Action{
		Type: s.Name.Type, Label: s.Name.Label, Configured: s.Configured, State: s.State(), Schedule: v1.Text(s.Schedule), Zone: v1.Text(s.Zone), Next: stampMicros(s.Next), RunOn: v1.Text(s.RunOn), LastSuccess: stampMicros(s.Stored.LastSuccess),
		Paused: markJSON(s.Stored.Paused), Disabled: failureJSON(s.Stored.Disabled, view), Problem: failureJSON(s.Stored.Problem, view), Doubtful: append([]uint64{}, s.Stored.Doubtful...),
		Orders: len(s.Stored.Requests), Current: runJSON(s.Current, view), Last: runJSON(s.Last, view),
	}
}

// runJSON describes a run; who does not see all records is told neither its arguments nor its
// notes and failures, which may name people.
func runJSON(r *action.Run, view *access.View) *v1.ActionRun {
	if r == nil {
		return nil
	}
	out := &v1.ActionRun{
		Run: r.Number, Why: r.Why, By: v1.Text(r.By), Ordered: stampMicros(r.Ordered), Arguments: map[string]string{}, Version: r.Version, RunOn: v1.Text(r.RunOn), Planned: stampMicros(r.Planned), Index: r.Index, Ended: stampMicros(r.Ended),
		Effects: r.Effects, Done: r.Counts.Done, Rejected: r.Counts.Rejected, Unknown: r.Counts.Unknown, Skipped: r.Counts.Skipped, Superseded: r.Counts.Superseded,
		Partial: r.Partial, Notes: []string{},
	}
	if view.SeesAll() {
		out.Failure, out.Notes = v1.Text(r.Failure), append(out.Notes, r.Notes...)
		maps.Copy(out.Arguments, r.Arguments)
	}
	return out
}

func effectJSON(i int, e *action.Effect) v1.ActionEffect {
	out := v1.ActionEffect{
		Effect: i, Name: e.Name, Summary: e.Summary, State: e.State, Size: e.Size, Digest: e.Digest, Key: e.Key, Tries: e.Tries,
		NotBefore: stampMicros(e.NotBefore), By: v1.Text(e.By), Attempts: []v1.ActionAttempt{},
	}
	for _, a := range e.Attempts {
		out.Attempts = append(out.Attempts, v1.ActionAttempt{
			Number: a.Number, Node: a.Node, Term: a.Term, Fence: a.Fence, Begun: stampMicros(a.Begun), Ended: stampMicros(a.Ended),
			Outcome: v1.Text(a.Outcome), Message: a.Message, Reference: a.Reference,
		})
	}
	return out
}

// actionRoutes returns the routes about actions.
func (s *Server) actionRoutes() []route {
	const one = "/v1/actions/{type}/{label}"
	const verb = "/v1/actions/{type}/{label...}"
	const effect = one + "/runs/{run}/effects/{effect"
	return []route{
		{http.MethodGet, "/v1/actions", s.withTable("actions", s.withView(withoutQuery(s.withActions(s.v1Actions))))},
		{http.MethodGet, one + "/runs", s.withTable("runs", s.withView(s.withActions(s.v1Runs)))},
		{http.MethodGet, one + "/runs/{run}", s.withTable("effects", s.withView(s.withActions(s.v1Run)))},
		{http.MethodGet, effect + "}", s.withView(s.withActions(s.v1Effect))},
		{http.MethodPost, effect + "...}:retry", s.withActionOrder(s.v1EffectOrder("effect %d of run %d is tried again as soon as nothing else of this action is under way", Actions.Retry))},
		{http.MethodPost, effect + "...}:skip", s.withActionOrder(s.v1EffectOrder("effect %d of run %d is settled: it will not be done", Actions.Skip))},
		{http.MethodPost, verb + ":plan", s.withActionOrder(s.v1ActionPlan)},
		{http.MethodPost, verb + ":run", s.withActionOrder(s.v1ActionRun)},
		{http.MethodPost, verb + ":pause", s.withActionOrder(s.v1ActionPause)},
		{http.MethodPost, verb + ":resume", s.withActionOrder(s.v1ActionResume)},
	}
}

// withActions is for handlers that show actions.
func (s *Server) withActions(h func(http.ResponseWriter, *http.Request, *access.View) error) func(http.ResponseWriter, *http.Request, *access.View) error {
	return func(w http.ResponseWriter, r *http.Request, view *access.View) error {
		if s.opt.Actions == nil {
			return newRefusal(http.StatusNotFound, "this server has no actions")
		}
		return actionError(h(w, r, view))
	}
}

// actionOrder is what may stand in the body of an order.
type actionOrder struct {
	Arguments map[string]string `json:"arguments"`
	Why       string            `json:"why"`
}

// maxOrder bounds the body of an order.
const maxOrder = 64 << 10

// withActionOrder is for handlers that order something of an action.
func (s *Server) withActionOrder(h func(http.ResponseWriter, *http.Request, action.Name, *actionOrder) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.opt.Actions == nil {
			answerProblem(w, http.StatusNotFound, "this server has no actions")
			return
		}
		name, err := action.ParseName(r.PathValue("type") + "/" + r.PathValue("label"))
		order := &actionOrder{}
		if err != nil {
			err = newRefusal(http.StatusNotFound, "%v", err)
		} else {
			err = readOrder(w, r, order)
		}
		if err == nil {
			err = actionError(h(w, r, name, order))
		}
		if err != nil {
			s.answerError(w, r, err)
		}
	}
}

// readOrder reads a body, which may be empty.
func readOrder(w http.ResponseWriter, r *http.Request, order *actionOrder) error {
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	in.DisallowUnknownFields()
	if err := in.Decode(order); err != nil && !errors.Is(err, io.EOF) {
		return newRefusal(http.StatusBadRequest, `the body must be empty or like {"arguments": {"month": "2026-10"}} or {"why": "…"}: %v`, err)
	}
	return nil
}

// actionError gives the errors of actions their status.
func actionError(err error) error {
	switch {
	case errors.Is(err, action.ErrNone):
		return newRefusal(http.StatusNotFound, "%v", err)
	case errors.Is(err, action.ErrRefused), errors.Is(err, action.ErrChanged):
		return newRefusal(http.StatusConflict, "%v", err)
	case errors.Is(err, ErrNotNow):
		return newRetryableRefusal("nothing was done: %v", err)
	}
	return err
}

// v1Actions is GET /v1/actions.
func (s *Server) v1Actions(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	list, err := s.opt.Actions.List(view)
	if err != nil {
		return err
	}
	out := []v1.Action{}
	for i := range list {
		out = append(out, actionJSON(&list[i], view))
	}
	answerJSON(w, http.StatusOK, v1.Actions{Actions: out})
	return nil
}

func pathAction(r *http.Request) action.Name {
	return action.Name{Type: r.PathValue("type"), Label: r.PathValue("label")}
}

// pathNumber reads a number of a path; what is none is not there.
func pathNumber(r *http.Request, name string) (uint64, error) {
	n, err := strconv.ParseUint(r.PathValue(name), 10, 31)
	if err != nil {
		return 0, newRefusal(http.StatusNotFound, "%q is not the number of a %s", r.PathValue(name), name)
	}
	return n, nil
}

// runsAtOnce is how many runs are told where no limit is given.
const runsAtOnce = 100

// v1Runs is GET /v1/actions/{type}/{label}/runs: the newest first.
func (s *Server) v1Runs(w http.ResponseWriter, r *http.Request, view *access.View) error {
	q, err := decodeQuery[v1.ActionRunsQuery](r)
	if err != nil {
		return err
	}
	limit, out := cmp.Or(q.Limit, runsAtOnce), v1.ActionRuns{Runs: []v1.ActionRun{}}
	err = s.opt.Actions.History(view, pathAction(r), func(run *action.Run) bool {
		if out.More = len(out.Runs) == limit; !out.More {
			out.Runs = append(out.Runs, *runJSON(run, view))
		}
		return !out.More
	})
	if err == nil {
		answerJSON(w, http.StatusOK, out)
	}
	return err
}

// v1Run is GET /v1/actions/{type}/{label}/runs/{run}: a run with its effects.
func (s *Server) v1Run(w http.ResponseWriter, r *http.Request, view *access.View) error {
	number, err := pathNumber(r, "run")
	if err != nil {
		return err
	}
	run, effects, err := s.opt.Actions.Show(view, pathAction(r), number)
	if err != nil {
		return err
	}
	out := v1.ActionRunEffects{Run: *runJSON(run, view), Effects: []v1.ActionEffect{}}
	if view.SeesAll() { // what an effect is of may be a person
		for i := range effects {
			out.Effects = append(out.Effects, effectJSON(i, &effects[i]))
		}
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

// v1Effect is GET …/runs/{run}/effects/{effect}: what it does, byte by byte.
func (s *Server) v1Effect(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	run, err := pathNumber(r, "run")
	if err != nil {
		return err
	}
	effect, err := pathNumber(r, "effect")
	if err != nil {
		return err
	}
	payload, show, err := s.opt.Actions.Payload(view, pathAction(r), run, int(effect))
	if err == nil {
		answerJSON(w, http.StatusOK, v1.EffectPayload{Show: show, Payload: append([]byte{}, payload...)})
	}
	return err
}

// v1EffectOrder is POST …/effects/{effect}:retry and :skip.
func (s *Server) v1EffectOrder(done string, do func(Actions, context.Context, action.Name, string, uint64, int) error) func(http.ResponseWriter, *http.Request, action.Name, *actionOrder) error {
	return func(w http.ResponseWriter, r *http.Request, name action.Name, _ *actionOrder) error {
		run, err := pathNumber(r, "run")
		if err != nil {
			return err
		}
		effect, err := pathNumber(r, "effect")
		if err == nil {
			err = do(s.opt.Actions, r.Context(), name, callerName(r), run, int(effect))
		}
		return s.answerOrdered(w, err, fmt.Sprintf(done, effect, run))
	}
}

func (s *Server) answerOrdered(w http.ResponseWriter, err error, message string) error {
	if err == nil {
		answerJSON(w, http.StatusAccepted, v1.Message{Message: message})
	}
	return err
}

func (s *Server) v1ActionRun(w http.ResponseWriter, r *http.Request, name action.Name, o *actionOrder) error {
	at, err := s.opt.Actions.Run(r.Context(), name, callerName(r), o.Arguments)
	if err == nil {
		answerJSON(w, http.StatusAccepted, v1.ActionOrdered{Message: "the run begins when what is under way has ended", Ordered: stampMicros(at)})
	}
	return err
}

func (s *Server) v1ActionPause(w http.ResponseWriter, r *http.Request, name action.Name, o *actionOrder) error {
	return s.answerOrdered(w, s.opt.Actions.Pause(r.Context(), name, callerName(r), o.Why), "action paused: no new runs start; running ones finish")
}

func (s *Server) v1ActionResume(w http.ResponseWriter, r *http.Request, name action.Name, _ *actionOrder) error {
	return s.answerOrdered(w, s.opt.Actions.Resume(r.Context(), name), "action resumed")
}

// v1ActionPlan is POST …:plan: what a run would do now. Nothing is done.
func (s *Server) v1ActionPlan(w http.ResponseWriter, r *http.Request, name action.Name, o *actionOrder) error {
	deadline := time.Now().Add(planPatience)
	_ = http.NewResponseController(w).SetWriteDeadline(deadline) // a writer that cannot is a test's
	if !access.From(r.Context()).Rows.All() {
		return access.ErrRows // the plugin is handed all records, and the plan shows what it makes of them
	}
	plan, run, err := s.opt.Actions.Plan(r.Context(), name, o.Arguments)
	switch {
	case errors.Is(err, action.ErrNone):
		return err
	case err != nil:
		return newRefusal(http.StatusUnprocessableEntity, "no plan can be made: %v", err)
	}
	out := []v1.PlannedEffect{}
	for _, e := range plan.Effects {
		out = append(out, v1.PlannedEffect{Name: e.Name, Summary: e.Summary, Size: len(e.Payload), Show: e.Show})
	}
	answerJSON(w, http.StatusOK, v1.ActionPlan{
		Planned: stampMicros(run.Planned), Index: run.Index, Version: run.Version, RunOn: v1.Text(run.RunOn), Class: sdk.EffectClass(run.Class).String(),
		Effects: out, Notes: append([]string{}, run.Notes...), Partial: run.Partial,
	})
	return nil
}

// planPatience is how long the answer with a plan may take.
const planPatience = 16 * time.Minute
