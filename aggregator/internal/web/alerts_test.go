package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
)

func TestAlerts_WithoutRules_SaysHowToTurnThemOn(t *testing.T) {
	s := newSite(t)
	for range 2 {
		if code, body, _ := s.get("/ui/alerts"); code != http.StatusOK || !strings.Contains(body, "No rules are watched.") {
			t.Errorf("%d\n%s", code, body)
		}
		if _, body, _ := s.get("/"); strings.Contains(body, "/ui/alerts\"><b") {
			t.Error("the overview has a number of alerts")
		}
		s.Options.Actions = someActions()
	}
	s.Options.Actions = &apitest.Actions{Statuses: apitest.Watching().Statuses}
	if _, body, _ := s.get("/ui/alerts"); !strings.Contains(body, "No alert fires.") {
		t.Error(body)
	}
}

func TestAlerts_Page_ShowsWhatFiresSinceWhenWhyAndWhatToDo(t *testing.T) {
	s := newSite(t)
	s.Options.Actions = apitest.Watching()
	code, body, _ := s.get("/ui/alerts")
	for _, want := range []string{
		`<span class="badge bad">critical</span>`, "budget atlas is exhausted", `<a href="https://example.org/#budget">https://example.org/#budget</a>`,
		`<span class="badge warn">firing</span>`, "the backup of agg1 &lt;fails&gt;", "<code>df -h</code>", "2026-03-01 09:00:00",
		`<span class="badge dim">silenced</span>`, "<code>k3v9x2m4qa</code>", "rule=ga*", "anna", "&lt;known&gt;", `<span class="badge dim">pending</span>`,
		"mail ops to=a@example.org has taken no messages", "550 &lt;no&gt;", "Rule money of alert/site has failed since", `href="/v1/alerts?format=csv"`, `aria-current="page">Alerts`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%d: the page lacks %s", code, want)
		}
	}
	if strings.Contains(body, "it is over") || strings.Contains(body, "webhook chat") || strings.Index(body, "budget-100") > strings.Index(body, "backup") {
		t.Error(body)
	}
	if _, body, _ = s.get("/"); !strings.Contains(body, `<a class="tile warn" href="/ui/alerts"><b>2</b><span>alerts fire</span><i>budget-100 atlas</i><i>1 silenced</i></a>`) {
		t.Error(body)
	}
}
