package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// actionView is an action as the pages show it.
type actionView struct{ v1.Action }

// Name is TYPE/LABEL.
func (a *actionView) Name() string { return view.ActionName(&a.Action) }

// Path is the address of its page.
func (a *actionView) Path() string { return actionAddress(a.Name(), 0) }

// actionAddress is the page of an action by its name, or that of one of its runs.
func actionAddress(name string, run uint64) string {
	typ, label, _ := strings.Cut(name, "/")
	if run == 0 {
		return actionPath("/ui/actions", typ, label)
	}
	return actionPath("/ui/actions", typ, label, "runs", strconv.FormatUint(run, 10))
}

// actionPath is an address below a root.
func actionPath(root string, below ...string) string {
	for _, part := range below {
		root += "/" + url.PathEscape(part)
	}
	return root
}

func (p *Pages) actionsContent(r *http.Request) (any, error) {
	list, err := p.listActions(r)
	shown := p.showList(view.Actions(list), len(list.Actions), v1.ActionsAddress(nil, "csv"))
	return &shown, err
}

// listActions are the actions; none where the server has none.
func (p *Pages) listActions(r *http.Request) (v1.Actions, error) {
	answer, err := p.V1.Actions(r.Context(), nil)
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusNotFound {
		err = nil
	}
	return answer, err
}

// findAction is the action that a path names.
func (p *Pages) findAction(r *http.Request) (*actionView, error) {
	list, err := p.listActions(r)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Actions {
		a := &actionView{list.Actions[i]}
		if a.Type == r.PathValue("type") && a.Label == r.PathValue("label") {
			return a, nil
		}
		names = append(names, a.Name())
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

	Facts    []shownCell
	Notices  []shownNotice
	Runs     shownTable
	More     string // the address with more runs
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
	about := view.Actions(v1.Actions{Actions: []v1.Action{a.Action}})
	csv := v1.ActionRunsAddress(a.Type, a.Label, &v1.ActionRunsQuery{Limit: 10_000}, "csv")
	page := &actionPage{
		actionView: a, Facts: p.showFacts(&about), Notices: p.showNotices(&about), Runs: p.showList(view.ActionRuns(a.Name(), list), limit, csv),
		PlanPath: a.Path() + "/plan", Token: formToken(r),
	}
	if list.More {
		page.More = a.Path() + "?runs=" + strconv.Itoa(min(limit*4, 10_000))
	}
	who := access.From(r.Context())
	page.Orders = who.May(identity.Operate) && who.Rows.All()
	page.Settings, err = p.actionSettings(r, a)
	return page, err
}

// runPage is what the page of a run shows.
type runPage struct {
	Action   *actionView
	Run      uint64
	Facts    []shownCell
	Effects  shownTable
	Attempts *shownTable // nil: Effects shows all
}

func (p *runPage) pageTitle() string { return fmt.Sprintf("Run %d of %s", p.Run, p.Action.Name()) }

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
	about := view.ActionRuns(a.Name(), v1.ActionRuns{Runs: []v1.ActionRun{answer.Run}})
	csv := v1.ActionRunAddress(a.Type, a.Label, number, nil, "csv")
	page := &runPage{Action: a, Run: number, Facts: p.showFacts(&about), Effects: p.showList(view.Effects(a.Name(), answer), len(answer.Effects), csv)}
	if who := access.From(r.Context()); who.May(identity.Read) && who.Rows.All() {
		for i, row := range page.Effects.Rows { // the last cell is the payload
			row[len(row)-1].Href = actionPath(actionAddress(a.Name(), number), "effects", strconv.Itoa(answer.Effects[i].Effect))
		}
	}
	if slices.ContainsFunc(answer.Effects, func(e v1.ActionEffect) bool { return len(e.Attempts) > 1 }) {
		attempts := view.Attempts(answer)
		attempts.Notes = nil // the facts have them
		page.Attempts = new(p.showList(attempts, len(attempts.Rows), ""))
	}
	return page, nil
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
