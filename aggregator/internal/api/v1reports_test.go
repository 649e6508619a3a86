package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestTheCatalogueListsEveryReportWithWhatItTakes(t *testing.T) {
	rg := newRig(t)
	var list struct{ Reports []report.Entry }
	rg.get("/v1/reports", &list)
	var names []string
	for _, e := range list.Reports {
		names = append(names, e.Name)
		if e.About == "" || e.Param("period") == nil && e.Param("at") == nil {
			t.Errorf("%+v", e)
		}
	}
	for _, want := range []string{"usage", "subscription", "utilization"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
	if a := rg.do("GET", "/v1/reports?report=usage", ""); a.status != http.StatusBadRequest {
		t.Error(a)
	}
}

func TestAReportIsSentInEachForm(t *testing.T) {
	rg := newRig(t, withDirectory(t), noon("2026-04-10T12:00:00Z"))
	march(rg)
	var d report.Document
	rg.get("/v1/reports/usage?period=2026-03&period=last-month&by=user_id&measure=Cores&where[group_id]=atlas", &d)
	if len(d.Periods) != 2 || d.Subject != "group_id atlas" || len(d.Tables) != 1 || d.Tables[0].Totals[1].String() != "3.000278" {
		t.Errorf("%+v", d)
	}
	for query, want := range map[string][2]string{
		"usage?period=2026-03&by=user_id&measure=Cores&where=group_id=atlas&format=csv": {"text/csv; charset=utf-8", "user_id,Cores\nbob,3\nalice,0.000278\n"},
		"usage?period=2026-03&format=html":                                              {"text/html; charset=utf-8", "<h1>Usage by group_id</h1>"},
		"usage?period=2026-03&format=xlsx&download=1":                                   {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xl/worksheets/sheet2.xml"},
		"subscription?period=2026-03&format=html&download=1":                            {"text/html; charset=utf-8", "sagan"},
		"subscription?period=2026-03":                                                   {"application/json", `"report": "subscription"`},
		"usage?period=2026-03&period=&by=&top=&format=json&consistency=stale":           {"application/json", `"report": "usage"`},
	} {
		a := rg.do("GET", "/v1/reports/"+query, "")
		if a.status != http.StatusOK || a.header.Get("Content-Type") != want[0] || !strings.Contains(a.body, want[1]) {
			t.Errorf("%s: %v", query, a)
		}
		if got, want := a.header.Get("Content-Disposition"), regexp.MustCompile(`^attachment; filename="bursar-(subscription-2026-04-10.html|usage-2026-04-10.xlsx)"$`); want.MatchString(got) != strings.Contains(query, "download=1") {
			t.Errorf("%s: %q", query, got)
		}
	}
}

func TestAReportOfHTMLMayUseItsOwnStyleAndNothingElse(t *testing.T) {
	rg := newRig(t)
	rg.add(`{"record_id":"x","meta":{"group_id":["<script>alert(1)</script><style>a{}</style>"]},"components":[{"name":"Cores","amount":1,"scores":[]}],"start_time":"2026-03-02T00:00:00Z","stop_time":"2026-03-02T01:00:00Z"}`)
	a := rg.do("GET", "/v1/reports/usage?period=2026-03&format=html", "")
	_, rest, _ := strings.Cut(a.body, "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	if got := a.header.Get("Content-Security-Policy"); a.status != http.StatusOK || len(style) < 100 || got != want || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("policy %q, want %q", got, want)
	}
	if strings.Contains(a.body, " style=") || strings.Contains(a.body, "<script") || !strings.Contains(a.body, "&lt;script&gt;") {
		t.Error(a.body)
	}
}

func TestAReportThatCannotBeSaysWhyAndNamesWhatIsNear(t *testing.T) {
	rg := newRig(t, noon("2026-04-10T12:00:00Z"))
	march(rg)
	for query, want := range map[string]struct {
		status int
		says   string
	}{
		"usgae":             {404, `did you mean \"usage\"?`},
		"usage?period=2031": {404, "no record ran in 2031"},
		"usage?period=2026-03&where[group_id]=atals": {404, `did you mean \"atlas\"?`},
		"usage?period=2026-03&where=user_id=nobody":  {404, "there are alice, bob, carol, dave"},
		"subscription?period=2026-03":                {400, "service units are not configured"},
		"utilization?period=2026-03":                 {400, "no capacity configured or reported"},
		"usage?period=lately":                        {400, `invalid window \"lately\"`},
		"usage?period=2026-03&by=grup":               {400, `did you mean \"group_id\"?`},
		"usage?period=2026-03&zone=Mars":             {400, "Mars"},
		"usage?perod=2026-03":                        {400, `did you mean \"period\"?`},
		"usage?period=1&period=2&period=3":           {400, "at most 2"},
		"usage?format=pdf":                           {400, "json, csv, html, xlsx"},
		"usage?format=csv&format=html":               {400, "json, csv, html"},
		"usage?download=yes":                         {400, "download"},
		"usage?period=%zz":                           {400, "invalid URL escape"},
		"usage?consistency=some":                     {400, "consistency"},
	} {
		if a := rg.do("GET", "/v1/reports/"+query, ""); a.status != want.status || !strings.Contains(a.body, want.says) {
			t.Errorf("%s: %v, want %d %s", query, a, want.status, want.says)
		}
	}
}

func TestAReportHasTheRowsOfItsReaderOnly(t *testing.T) {
	own := access.Principal{Name: "cms", Rights: identity.Read | identity.Write, Rows: access.SomeRows(access.Grant{"group_id": {"cms"}})}
	rg := newRig(t, withDirectory(t), noon("2026-04-10T12:00:00Z"), func(o *api.Options, _ *store.Options) {
		o.Who = func(*http.Request) access.Principal { return own }
	})
	for _, group := range []string{"atlas", "cms"} {
		rg.add(fmt.Sprintf(`{"record_id":"%s","meta":{"group_id":["%s"]},"components":[{"name":"Cores","amount":1,"scores":[]}],"start_time":"2026-03-02T00:00:00Z","stop_time":"2026-03-02T01:00:00Z"}`, group, group))
	}
	var d report.Document
	rg.get("/v1/reports/usage?period=2026-03", &d)
	if text, err := json.Marshal(d); err != nil || strings.Contains(string(text), "atlas") || !strings.Contains(string(text), "cms") {
		t.Errorf("%s %v", text, err)
	}
	for query, status := range map[string]int{"subscription?period=2026-03": 403, "usage?period=2026-03&where[group_id]=atlas": 404} {
		if a := rg.do("GET", "/v1/reports/"+query, ""); a.status != status || strings.Contains(a.body, `"made"`) || strings.Contains(a.body, "sagan") {
			t.Errorf("%s: %v, want %d", query, a, status)
		}
	}
}
