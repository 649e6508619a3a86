package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// planPage is what the page of a plan shows.
type planPage struct {
	Action    *actionView
	Token     string // of the form
	Arguments string // as they were typed
	Command   string
	Plan      *v1.ActionPlan // nil: there is none
	Effects   shownTable     // of the plan
}

func (p *planPage) pageTitle() string { return "Plan of " + p.Action.Name() }

// PlanPath is the address at which the plan is made.
func (p *planPage) PlanPath() string { return p.Action.Path() + "/plan" }

// planPatience is how long a page waits for a plan, and planForm bounds the form.
const (
	planPatience = 16 * time.Minute
	planForm     = 64 << 10
)

// planHandler makes the handler that makes a plan. It changes nothing.
func (p *Pages) planHandler() http.Handler {
	page := p.frameHandler("plan", func(r *http.Request, f *frame) int {
		var err error
		f.Content, err = p.planContent(r)
		return p.showFailure(r, f, err)
	})
	return http.MaxBytesHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(planPatience)) // a writer that cannot is a test's
		page.ServeHTTP(w, r)
	}), planForm)
}

func (p *Pages) planContent(r *http.Request) (any, error) {
	a, err := p.findAction(r)
	if err != nil {
		return nil, err
	}
	if err := r.ParseForm(); err != nil {
		return nil, badRequest("The form does not read: %v.", err)
	}
	page := &planPage{Action: a, Token: formToken(r), Arguments: r.PostForm.Get("arguments"), Command: "bursar actions plan " + a.Name()}
	if err := checkForm(r); err != nil {
		return page, err
	}
	arguments := map[string]string{}
	for line := range strings.Lines(page.Arguments) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" {
			return page, badRequest("%q is not NAME=VALUE.", line)
		}
		arguments[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		page.Command += " " + shellQuoted(name+"="+arguments[name])
	}
	plan, err := p.V1.PlanAction(r.Context(), a.Type, a.Label, v1.ActionOrder{Arguments: arguments})
	if problem, ok := errors.AsType[*client.Problem](err); ok {
		return page, status{problem.Status, problem.Detail}
	}
	if err == nil {
		page.Plan, page.Effects = &plan, p.showList(view.Plan(plan), len(plan.Effects), "")
	}
	return page, err
}

// shellQuoted is a word as a shell takes it.
func shellQuoted(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./=:,@+", c)
	}
	if strings.ContainsFunc(word, func(c rune) bool { return !plain(c) }) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// apiBlock is a block of the cluster's configuration.
type apiBlock struct {
	Type   string                     `json:"type"`
	Labels []string                   `json:"labels"`
	Values map[string]json.RawMessage `json:"values"`
	Blocks []apiBlock                 `json:"blocks"`
}

// actionSettings are those of an action as the cluster's configuration has them, in which
// secrets are not; "" where the principal may not see it.
func (p *Pages) actionSettings(r *http.Request, a *actionView) (string, error) {
	if !mayConfig(r) {
		return "", nil
	}
	answer, err := p.V1.Config(r.Context())
	if problem := asProblem(err); problem != nil && (problem.Status == http.StatusForbidden || problem.Status == http.StatusNotFound) {
		return "", nil
	}
	var document struct {
		Blocks []apiBlock `json:"blocks"`
	}
	if err == nil {
		err = json.Unmarshal(answer.Document, &document)
	}
	if err != nil {
		return "", err
	}
	for i := range document.Blocks {
		b := &document.Blocks[i]
		if b.Type == "action" && slices.Equal(b.Labels, []string{a.Type, a.Label}) {
			var out strings.Builder
			b.writeBlock(&out, "")
			return out.String(), nil
		}
	}
	return "", nil
}

// writeBlock writes a block as in a file.
func (b *apiBlock) writeBlock(out *strings.Builder, indent string) {
	out.WriteString(indent + b.Type)
	for _, l := range b.Labels {
		fmt.Fprintf(out, " %q", l)
	}
	out.WriteString(" {\n")
	for _, name := range slices.Sorted(maps.Keys(b.Values)) {
		out.WriteString(indent + "  " + name + " = " + valueText(b.Values[name]) + "\n")
	}
	for i := range b.Blocks {
		b.Blocks[i].writeBlock(out, indent+"  ")
	}
	out.WriteString(indent + "}\n")
}

// valueText is a value as in a file. What is secret is not there: a mark stands for it.
func valueText(raw json.RawMessage) string {
	var marks map[string]json.RawMessage
	var list []json.RawMessage
	switch {
	case json.Unmarshal(raw, &list) == nil && list != nil:
		parts := make([]string, len(list))
		for i := range list {
			parts[i] = valueText(list[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case json.Unmarshal(raw, &marks) != nil || marks == nil:
		return string(raw)
	case len(marks) == 1 && marks["$secret"] != nil:
		return "(secret)"
	case len(marks) == 1 && marks["$null"] != nil:
		return "null"
	case len(marks) == 1 && marks["$expression"] != nil:
		var text string
		if json.Unmarshal(marks["$expression"], &text) == nil {
			return text
		}
	}
	parts := []string{}
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		parts = append(parts, name+" = "+valueText(marks[name]))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
