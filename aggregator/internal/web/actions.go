package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// actionView is an action as the pages show it.
type actionView struct {
	v1.Action

	Current, Last *runView
}

func viewAction(a v1.Action) actionView {
	return actionView{a, (*runView)(a.Current), (*runView)(a.Last)}
}

// runView is a run of an action.
type runView v1.ActionRun

func viewRun(r v1.ActionRun) runView { return runView(r) }

// effectView is an effect of a run.
type effectView v1.ActionEffect

func viewEffect(e v1.ActionEffect) effectView { return effectView(e) }

// Name is TYPE/LABEL.
func (a *actionView) Name() string { return a.Type + "/" + a.Label }

// Path is the address of its page.
func (a *actionView) Path() string { return actionPath("/ui/actions", a.Type, a.Label) }

// Tone is the colour of the state.
func (a *actionView) Tone() string { return toneOfAction(a.State) }

// Due says when the next run is, in words where that is no time.
func (a *actionView) Due() string {
	switch {
	case !a.Configured:
		return "never: not configured"
	case a.Paused != nil:
		return "not while it is paused"
	case a.Disabled != nil:
		return "not while it is disabled"
	case strings.HasPrefix(string(a.Schedule), "@change"):
		return "when records have changed"
	case a.Schedule == "@manual":
		return "only on request"
	case a.Schedule == "":
		return "by the plugin's schedule"
	}
	return "–"
}

// Runner says who carries it out.
func (a *actionView) Runner() string {
	if a.RunOn == "" {
		return "the leader"
	}
	return "agent " + string(a.RunOn)
}

// toneOfAction is the colour of the state of an action.
func toneOfAction(state string) string {
	switch state {
	case "healthy", "running":
		return "good"
	case "failing", "disabled":
		return "bad"
	case "partial", "paused", "unknown":
		return "warn"
	}
	return "dim"
}

// Outcome says in words how the effects stand.
func (r *runView) Outcome() string { return (*v1.ActionRun)(r).Outcome() }

// Tone is the colour of the outcome.
func (r *runView) Tone() string {
	switch {
	case r.Ended.IsZero():
		return "dim"
	case r.Rejected > 0 || r.Failure != "":
		return "bad"
	case r.Unknown > 0 || r.Partial:
		return "warn"
	}
	return "good"
}

// Tone is the colour of the state of an effect.
func (e *effectView) Tone() string {
	switch e.State {
	case "done":
		return "good"
	case "rejected":
		return "bad"
	case "unknown":
		return "warn"
	}
	return "dim"
}

// Last is the last attempt; nil without one.
func (e *effectView) Last() *v1.ActionAttempt {
	if len(e.Attempts) == 0 {
		return nil
	}
	return &e.Attempts[len(e.Attempts)-1]
}

// May are the orders that an effect takes in its state.
func (e *effectView) May() []string {
	switch e.State {
	case "unknown", "rejected":
		return []string{"retry", "skip"}
	case "skipped", "superseded":
		return []string{"retry"}
	}
	return nil
}

// actionPath is the address of an action below a root.
func actionPath(root, typ, label string, more ...string) string {
	parts := []string{root}
	for _, part := range append([]string{typ, label}, more...) {
		parts = append(parts, url.PathEscape(part))
	}
	return strings.Join(parts, "/")
}

// actionsPage is what the page of actions shows.
type actionsPage struct{ Actions []actionView }

func (p *Pages) actionsContent(r *http.Request) (any, error) {
	list, err := p.listActions(r)
	return &actionsPage{list}, err
}

// listActions are the actions; none where the server has none.
func (p *Pages) listActions(r *http.Request) ([]actionView, error) {
	answer, err := p.V1.Actions(r.Context(), nil)
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusNotFound {
		err = nil
	}
	return mapViews(answer.Actions, viewAction), err
}

// findAction is the action that a path names.
func (p *Pages) findAction(r *http.Request) (*actionView, error) {
	list, err := p.listActions(r)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list {
		if list[i].Type == r.PathValue("type") && list[i].Label == r.PathValue("label") {
			return &list[i], nil
		}
		names = append(names, list[i].Name())
	}
	text := fmt.Sprintf("There is no action %s/%s.", r.PathValue("type"), r.PathValue("label"))
	if len(names) > 0 {
		text += " There are: " + strings.Join(names, ", ") + "."
	}
	return nil, status{http.StatusNotFound, text}
}

// actionPage is what the page of an action shows.
type actionPage struct {
	*actionView

	Runs     []runView
	More     string // the address with more runs
	CSV      string
	Settings string // in the words of the configuration
	Orders   bool   // the reader may make a plan
	PlanPath string
	Token    string // of the form
	// Arguments are empty on this page.
	Arguments string
}

func (p *actionPage) pageTitle() string { return "Action " + p.Name() }

// runsShown is how many runs the page of an action shows, when nothing is asked.
const runsShown = 50

func (p *Pages) actionContent(r *http.Request) (any, error) {
	a, err := p.findAction(r)
	if err != nil {
		return nil, err
	}
	limit := runsShown
	if text := r.URL.Query().Get("runs"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 10_000 {
			return nil, badRequest("%q is not a number of runs from 1 to 10000.", text)
		}
	}
	list, err := p.V1.ActionRuns(r.Context(), a.Type, a.Label, &v1.ActionRunsQuery{Limit: limit})
	if err != nil {
		return nil, err
	}
	page := &actionPage{actionView: a, Runs: mapViews(list.Runs, viewRun), PlanPath: a.Path() + "/plan", Token: formToken(r)}
	if list.More {
		page.More = a.Path() + "?runs=" + strconv.Itoa(min(limit*4, 10_000))
	}
	if len(list.Runs) > 0 {
		page.CSV = v1.ActionRunsAddress(a.Type, a.Label, &v1.ActionRunsQuery{Limit: 10_000}, "csv")
	}
	who := access.From(r.Context())
	page.Orders = who.May(identity.Operate) && who.Rows.All()
	page.Settings, err = p.actionSettings(r, a)
	return page, err
}

// runPage is what the page of a run shows.
type runPage struct {
	Action  *actionView
	Run     runView
	Effects []effectView
	CSV     string
	Payload bool // the reader may see what effects do
}

func (p *runPage) pageTitle() string { return fmt.Sprintf("Run %d of %s", p.Run.Run, p.Action.Name()) }

// PayloadPath is the address of what an effect does.
func (p *runPage) PayloadPath(effect int) string {
	return actionPath("/ui/actions", p.Action.Type, p.Action.Label, "runs", strconv.FormatUint(p.Run.Run, 10), "effects", strconv.Itoa(effect))
}

// numberIn is a part of the path that is a number.
func numberIn(r *http.Request, name string) (uint64, error) {
	n, err := strconv.ParseUint(r.PathValue(name), 10, 31)
	if err != nil {
		return 0, status{http.StatusNotFound, fmt.Sprintf("Invalid %s %q: use its number.", name, r.PathValue(name))}
	}
	return n, nil
}

func (p *Pages) runContent(r *http.Request) (any, error) {
	a, err := p.findAction(r)
	if err != nil {
		return nil, err
	}
	number, err := numberIn(r, "run")
	if err != nil {
		return nil, err
	}
	answer, err := p.V1.ActionRun(r.Context(), a.Type, a.Label, number, nil)
	if err != nil {
		return nil, err
	}
	who := access.From(r.Context())
	csv := v1.ActionRunAddress(a.Type, a.Label, number, nil, "csv")
	return &runPage{Action: a, Run: viewRun(answer.Run), Effects: mapViews(answer.Effects, viewEffect), CSV: csv, Payload: who.May(identity.Read) && who.Rows.All()}, nil
}

// effectPage is what the page of an effect shows.
type effectPage struct {
	Action         *actionView
	Run, Effect    string
	Show, Payload  string
	Size           uint64
	Cut, Unprinted bool
}

func (p *effectPage) pageTitle() string {
	return fmt.Sprintf("Effect %s of run %s of %s", p.Effect, p.Run, p.Action.Name())
}

// RunPath is the address of the run.
func (p *effectPage) RunPath() string { return actionPath(p.Action.Path(), "runs", p.Run) }

// payloadShown bounds the payload in a page.
const payloadShown = 64 << 10

func (p *Pages) effectContent(r *http.Request) (any, error) {
	a, err := p.findAction(r)
	if err != nil {
		return nil, err
	}
	page := &effectPage{Action: a, Run: r.PathValue("run"), Effect: r.PathValue("effect")}
	run, err := numberIn(r, "run")
	if err != nil {
		return nil, err
	}
	effect, err := numberIn(r, "effect")
	if err != nil {
		return nil, err
	}
	answer, err := p.V1.ActionEffect(r.Context(), a.Type, a.Label, run, int(effect), nil)
	if err != nil {
		return nil, err
	}
	page.Show, page.Size = answer.Show, uint64(len(answer.Payload))
	page.Unprinted = !utf8.Valid(answer.Payload)
	page.Payload, page.Cut = validText(answer.Payload, payloadShown)
	return page, nil
}
