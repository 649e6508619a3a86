package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
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
		"Usage by user_id – site_id here", "January 2026", "2026 to date", `<small>core-hours, January 2026</small>`, `data-label="Cores, core-hours, January 2026" class="num" title="320970"`, "320\u202f970",
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
		"":                                       "by=user_id&amp;period=2026-03&amp;period=previous&amp;report=usage",
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
	if code != 200 || strings.Contains(body, "alice") || !regexp.MustCompile(`<td data-label="user_id"><a href="[^"]*">bob<`).MatchString(body) {
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

func TestReports_OnePeriod_IsComparedWithTheOneBefore(t *testing.T) {
	s := newSite(t)
	february := run("r2", 0, "alice")
	february.Start, february.Stop = february.Start+31*86400*record.Second, february.Stop+31*86400*record.Second
	s.Post(run("r1", 0, "alice"), february)
	for query, want := range map[string]string{
		"":                               "<b>March 2026 to date</b>: 2026-03-01 00:00 to 2026-03-01 12:00; <b>2026-02-01 00:00 to 2026-02-01 12:00</b>",
		"&period=2026-01":                "<b>January 2026</b>: 2026-01-01 00:00 to 2026-02-01 00:00; <b>December 2025</b>",
		"&period=2026-01&period=none":    "<b>January 2026</b>: 2026-01-01 00:00 to 2026-02-01 00:00 UTC",
		"&period=2026-01-01..2026-01-07": "<b>2026-01-01 to 2026-01-07</b>: 2026-01-01 00:00 to 2026-01-08 00:00; <b>2025-12-25 to 2025-12-31</b>",
		"&period=2026&period=2026-01&zone=Etc/GMT-1": "<b>2026</b>: 2026-01-01 00:00 to 2027-01-01 00:00; <b>January 2026</b>",
	} {
		if _, body, _ := s.get("/ui/reports?report=usage&by=user_id" + query); !strings.Contains(body, want) {
			t.Errorf("%q has no %q\n%s", query, want, regexp.MustCompile(`(?s)<article.*?</p>|role="alert.*`).FindString(body))
		}
	}
}

func TestReports_DatesOfTheForm_AreThePeriod(t *testing.T) {
	s := newSite(t)
	for query, want := range map[string]string{
		"period=this-month&from=2026-01-01&until=2026-01-31&period=previous": "period=2026-01-01..2026-01-31&period=previous&report=usage",
		"period=this-month&from=2026-01-01&until=":                           "period=2026-01-01..today&report=usage",
		"period=this-month&from=&until=":                                     "period=this-month&report=usage",
	} {
		code, _, head := s.get("/ui/reports?report=usage&" + query)
		if got := head.Get("Location"); code != http.StatusFound || got != "/ui/reports?"+want {
			t.Errorf("%s: %d %s, want %s", query, code, got, want)
		}
	}
}

func TestReports_Fields_OfferTheValuesOfTheReader(t *testing.T) {
	s := newSite(t)
	const shift = 40 * 24 * 3600 * 1_000_000
	a, b := run("r1", 0, "alice"), run("r2", 0, "bob")
	a.Start, a.Stop, b.Start, b.Stop = a.Start+shift, a.Stop+shift, b.Start+shift, b.Stop+shift
	s.Post(a, b)
	own := access.Principal{Name: "bob", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"user_id": {"bob"}})}
	for _, path := range []string{"/ui/reports?report=usage", "/ui/reports?report=person&user=bob"} {
		_, all, _ := s.get(path)
		_, some, _ := s.getAs(own, path)
		offer := map[bool]string{true: `<option value="alice">`, false: `<option value="user_id=alice">`}[strings.Contains(path, "person")]
		if !strings.Contains(all, offer) || strings.Contains(some, "alice") || !strings.Contains(some, "bob\">") {
			t.Errorf("%s: %t %t", path, strings.Contains(all, offer), strings.Contains(some, "alice"))
		}
	}
}

func TestReports_LongTables_ComeInPages(t *testing.T) {
	s := newSite(t)
	var list []record.Record
	for i := range 230 {
		list = append(list, run(fmt.Sprintf("r%d", i), 0, fmt.Sprintf("user%03d", i)))
	}
	s.Post(list...)
	const path = "/ui/reports?report=usage&period=2026-01&by=user_id&top=0"
	seen, later := map[string]bool{}, regexp.MustCompile(`href="([^"]*)">More rows`)
	pages := 0
	for next := path; next != ""; pages++ {
		code, body, _ := s.get(next)
		if code != http.StatusOK {
			t.Fatalf("%s: %d", next, code)
		}
		for _, m := range regexp.MustCompile(`<td data-label="user_id"><a [^>]*>(user\d+)<`).FindAllStringSubmatch(body, -1) {
			seen[m[1]] = true
		}
		next = ""
		if m := later.FindStringSubmatch(body); m != nil {
			next = html.UnescapeString(m[1])
		}
	}
	if pages != 3 || len(seen) != 230 {
		t.Errorf("%d pages with %d of 230 users", pages, len(seen))
	}
	for query, want := range map[string]int{"&page=0": 400, "&page=x": 400, "&page=99": 200} {
		if code, _, _ := s.get(path + query); code != want {
			t.Errorf("%s: %d", query, code)
		}
	}
}
