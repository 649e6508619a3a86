package api_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// sheetOf is an answer of /v1/usage.
type sheetOf struct {
	Index         uint64
	Open, Records int
	Several       int
	Edges         []string
	Labels        []string
	Groups        []struct {
		Values []*string
		Others int
	}
	Measures []measureOf
	Complete struct {
		CompleteTo *string `json:"complete_to"`
		Limited    bool
		Silent     int
		Sources    []struct {
			Source string
			Silent bool
		}
		Gaps        []struct{ Source, Reason string }
		Quarantined *int
	}
}

type measureOf struct {
	Name     string
	Kind     string
	Unit     *string
	Values   []*json.Number
	Totals   []*json.Number
	Total    *json.Number
	Lacking  *struct{ Total json.Number }
	Unpriced []struct {
		Component string
		Total     json.Number
	}
	Without  *int
	Compared *struct{ Before, Difference, Relative []*json.Number }
}

func numbers(list []*json.Number) string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = "-"
		if n != nil {
			out[i] = n.String()
		}
	}
	return strings.Join(out, " ")
}

// rows are the lines of an answer: groups, then measures with their values.
func (s *sheetOf) rows() (out []string) {
	line := "groups"
	for _, g := range s.Groups {
		line += " "
		for i, v := range g.Values {
			if i > 0 {
				line += "/"
			}
			if v == nil {
				line += "-"
			} else {
				line += *v
			}
		}
		if g.Others > 0 {
			line += fmt.Sprintf("+%d", g.Others)
		}
	}
	out = append(out, line)
	for _, m := range s.Measures {
		out = append(out, m.Name+": "+numbers(m.Values))
	}
	return out
}

// march is a site's month: two groups, one of them without a score.
func march(rg *rig) {
	job := func(id, group, user, start, stop string, cores int, scores string) string {
		meta := ""
		if group != "" {
			meta = fmt.Sprintf(`"group_id":["%s"],`, strings.ReplaceAll(group, "|", `","`))
		}
		return fmt.Sprintf(`{"record_id":"%s","meta":{%s"user_id":["%s"]},"components":[{"name":"Cores","amount":%d,"scores":[%s]},{"name":"Memory","amount":100,"scores":[]}],"start_time":"%s","stop_time":"%s"}`,
			id, meta, user, cores, scores, start, stop)
	}
	hs := `{"name":"HS","value":2.5}`
	rg.add(
		job("a1", "atlas", "alice", "2026-02-28T23:59:59.5Z", "2026-03-01T00:00:00.25Z", 4, hs), // 1 core second in March
		job("a2", "atlas", "bob", "2026-03-10T00:00:00Z", "2026-03-10T01:00:00Z", 1, hs),
		job("a3", "atlas|cms", "bob", "2026-03-31T23:00:00Z", "2026-04-01T01:00:00Z", 2, ""),
		job("c1", "cms", "carol", "2026-03-10T00:00:00Z", "2026-03-10T00:00:00.000001Z", 3, hs),
		job("n1", "", "dave", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z", 1, ""),
	)
}

func noon(s string) change {
	at, err := time.Parse(time.RFC3339, s)
	return func(o *api.Options, _ *store.Options) {
		if err != nil {
			panic(err)
		}
		o.Now = func() time.Time { return at }
	}
}

func TestAMonthIsAnsweredToTheMicrosecond(t *testing.T) {
	rg := newRig(t)
	march(rg)
	var s sheetOf
	a := rg.get("/v1/usage?window=2026-03&by=group_id", &s)
	if d := cmp.Diff([]string{
		"groups - atlas cms",
		"records: 1 3 1",
		"Cores: 86400 10801 0.000003",
		"Cores*HS: 0 9002.5 0.0000075",
		"Memory: 8640000 720025 0.0001",
	}, s.rows()); d != "" {
		t.Error(d)
	}
	if s.Several != 1 || s.Index != 1 || a.header.Get("X-Bursar-Index") != "1" || a.header.Get("X-Bursar-Several") != "1" {
		t.Error(s, a)
	}
	if l := s.Measures[2].Lacking; l == nil || l.Total != "93600" {
		t.Errorf("lacking %v", l)
	}
	if s.Records != 5 || *s.Measures[1].Without != 0 || *s.Measures[2].Without != 2 || s.Measures[0].Without != nil {
		t.Error(s.Records, s.Measures)
	}
	if got := s.Measures[1].Total.String(); got != "97201.000003" {
		t.Error(got)
	}
}

func TestPartsOfAWindowAddUpToIt(t *testing.T) {
	rg := newRig(t)
	march(rg)
	for _, bucket := range []string{"hour", "day", "week", "month", "quarter", "year"} {
		for _, zone := range []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe"} {
			var whole, parts sheetOf
			query := "/v1/usage?from=2026-02&to=2026-05&by=group_id,user_id&zone=" + zone
			rg.get(query, &whole)
			rg.get(query+"&bucket="+bucket, &parts)
			for i, m := range parts.Measures {
				if d := cmp.Diff(numbers(whole.Measures[i].Values), numbers(m.Totals)); d != "" {
					t.Errorf("%s in %s: %s: %s", bucket, zone, m.Name, d)
				}
			}
		}
	}
}

func TestUsageIsAskedForInManyWays(t *testing.T) {
	rg := newRig(t, noon("2026-03-10T12:00:00Z"))
	march(rg)
	for query, want := range map[string][]string{
		"window=2026-03":                                                           {"groups ", "records: 5", "Cores: 97201.000003", "Cores*HS: 9002.5000075", "Memory: 9360025.0001"},
		"window=2026-03&unit=hour&measure=Cores":                                   {"groups ", "Cores: 27.000278"},
		"window=2026-03&measure=Cores*HS,records":                                  {"groups ", "records: 5", "Cores*HS: 9002.5000075"},
		"window=2026-03&component=Memory":                                          {"groups ", "records: 5", "Memory: 9360025.0001"},
		"window=2026-03&measure=started&measure=stopped&bucket=month":              {"groups ", "started: 4", "stopped: 4"},
		"window=today&measure=Cores":                                               {"groups ", "Cores: 3600.000003"},
		"from=2026-03-10&to=2026-03-11&measure=Cores&by=group_id&by=user_id":       {"groups atlas/bob cms/carol", "Cores: 3600 0.000003"},
		"window=2026-03&credit=stop&measure=Cores,records":                         {"groups ", "records: 4", "Cores: 90003.000003"},
		"window=2026-03&people=user_id&measure=people&by=group_id":                 {"groups - atlas cms", "people: 1 2 1"},
		"window=2026-03&meta[group_id][c][0]=cms&measure=records":                  {"groups ", "records: 2"},
		"window=2026-03&component[Cores][gte]=2&measure=records":                   {"groups ", "records: 3"},
		"window=2026-03&measure=wait,efficiency":                                   {"groups ", "wait: -", "efficiency: -"},
		"window=2026-03&by=user_id&measure=Cores&order=Cores":                      {"groups dave bob alice carol", "Cores: 86400 10800 1 0.000003"},
		"window=2026-03&by=user_id&measure=Cores,records,people&top=1&order=Cores": {"groups dave +3", "records: 1 4", "people: 1 3", "Cores: 86400 10801.000003"},
		"window=2026-03&by=group_id&measure=people&top=1":                          {"groups atlas +2", "people: 2 -"},
		"window=2026-03-29&zone=Europe/Berlin&measure=Cores":                       {"groups ", "Cores: 79200"}, // of 23 hours
		"from=2026-03-29&to=2026-03-30&measure=Cores&by=user_id":                   {"groups dave", "Cores: 86400"},
		"window=2025&measure=Cores*HS":                                             {"groups", "Cores*HS: "},
	} {
		var s sheetOf
		rg.get("/v1/usage?"+query, &s)
		if d := cmp.Diff(want, s.rows()); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
}

func TestWindowsAreCompared(t *testing.T) {
	rg := newRig(t)
	march(rg)
	var s sheetOf
	rg.get("/v1/usage?window=2026-03&compare=previous&by=group_id&measure=Cores&bucket=week", &s)
	c := s.Measures[0].Compared
	if d := cmp.Diff([]string{"0 2 -", "-"}, []string{numbers(c.Before[:2]) + " -", numbers(c.Relative[:1])}); d != "" {
		t.Error(d)
	}
	rg.get("/v1/usage?window=2026-04&compare=2026-03&by=user_id&measure=Cores,records", &s)
	if d := cmp.Diff([]string{"groups alice bob carol dave", "records: 0 1 0 0", "Cores: 0 7200 0 0"}, s.rows()); d != "" {
		t.Error(d)
	}
	c = s.Measures[1].Compared
	if d := cmp.Diff([]string{"1 10800 0.000003 86400", "-1 -3600 -0.000003 -86400", "-1 -0.3333333333333333 -1 -1"},
		[]string{numbers(c.Before), numbers(c.Difference), numbers(c.Relative)}); d != "" {
		t.Error(d)
	}
}

func TestUsageCanBeHadAsCSVAndNDJSON(t *testing.T) {
	rg := newRig(t)
	march(rg)
	a := rg.do("GET", "/v1/usage?window=2026-03&by=group_id&bucket=month&unit=hour&format=csv", "")
	table, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || a.status != 200 {
		t.Fatal(a, err)
	}
	if d := cmp.Diff([][]string{
		{"group_id", "bucket", "from", "to", "records", "Cores [hour]", "Cores*HS [hour]", "Memory [hour]"},
		{"", "2026-03", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", "1", "24", "0", "2400"},
		{"atlas", "2026-03", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", "3", "3.000278", "2.5006944444444446", "200.006944"},
		{"cms", "2026-03", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", "1", "0", "0.0000000020833333333333334", "0"},
	}, table); d != "" {
		t.Error(d)
	}
	a = rg.do("GET", "/v1/usage?from=2026-03&to=2026-05&by=user_id&bucket=month&measure=Cores&compare=previous", "", "Accept: application/x-ndjson")
	if a.status != 400 || !strings.Contains(a.body, "whole windows") {
		t.Error(a)
	}
	a = rg.do("GET", "/v1/usage?from=2026-03&to=2026-05&by=user_id&bucket=month&measure=Cores", "", "Accept: application/x-ndjson")
	lines := strings.Split(strings.TrimSpace(a.body), "\n")
	if len(lines) != 6 || !strings.HasPrefix(lines[0], `{"about":{"index":1,`) { // bob has two months
		t.Fatal(a)
	}
	for _, l := range lines {
		if !json.Valid([]byte(l)) {
			t.Error(l)
		}
	}
	if want := `{"group":{"user_id":"alice"},"others":0,"bucket":"2026-03","from":"2026-03-01T00:00:00Z","to":"2026-04-01T00:00:00Z","partial":false,"measures":{"Cores":1}}`; lines[1] != want {
		t.Errorf("got  %s\nwant %s", lines[1], want)
	}
}

func TestQuestionsThatMakeNoSenseSayWhatDoes(t *testing.T) {
	rg := newRig(t)
	march(rg)
	for query, want := range map[string]string{
		"":                                          "window=",
		"window=2026-13":                            "there is no month 13",
		"window=2026&from=2025":                     "cannot be combined",
		"to=2026":                                   "from= and to=",
		"from=2026-03-02&to=2026-03-01":             "the end must be after the begin",
		"from=2026-03-01&to=2026-03-01":             "the end must be after the begin",
		"window=2026&zone=Europe/Nowhere":           "Europe/Berlin",
		"window=2026&bucket=decade":                 "quarter or year",
		"window=2026&by=group":                      `did you mean "group_id"?`,
		"window=2025&by=group":                      `did you mean "group_id"?`,
		"window=2026&by=group_id,group_id":          "duplicate",
		"window=2026&by=":                           "",
		"window=2026&measure=Core":                  `did you mean "Cores"?`,
		"window=2026&measure=Cores*XY":              `did you mean "Cores*HS"?`,
		"window=2026&measure=Disk":                  "Cores*HS, Memory",
		"window=2026&component=GPUs":                "Cores*HS, Memory",
		"window=2026&credit=start":                  "spread or stop",
		"window=2026&unit=day":                      "second or hour",
		"window=2026&top=0":                         "1 or more",
		"window=2026&order=nothing":                 "use one of records, Cores",
		"window=2026&compare=before":                "previous, last-year",
		"window=2026&format=xml":                    "json, ndjson, csv or parquet",
		"window=2026&format=xlsx":                   "json, ndjson, csv or parquet",
		"window=2026&open=maybe":                    "true or false",
		"window=2026&limit=3":                       "unknown field `limit`",
		"window=2026&window=2025":                   "more than once",
		"window=2026&foo=3":                         "unknown field `foo`",
		"window=%zz":                                "percent-encoded",
		"from=0000-01-01&to=9999-12-31&bucket=hour": "at most 1000000",
		"from=1990&to=2030&bucket=hour&by=user_id":  "cells",
		"window=2026&start_time[gte]=x":             "RFC 3339",
	} {
		a := rg.do("GET", "/v1/usage?"+query, "")
		if want == "" {
			if a.status != 200 {
				t.Errorf("%s: %v", query, a)
			}
			continue
		}
		var p struct{ Detail string }
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.status != 400 || !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %v, want %q", query, a, want)
		}
	}
}

func TestANewSiteHasNoUsageOfAnything(t *testing.T) {
	rg := newRig(t)
	var s sheetOf
	rg.get("/v1/usage?window=last-month&by=group_id&measure=Cores,records&top=3&compare=previous&bucket=day", &s)
	if d := cmp.Diff([]string{"groups", "records: "}, s.rows()); d != "" {
		t.Error(d)
	}
}

func TestAnAnswerSaysHowCompleteItIs(t *testing.T) {
	rg := newRig(t, noon("2026-04-02T12:00:00Z"))
	march(rg)
	source := record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}
	quiet := record.Origin{Agent: "head1", Type: "slurm", Label: "quiet"}
	at, _ := record.ParseTime("2026-03-31T12:00:00Z")
	if _, err := rg.node.Write(t.Context(), &store.IngestCommand{
		Agent: "head1", Now: at + record.Hour, Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: 1,
		Watermarks: []store.Watermark{{Source: source, CompleteTo: at + record.Day}, {Source: quiet, CompleteTo: at}},
		Gaps:       []store.Gap{{Source: quiet, From: at, To: at + record.Hour, Reason: "the log was rotated"}, {Source: quiet, From: at + record.Day, To: at + 2*record.Day, Reason: "later"}},
	}); err != nil {
		t.Fatal(err)
	}
	var s sheetOf
	a := rg.get("/v1/usage?window=2026-03", &s)
	c := &s.Complete
	if c.CompleteTo == nil || *c.CompleteTo != "2026-03-31T12:00:00Z" || c.Silent != 1 || len(c.Sources) != 2 || !c.Sources[1].Silent || c.Sources[0].Silent || len(c.Gaps) != 1 || c.Quarantined == nil || *c.Quarantined != 0 {
		t.Errorf("%+v", c)
	}
	for name, want := range map[string]string{"Complete-To": "2026-03-31T12:00:00Z", "Silent-Sources": "1", "Gaps": "1", "Open": "0", "Quarantined": "0"} {
		if got := a.header.Get("X-Bursar-" + name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestOpenRunsCountUpToNowAndAreCounted(t *testing.T) {
	rg := newRig(t, noon("2026-03-10T12:00:00Z"))
	rg.add(`{"record_id":"o","components":[{"name":"Cores","amount":2,"scores":[]}],"start_time":"2026-03-10T11:00:00Z"}`)
	var s sheetOf
	a := rg.get("/v1/usage?window=2026-03", &s)
	if d := cmp.Diff([]string{"groups ", "records: 1", "Cores: 7200"}, s.rows()); d != "" || s.Open != 1 || a.header.Get("X-Bursar-Open") != "1" {
		t.Error(d, s.Open)
	}
}

func TestAReaderIsAnsweredOfItsOwnRecordsOnly(t *testing.T) {
	own := access.Principal{Name: "cms", Rights: identity.Read | identity.Write, Rows: access.SomeRows(access.Grant{"group_id": {"cms"}})}
	rg := newRig(t, func(o *api.Options, _ *store.Options) {
		o.Who = func(*http.Request) access.Principal { return own }
	})
	for _, group := range []string{"atlas", "cms"} {
		rg.add(fmt.Sprintf(`{"record_id":"%s","meta":{"group_id":["%s"]},"components":[{"name":"Cores","amount":1,"scores":[]}],"start_time":"2026-03-02T00:00:00Z","stop_time":"2026-03-02T01:00:00Z"}`, group, group))
	}
	var s sheetOf
	rg.get("/v1/usage?window=2026-03&by=group_id", &s)
	if d := cmp.Diff([]string{"groups cms", "records: 1", "Cores: 3600"}, s.rows()); d != "" {
		t.Error(d)
	}
	if c := s.Complete; !c.Limited || c.Quarantined != nil || len(c.Sources) != 0 {
		t.Errorf("%+v", c)
	}
	a := rg.do("GET", "/v1/usage?window=2026-03&measure=GPUs", "")
	if a.status != 400 || strings.Contains(a.body, "atlas") {
		t.Error(a)
	}
}

var _ api.Usage = access.Reader{}
var _ access.Usages = (*sums.Keeper)(nil)
