package web_test

import (
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestViews_OfTheConfiguration_AreOnTheirPages(t *testing.T) {
	s := filled(t)
	s.pages.Views = func() []access.SavedView {
		return []access.SavedView{{Name: "Atlas <by> user", Address: "/ui/usage?by=user_id&where[group_id]=atlas&window=2026-02"}, {Name: "Running", Address: "/ui/records?runs=running"}}
	}
	const usage = `<a class="chip" href="/ui/usage?by=user_id&amp;where[group_id]=atlas&amp;window=2026-02"`
	for path, want := range map[string]string{
		"/ui/usage": usage + `>Atlas &lt;by&gt; user</a>`,
		"/ui/usage?by=user_id&where%5Bgroup_id%5D=atlas&window=2026-02": usage + ` aria-current="page">`,
		"/ui/records": `<a class="chip" href="/ui/records?runs=running">Running</a>`,
	} {
		code, body, _ := s.getAs(reader(identity.Read), path)
		_, nav, _ := strings.Cut(body, `<nav class="chips" id="views"`)
		nav, _, _ = strings.Cut(nav, "</nav>")
		if code != http.StatusOK || !strings.Contains(nav, want) || strings.Count(nav, "<a ") != 1 {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
}

func TestUsage_HowToKeepAView_IsShownToOperators(t *testing.T) {
	s := filled(t)
	keep := func(who access.Principal, path string) string {
		_, body, _ := s.getAs(who, path)
		_, body, _ = strings.Cut(body, `<details id="keep">`)
		body, _, _ = strings.Cut(body, "</details>")
		return html.UnescapeString(body)
	}
	operator := reader(identity.Read | identity.Operate)
	const path = "/ui/usage?by=user_id&measure=Cores&top=20&window=7d&where%5Bsite_id%5D=nemo"
	const view = "view \"Cores by user\" {\n  address = \"/ui/usage?by=user_id&measure=Cores&top=20&where%5Bsite_id%5D=nemo&window=7d\"\n}\n"
	const mail = `action "report" "cores-by-user" {
  config {
    report = "usage"
    period = ["last-month"]
    query  = { "by" = "user_id", "measure" = "Cores", "order" = "Cores", "top" = "20" }
    where  = { "site_id" = "nemo" }
    to     = ["me@example.org"]
    mail {
      from = "accounting@example.org"
      host = "localhost"
      tls  = "none"
    }
  }
}
`
	if text := keep(operator, path); !strings.Contains(text, view) || strings.Contains(text, "action ") {
		t.Errorf("without an action that mails: %s", text)
	}
	s.Options.Actions = &apitest.Actions{Statuses: []action.Status{{Name: action.Name{Type: "report", Label: "monthly"}, Configured: true}}}
	if text := keep(operator, path); !strings.Contains(text, view) || !strings.Contains(text, mail) || !strings.Contains(text, "of report/monthly in") {
		t.Errorf("with one: %s", text)
	}
	if text := keep(operator, "/ui/records?user=bob"); !strings.Contains(text, `address = "/ui/records?user=bob"`) {
		t.Errorf("of records: %s", text)
	}
	for _, path := range []string{path, "/ui/records"} {
		if text := keep(reader(identity.Read), path); text != "" {
			t.Errorf("%s: who only reads is shown %s", path, text)
		}
	}
}
