package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// maxListed bounds the lists of what is odd.
const maxListed = 200

// quarantinePage is what the quarantine page shows.
type quarantinePage struct {
	Tabs    []tab
	Jobs    []quarantined
	More    bool   // there are others
	Operate bool   // the reader can retry and drop jobs
	Token   string // of the forms
	Done    string // what the form that was sent did
}

// quarantined is a job that gave no valid record, with the beginning of its raw input.
type quarantined struct {
	v1.Quarantined

	Notes []string
}

func (p *Pages) quarantineContent(r *http.Request, v *access.View) (any, error) {
	who := access.From(r.Context())
	page := &quarantinePage{Token: formToken(r), Operate: who.May(identity.Operate) && who.Rows.All()}
	var err error
	if page.Tabs, err = agentTabs(v, "quarantine"); err != nil {
		return nil, err
	}
	instead, err := v.InsteadOfRetry()
	if err != nil {
		return nil, err
	}
	err = v.Quarantine(func(q *store.Quarantined) error {
		if len(page.Jobs) == maxListed {
			page.More = true
			return errEnough
		}
		page.Jobs = append(page.Jobs, quarantinedOf(q, instead(q)))
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return page, err
}

// maxQuarantineForm bounds the form that retries or drops a job.
const maxQuarantineForm = 64 << 10

// quarantineFormHandler makes the handler of the forms of the quarantine page. Its answer is
// that page, with what was done or why it failed.
func (p *Pages) quarantineFormHandler() http.Handler {
	return http.MaxBytesHandler(p.frameHandler("quarantine", func(r *http.Request, f *frame) int {
		done, err := p.retryOrDropJob(r)
		failed := p.showFailure(r, f, err)
		why := f.Problem
		if code := p.fillFromView(r, p.quarantineContent, f); code != http.StatusOK {
			return code
		}
		if err != nil {
			f.Problem = why
			return failed
		}
		if page, ok := f.Content.(*quarantinePage); ok {
			page.Done = done
		}
		return http.StatusOK
	}), maxQuarantineForm)
}

// retryOrDropJob retries or drops the job that a form names, and returns what was done.
func (p *Pages) retryOrDropJob(r *http.Request) (done string, err error) {
	if err := r.ParseForm(); err != nil {
		return "", badRequest("The form cannot be read: %v.", err)
	}
	if err := checkForm(r); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(r.Context(), readPatience)
	defer cancel()
	form := r.PostForm
	id, source := form.Get("id"), []string{form.Get("agent"), form.Get("type"), form.Get("label")}
	for i := range source {
		source[i] = cmp.Or(source[i], "-") // as /v1 takes what is empty
	}
	switch do := form.Get("do"); do {
	case "retry":
		answer, err := p.V1.RetryQuarantined(ctx, source[0], source[1], source[2], id)
		if err != nil {
			return "", fmt.Errorf("retry job %s: %w", id, err)
		}
		return "Job " + id + ": " + answer.Message + ".", nil
	case "drop":
		if err := p.V1.DropQuarantined(ctx, source[0], source[1], source[2], id); err != nil {
			return "", fmt.Errorf("drop job %s: %w", id, err)
		}
		return "Job " + id + " is dropped; its usage is not counted.", nil
	default:
		return "", badRequest("Invalid order %q: use retry or drop.", do)
	}
}

// rawShown bounds the raw input in the page.
const rawShown = 4096

func quarantinedOf(q *store.Quarantined, instead string) quarantined {
	raw, cut := validText(q.Raw, rawShown)
	job := v1.Quarantined{
		Agent: q.Source.Agent, SourceType: q.Source.Type, SourceLabel: q.Source.Label, ID: q.ID, Reason: q.Reason, Message: q.Message, RecordID: q.RecordID,
		First: v1.Stamp(q.First), Last: v1.Stamp(q.Last), Count: q.Count, Truncated: cut || q.Truncated, Instead: instead, Raw: raw,
	}
	return quarantined{job, view.QuarantinedNotes(&job)}
}

// validText is the beginning of raw as valid text.
func validText(raw []byte, limit int) (text string, cut bool) {
	if len(raw) > limit {
		raw, cut = raw[:limit], true
	}
	return strings.ToValidUTF8(string(raw), string(utf8.RuneError)), cut
}

// conflictsPage is what the conflicts page shows.
type conflictsPage struct {
	Tabs      []tab
	Conflicts shownTable
	Waiting   shownTable // stops without a record
}

func (p *Pages) conflictsContent(r *http.Request, v *access.View) (any, error) {
	page := &conflictsPage{}
	var err error
	if page.Tabs, err = agentTabs(v, "conflicts"); err != nil {
		return nil, err
	}
	conflicts, err := p.V1.Conflicts(r.Context(), nil)
	if err != nil {
		return nil, err
	}
	page.Conflicts = p.showList(view.Conflicts(conflicts), maxListed, "/v1/conflicts?format=csv")
	if v.Principal().Rows.All() { // a stop says nothing by which it could be shown to some
		waiting, err := p.V1.Waiting(r.Context(), nil)
		if err != nil {
			return nil, err
		}
		page.Waiting = p.showList(view.Waiting(waiting), maxListed, "/v1/waiting?format=csv")
	}
	return page, nil
}
