package web_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/identity"
)

const noon = int64(1_772_366_400_000_000) // 2026-03-01 12:00

// someActions are one action in each of a few states, with runs of the first.
func someActions() *apitest.Actions {
	run := func(n uint64) *action.Run {
		return &action.Run{
			Number: n, Why: action.WhyOrder, By: "<me>", Arguments: map[string]string{"month": "2026-02"}, Version: "1.2", Planned: noon, Index: 77, Ended: noon + 1e6,
			Effects: 2, Counts: action.Counts{Done: 1, Unknown: 1}, Notes: []string{"a <note>"},
		}
	}
	mark := &action.Mark{By: "anna", At: noon, Why: "<maintenance>"}
	attempts := []action.Attempt{{Number: 1, Node: "agg2", Fence: 4, Begun: noon, Ended: noon, Outcome: "retry", Message: "first"}, {Number: 2, Node: "agg1", Begun: noon, Ended: noon, Outcome: action.Unknown, Message: "no <answer>"}}
	return &apitest.Actions{
		Statuses: []action.Status{
			{Name: action.Name{Type: "apel", Label: "site"}, Configured: true, Schedule: "@daily", Zone: "Europe/Berlin", RunOn: "head1", Next: noon + 3600e6, Stored: action.State{Doubtful: []uint64{3}, LastSuccess: noon}, Last: run(3)},
			{Name: action.Name{Type: "exec", Label: "paused"}, Configured: true, Schedule: "1h", Stored: action.State{Paused: mark}},
			{Name: action.Name{Type: "exec", Label: "disabled"}, Configured: true, Stored: action.State{Disabled: mark}},
			{Name: action.Name{Type: "exec", Label: "failing"}, Configured: true, Schedule: "@change 5m", Stored: action.State{Problem: mark}},
			{Name: action.Name{Type: "exec", Label: "gone"}},
		},
		Runs: []*action.Run{run(3), run(2), run(1)},
		Effects: []action.Effect{
			{Name: "message-1", Summary: "12 jobs of <atlas>", State: action.Done, Size: 2048, Tries: 1, Attempts: attempts[:1]},
			{Name: "message-2", State: action.Unknown, Size: 5, Tries: 2, Attempts: attempts},
		},
		Bytes: []byte("<payload>\xff"), Shown: "as it is <shown>",
		Planned: &sdk.Plan{Effects: []sdk.Effect{{Name: "message-9", Summary: "would send", Payload: []byte("12345"), Show: "all <of it>"}}},
	}
}

// form sends a form to a page, with the token of its browser.
func (s *site) form(p access.Principal, path string, form url.Values, header ...string) (int, string) {
	s.t.Helper()
	sent := url.Values{"token": {"t0"}}
	maps.Copy(sent, form)
	r := httptest.NewRequestWithContext(access.With(s.t.Context(), p), http.MethodPost, path, strings.NewReader(sent.Encode()))
	r.AddCookie(&http.Cookie{Name: access.CookieName("form", r.Host), Value: "t0"})
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	text, err := io.ReadAll(w.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return w.Code, string(text)
}

func TestActionsAreListedWithHowTheyAreAndWhatToDo(t *testing.T) {
	s := newSite(t)
	if code, body, _ := s.get("/ui/actions"); code != http.StatusOK || !strings.Contains(body, "No actions configured.") {
		t.Errorf("without actions: %d\n%s", code, body)
	}
	s.Options.Actions = someActions()
	code, body, _ := s.get("/ui/actions")
	for _, want := range []string{
		`<a href="/ui/actions/apel/site">apel/site</a>`, `<span class="badge warn">unknown</span>`, "@daily Europe/Berlin", "agent head1", "2026-03-01 13:00:00",
		`href="/ui/actions/apel/site/runs/3"`, "1 done, 1 unknown", "not while it is paused", "when records have changed", "the leader",
		"has been paused by anna since 2026-03-01 12:00:00: &lt;maintenance&gt;", "bursar actions resume exec/paused", "bursar actions resume exec/disabled", "has had no plan since",
		"never: not configured", `href="/v1/actions?format=csv"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	if code != http.StatusOK || t.Failed() {
		t.Errorf("%d\n%s", code, body)
	}
}

func TestAnActionShowsItsRunsAndARunItsEffects(t *testing.T) {
	s := newSite(t)
	s.Options.Actions = someActions()
	for path, all := range map[string][]string{
		"/ui/actions/apel/site": {
			"<h1>Action apel/site</h1>", "a &lt;note&gt;", "&lt;me&gt;", "month=2026-02", `href="/ui/actions/apel/site/runs/2"`, "Older runs are not kept.", "bursar actions run apel/site",
			`href="/v1/actions/apel/site/runs?format=csv&amp;limit=10000"`, `action="/ui/actions/apel/site/plan"`, "<dt>Plugin version</dt><dd>1.2</dd>",
		},
		"/ui/actions/apel/site?runs=2": {`href="/ui/actions/apel/site?runs=8">More runs`},
		"/ui/actions/exec/paused":      {"bursar actions resume exec/paused", "not while it is paused"},
		"/ui/actions/apel/site/runs/3": {
			"<h1>Run 3 of apel/site</h1>", "12 jobs of &lt;atlas&gt;", "no &lt;answer&gt;", "bursar actions retry apel/site 3 1", "bursar actions skip apel/site 3 1", "All attempts", ">first<",
			`href="/ui/actions/apel/site/runs/3/effects/1"`, "2.0\u202fKiB",
		},
		"/ui/actions/apel/site/runs/3/effects/1": {"as it is &lt;shown&gt;", "&lt;payload&gt;\uFFFD", "some are no text", "bursar actions payload apel/site 3 1"},
	} {
		code, body, _ := s.get(path)
		for _, want := range all {
			if code != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s: %d, no %q in\n%s", path, code, want, body)
			}
		}
	}
	if _, body, _ := s.get("/ui/actions/apel/site/runs/3"); strings.Contains(body, "retry apel/site 3 0") {
		t.Error("what is done is to be tried again")
	}
	for path, want := range map[string]string{
		"/ui/actions/apel/other": "There is no action apel/other. There are: apel/site,", "/ui/actions/apel/site/runs/9": "has no run 9",
		"/ui/actions/apel/site/runs/x": "use its number", "/ui/actions/apel/site/runs/3/effects/x": "use its number",
	} {
		if code, body, _ := s.get(path); code != http.StatusNotFound || !strings.Contains(body, want) {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
	if code, _, _ := s.get("/ui/actions/apel/site?runs=none"); code != http.StatusBadRequest {
		t.Error(code)
	}
}

func TestAPlanIsShownToOperatorsAndDoesNothing(t *testing.T) {
	s := newSite(t)
	actions := someActions()
	s.Options.Actions = actions
	const path = "/ui/actions/apel/site/plan"
	code, body := s.form(access.Daemon(), path, url.Values{"arguments": {"month=2026-02\r\n\r\n user=a b=c \r\n"}})
	for _, want := range []string{"message-9", "would send", "all &lt;of it&gt;", "Nothing was done.", "bursar actions plan apel/site month=2026-02 &#39;user=a b=c&#39;"} {
		if code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d, no %q in\n%s", code, want, body)
		}
	}
	if got := fmt.Sprint(actions.Asked()); got != "[plan apel/site map[month:2026-02 user:a b=c]]" {
		t.Error(got)
	}
	if code, body := s.form(access.Daemon(), path, url.Values{"arguments": {"month"}}); code != http.StatusBadRequest || !strings.Contains(body, "is not NAME=VALUE") {
		t.Errorf("%d\n%s", code, body)
	}
	if code, body := s.form(access.Daemon(), path, url.Values{"arguments": {"month=never"}}); code != http.StatusUnprocessableEntity || !strings.Contains(body, "never is no month") || !strings.Contains(body, ">month=never</textarea>") {
		t.Errorf("%d\n%s", code, body)
	}
	made := len(actions.Asked())
	for _, token := range []string{"", "t1", "t00"} {
		if code, body := s.form(access.Daemon(), path, url.Values{"token": {token}}); code != http.StatusBadRequest || len(actions.Asked()) != made || !strings.Contains(body, `name="token" value="t0"`) {
			t.Errorf("a plan by the token %q: %d\n%s", token, code, body)
		}
	}
	monitor := access.Principal{Name: "mon", Rights: identity.Monitor}
	if code, body := s.form(monitor, path, nil); code != http.StatusForbidden || strings.Contains(body, "message-9") {
		t.Errorf("%d\n%s", code, body)
	}
	some := access.Principal{Name: "pi", Rights: identity.Operate | identity.Read | identity.Monitor, Rows: access.SomeRows(access.Grant{"group_id": {"atlas"}})}
	if code, body := s.form(some, path, nil); code != http.StatusForbidden || strings.Contains(body, "message-9") || !strings.Contains(body, access.ErrRows.Error()) || len(actions.Asked()) != made {
		t.Errorf("a plan is of all records, and was made for who sees some: %d\n%s", code, body)
	}
	if _, body := s.as(some, "/ui/actions/apel/site"); strings.Contains(body, "<form") {
		t.Errorf("who sees some of the records is offered a plan:\n%s", body)
	}
	if code, body := s.as(monitor, "/ui/actions/apel/site"); code != http.StatusOK || strings.Contains(body, "<form") || !strings.Contains(body, "bursar actions plan apel/site -v") {
		t.Errorf("%d\n%s", code, body)
	}
	if code, body := s.as(monitor, "/ui/actions/apel/site/runs/3"); code != http.StatusOK || strings.Contains(body, "/effects/1\"") {
		t.Errorf("%d\n%s", code, body)
	}
	reader := access.Principal{Name: "pi", Rights: identity.Read | identity.Monitor, Rows: some.Rows}
	for path, want := range map[string]string{"/ui/actions/apel/site": "/runs/3\"", "/ui/actions/apel/site/runs/3": "2 effects, shown only to readers of all records."} {
		code, body := s.as(reader, path)
		for _, name := range []string{"a &lt;note&gt;", "2026-02", "12 jobs of", "no &lt;answer&gt;"} {
			if strings.Contains(body, name) {
				t.Errorf("%s: who sees some of the records reads %s:\n%s", path, name, body)
			}
		}
		if code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, no %q in\n%s", path, code, want, body)
		}
	}
}
