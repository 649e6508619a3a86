package web_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestTheListOfReportsLeadsToEachOfThem(t *testing.T) {
	s := newSite(t)
	code, body, _ := s.get("/ui/reports")
	for _, e := range report.Catalogue() {
		if !strings.Contains(body, `href="/ui/reports?report=`+e.Name+`"`) || !strings.Contains(body, html.EscapeString(e.About)) {
			t.Errorf("%s is not in the list", e.Name)
		}
	}
	if code != 200 || !strings.Contains(body, `aria-current="page">Reports`) {
		t.Error(code)
	}
}

func TestAReportInThePageHasItsTablesChartsAndFiles(t *testing.T) {
	s := newSite(t)
	s.Post(run("r1", 0, "alice"), run("r2", 0, "<bob>"))
	code, body, _ := s.get("/ui/reports?report=usage&period=2026-01&period=this-year&by=user_id&where=site_id%3Dhere")
	for _, want := range []string{
		"Usage by user_id – site_id here", "January 2026", "2026 to date", `<small>hours, January 2026</small>`, `data-label="Cores, hours, January 2026" class="num" title="320970"`, "320\u202f970",
		"<svg", `class="figure"`, "&lt;bob&gt;", "Total", "is split to the microsecond",
		`value="user_id"`, `value="site_id=here"`, `<label title="The key that gives the lines.">Group by`, `list="words-by"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
	if code != 200 || strings.Contains(body, "<bob>") {
		t.Error(code)
	}
	for text, typ := range map[string]string{"Download CSV": "text/csv; charset=utf-8", "HTML file to forward": "text/html; charset=utf-8", "For print": "text/html; charset=utf-8", "JSON": "application/json"} {
		m := regexp.MustCompile(`<a href="([^"]*)">` + text).FindStringSubmatch(body)
		if m == nil {
			t.Errorf("no link to %s", text)
			continue
		}
		code, file, head := s.get(html.UnescapeString(m[1]))
		if code != 200 || head.Get("Content-Type") != typ || !strings.Contains(file, "alice") {
			t.Errorf("%s: %d %s", m[1], code, file)
		}
	}
}

func TestAReportWhosePeriodFollowsTheClockHasALinkThatDoesNot(t *testing.T) {
	s := newSite(t)
	const shift = 58 * 24 * 3600 * 1_000_000 // to the last of February
	r := run("r1", 0, "alice")
	r.Start, r.Stop = r.Start+shift, r.Stop+shift
	s.Post(r)
	for query, want := range map[string]string{
		"":                                       "by=user_id&amp;period=2026-03&amp;period=2026&amp;report=usage",
		"&period=today&period=this-week":         "by=user_id&amp;period=2026-03-01&amp;period=2026-W09&amp;report=usage",
		"&period=this-quarter&period=last-month": "by=user_id&amp;period=2026-Q1&amp;period=2026-02&amp;report=usage",
		"&period=2026-03":                        "",
		"&period=30d":                            "",
	} {
		_, body, _ := s.get("/ui/reports?report=usage&by=user_id" + query)
		m := regexp.MustCompile(`<a href="/ui/reports\?([^"]*)" title="It shows`).FindStringSubmatch(body)
		got := ""
		if m != nil {
			got = m[1]
		}
		if got != want || !strings.Contains(body, "alice") && !strings.Contains(body, "<svg") {
			t.Errorf("%q: %q, want %q\n%s", query, got, want, body)
		}
	}
}

func TestAReportThatCannotBeIsNoEmptyPage(t *testing.T) {
	s := newSite(t)
	s.Post(run("r1", 0, "alice"))
	for query, want := range map[string]struct {
		code int
		says string
	}{
		"report=usgae":                        {404, `did you mean "usage"?`},
		"report=usage&by=user_id&period=2031": {404, "no record ran in 2031"},
		"report=usage&by=user_id&period=2026-01&where[user_id]=alcie": {404, `did you mean "alice"?`},
		"report=usage&by=user_id&period=lately":                       {400, `nvalid window "lately"`},
		"report=usage&perod=2026":                                     {400, `did you mean "period"?`},
		"report=subscription&period=2026-01":                          {400, "service units are not configured"},
		"report=utilization&period=2026-01":                           {400, "no capacity configured or reported"},
		"report=usage&period=2026-01&by=" + url.QueryEscape("<b>"):    {400, "the keys are"},
	} {
		code, body, _ := s.get("/ui/reports?" + query)
		if code != want.code || !strings.Contains(html.UnescapeString(body), want.says) || !strings.Contains(body, `role="alert"`) || strings.Contains(body, "<svg") {
			t.Errorf("%s: %d\n%s\nwant %d %s", query, code, body, want.code, want.says)
		}
		if !strings.HasPrefix(query, "report=usg") && !strings.Contains(body, "<form") {
			t.Errorf("%s: there is no form to mend it", query)
		}
	}
}

func TestAReportHasTheRowsOfItsReader(t *testing.T) {
	s := newSite(t)
	s.Post(run("r1", 0, "alice"), run("r2", 0, "bob"))
	own := access.Principal{Name: "bob", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"user_id": {"bob"}})}
	code, body, _ := s.getAs(own, "/ui/reports?report=usage&period=2026-01&by=user_id")
	if code != 200 || strings.Contains(body, "alice") || !strings.Contains(body, "<td data-label=\"user_id\">bob") {
		t.Errorf("%d\n%s", code, body)
	}
	if code, body, _ := s.getAs(own, "/ui/reports?report=subscription"); code != 403 {
		t.Errorf("%d\n%s", code, body)
	}
}

func TestFieldsThatWereLeftEmptyAreNotInTheAddress(t *testing.T) {
	s := newSite(t)
	code, _, head := s.get("/ui/reports?report=usage&period=2026-01&period=&by=&where=&where[user_id]=&zone=UTC")
	if want := "/ui/reports?period=2026-01&report=usage&where%5Buser_id%5D=&zone=UTC"; code != http.StatusFound || head.Get("Location") != want {
		t.Errorf("%d %s, want %s", code, head.Get("Location"), want)
	}
}
