package report

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

const priced = `{"currency":"EUR","prices":[{"list":"standard","from":"2026-01-01T00:00:00Z","to":"2026-10-15T00:00:00Z","component":"Cores","per":"hour","price":0.012,"match":{}}]}`

func statementWorld() script {
	all := `"by":[],"groups":[{"values":[]}]`
	return script{
		"/v1/usage last-month by  of ": `{` + windowOfOctober + `,"records":12,` + all + `,"measures":[{"name":"records","kind":"count","total":12},{"name":"Cores","kind":"rate","unit":"hour","total":150},
{"name":"Memory","kind":"rate","unit":"hour","total":204800},{"name":"MemoryUsed","kind":"rate","unit":"hour","total":102400}],"complete":{"complete_to":"2026-11-02T00:00:00Z","limited":false,"open":0}}`,
		"/v1/usage 2026-09-01 by  of ":                    `{"records":8,` + all + `,"measures":[{"name":"Cores","kind":"rate","unit":"hour","total":100}],"complete":{}}`,
		"/v1/usage 2026-10-01 by  of cost,records,people": `{"records":12,` + all + `,"measures":[{"name":"cost","kind":"worth","unit":"EUR","total":1.9,"unpriced":[{"component":"Cores","total":3.5},{"component":"Memory","total":1}]},{"name":"records","kind":"count","total":12},{"name":"people","kind":"count","total":2}],"complete":{}}`,
		"/v1/usage 2026-09-01 by  of cost,records,people": `{"records":8,` + all + `,"measures":[{"name":"cost","kind":"worth","unit":"EUR","total":1.2},{"name":"records","kind":"count","total":8},{"name":"people","kind":"count","total":1}],"complete":{}}`,
		"/v1/usage 2026-10-01 by user_id of cost,records,Cores": `{"records":12,"groups":[{"values":["ann"]},{"values":["<b>bob"]}],
"measures":[{"name":"records","kind":"count","totals":[10,2],"total":12},{"name":"cost","kind":"worth","unit":"EUR","totals":[1.5,0.4],"total":1.9},{"name":"Cores","kind":"rate","totals":[120,30],"total":150}],"complete":{}}`,
		"/v1/usage 2026-09-01 by user_id of cost":     `{"records":8,"groups":[{"values":["ann"]}],"measures":[{"name":"cost","kind":"worth","unit":"EUR","totals":[1.2],"total":1.2}],"complete":{}}`,
		"/v1/usage 2026-10-01 by project of records":  `{"records":12,"groups":[{"values":["lhc"]}],"measures":[],"complete":{}}`,
		"/v1/usage 2026-10-01 by pi of records":       `{"records":12,"groups":[{"values":["higgs"]}],"measures":[],"complete":{}}`,
		"/v1/usage 2026-10-01 by  of cost":            `{"records":1,` + all + `,"measures":[{"name":"cost","kind":"worth","unit":"EUR","total":0.96}],"complete":{}}`,
		"/v1/usage 2000-01-01 by group_id of records": `{"records":9,"groups":[{"values":["cms"]}],"complete":{}}`,
		"/v1/prices 2026-01-01T00:00:00Z":             priced,
		"/v1/prices 2026-10-15T00:00:00Z": `{"currency":"EUR","prices":[{"list":"standard","from":"2026-10-15T00:00:00Z","to":null,"component":"Cores","per":"hour","price":0.013,"match":{}},
{"list":"standard","from":"2026-10-15T00:00:00Z","to":null,"component":"Cores","per":"hour","price":0.001,"match":{"group_id":"atlas"}},
{"list":"standard","from":"2026-10-15T00:00:00Z","to":null,"component":"Cores","per":"hour","price":0,"match":{"group_id":"cms","class":"cms"}}]}`,
		"/v1/budgets": `{"now":"2026-11-22T00:00:00Z","budgets":[
{"name":"lhc","match":{"project":"lhc"},"unit":"EUR","period":{"name":"2026","from":"2026-01-01T00:00:00Z","to":"2027-01-01T00:00:00Z","state":"present"},"amount":9000,"problem":null,"used":8000,"share":0.888889,"reserved":100,"left":900,"at_least":true,"pace":{"per_day":50},"exhausted":false,"gone_at":"2026-12-12T00:00:00Z"},
{"name":"cms","match":{"group_id":"cms"},"unit":"core-hours","period":{"name":"2026-10","from":"2026-10-01T00:00:00Z","to":"2026-11-01T00:00:00Z","state":"past"},"amount":200,"problem":null,"used":150,"share":0.75,"reserved":0,"left":50,"at_least":false,"pace":null,"exhausted":false,"gone_at":null},
{"name":"atlas","match":{"group_id":"atlas"},"unit":"EUR","period":{"name":"2026","from":"2026-01-01T00:00:00Z","to":"2027-01-01T00:00:00Z","state":"present"},"amount":1,"problem":null},
{"name":"broken","match":{"pi":"higgs"},"unit":"SU","period":{"name":"2026","from":"2026-01-01T00:00:00Z","to":"2027-01-01T00:00:00Z","state":"present"},"amount":1,"problem":"nothing says what a service unit is"}]}`,
		"/v1/records": `{"next":null,"records":[` + strings.Join([]string{
			recordOf("r1", "ann", 4, 3600, "2026-10-03T00:00:00Z", "2026-10-03T10:00:00Z", "2026-10-03T00:00:00Z"),
			recordOf("r2", "ann", 8, 3600, "2026-09-30T12:00:00Z", "2026-10-01T10:00:00Z", "2026-09-30T12:00:00Z"),
		}, ",") + `]}`,
	}
}

func reportOfCMS(t *testing.T) *Document { return reportOf(t, statementWorld()) }

func reportOf(t *testing.T, w script) *Document {
	t.Helper()
	d, err := Statement(t.Context(), v1.API{Caller: w}, StatementOptions{Of: map[string]string{"group_id": "cms"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAStatementSaysWhatWasUsedWhatItCostsAndWhatIsLeft(t *testing.T) {
	d := reportOfCMS(t)
	for _, c := range []struct{ table, first, want string }{
		{"figures", "Cost", "Cost|EUR|1.9|1.2|0.583333333"},
		{"figures", "Cores", "Cores|core-hours|150|100|0.5"},
		{"figures", "Memory", "Memory|GB-hours|200||"},
		{"figures", "MemoryUsed", "MemoryUsed|GB-hours|100||"},
		{"figures", "People", "People||2|1|1"},
		{"budgets", "lhc", "lhc|2026|EUR|9000|8000|100|900|0.888889|10000|2026-12-12"}, // 40 days of 50
		{"budgets", "cms", "cms|2026-10|core-hours|200|150|0|50|0.75|150|lasts"},
		{"budgets", "broken", "broken|2026|SU|1||||||"},
		{"people", "ann", "ann|10|120|1.5|0.789473684|1.2|0.25"},
		{"people", "<b>bob", "<b>bob|2|30|0.4|0.210526316||"},
		{"jobs", "r2", "r2|ann|2026-09-30 12:00|8|22|80|0.96|COMPLETED"}, // ten hours of it in October
		{"prices", "Cores", "Cores|all|0.012 EUR an hour|2026-01-01|2026-10-15|standard"},
	} {
		if got := row(t, d, c.table, c.first); got != c.want {
			t.Errorf("%s: %s, want %s", c.table, got, c.want)
		}
	}
	for i := range d.Tables {
		if text := cells(d.Tables[i].Rows[0]); d.Tables[i].Name == "jobs" && !strings.HasPrefix(text, "r2|") {
			t.Error("the largest job is not the first", text)
		}
		if d.Tables[i].Name == "prices" && len(d.Tables[i].Rows) != 3 {
			t.Error("the prices of another group are there, or one is missing", d.Tables[i].Rows)
		}
		if d.Tables[i].Name == "budgets" && len(d.Tables[i].Rows) != 3 {
			t.Error("the budget of another group is there, or one is missing")
		}
	}
	notes := strings.Join(d.Notes, "\n")
	for _, want := range []string{
		"October 2026: records are complete to 2026-11-02 00:00 UTC.", "October 2026: 3.50 core-hours of Cores have no price at their time", "The budget broken has no figures: nothing says what a service unit is",
		"Of the budget lhc at least that is used", "Budgets are as of 2026-11-22 00:00 UTC", "The most specific price counts.",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}

func TestAPriceThatBeginsWithinThePeriodIsFound(t *testing.T) {
	w := statementWorld()
	const first = `{"list":"a","from":"2026-10-10T00:00:00Z","to":"2026-10-15T00:00:00Z","component":"Cores","per":"hour","price":0.011,"match":{}}`
	const second = `{"list":"b","from":"2026-10-15T00:00:00Z","to":null,"component":"Cores","per":"hour","price":0.013,"match":{}}`
	w["/v1/prices 2026-01-01T00:00:00Z"] = `{"currency":"EUR","prices":[]}`
	w["/v1/prices 2026-10-10T00:00:00Z"] = `{"currency":"EUR","prices":[` + first + `]}`
	w["/v1/prices 2026-10-15T00:00:00Z"] = `{"currency":"EUR","prices":[` + second + `]}`
	at := func(day int) time.Time { return time.Date(2026, 10, day, 0, 0, 0, 0, time.UTC) }
	currency, list, err := pricesOf(t.Context(), v1.API{Caller: w}, Period{From: at(1), To: at(32)})
	if err != nil || currency != "EUR" || len(list) != 2 || list[0].List != "a" || list[1].List != "b" {
		t.Error(currency, list, err)
	}
	notes := strings.Join(reportOf(t, w).Notes, "\n")
	for _, want := range []string{"October 2026: 3.50 core-hours of Cores have no price at their time", "October 2026: nothing of Memory has a price, and it is not in the cost."} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}

func TestWhatNothingHadAPriceForDidNotCostNothing(t *testing.T) {
	w := statementWorld()
	w["/v1/prices 2026-01-01T00:00:00Z"] = `{"currency":"EUR","prices":[]}`
	w["/v1/prices 2026-10-01T00:00:00Z"] = priced
	was := "/v1/usage 2026-09-01 by  of cost,records,people"
	w[was] = strings.Replace(w[was], `"total":1.2}`, `"total":0,"unpriced":[{"component":"Cores","total":100}]}`, 1)
	people := "/v1/usage 2026-09-01 by user_id of cost"
	w[people] = strings.ReplaceAll(w[people], "1.2", "0")
	d := reportOf(t, w)
	for table, want := range map[string]string{"figures": "Cost|EUR|1.9||", "people": "ann|10|120|1.5|0.789473684||"} {
		if first, _, _ := strings.Cut(want, "|"); row(t, d, table, first) != want {
			t.Errorf("%s: %s, want %s", table, row(t, d, table, first), want)
		}
	}
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "September 2026: nothing of Cores has a price, and it is not in the cost.") {
		t.Error(notes)
	}
}

// strict has no prices, and tells budgets to nobody.
type strict struct{ script }

func (s strict) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	if path == "/v1/budgets" {
		return &client.Problem{Status: http.StatusForbidden}
	}
	return s.script.Call(ctx, method, path, query, in, into)
}

func TestWithoutPricesAndBudgetsAStatementSaysSo(t *testing.T) {
	w := statementWorld()
	w["/v1/prices 2026-01-01T00:00:00Z"], w["/v1/prices 2026-10-15T00:00:00Z"] = `{"currency":null,"prices":[]}`, `{"currency":null,"prices":[]}`
	w["/v1/usage 2026-10-01 by  of records,people"] = w["/v1/usage 2026-10-01 by  of cost,records,people"]
	w["/v1/usage 2026-09-01 by  of records,people"] = w["/v1/usage 2026-09-01 by  of cost,records,people"]
	w["/v1/usage 2026-10-01 by user_id of records,Cores"] = w["/v1/usage 2026-10-01 by user_id of cost,records,Cores"]
	w["/v1/usage 2026-09-01 by user_id of Cores"] = `{"records":0,"groups":[],"measures":[],"complete":{}}`
	d, err := Statement(t.Context(), v1.API{Caller: strict{w}}, StatementOptions{Of: map[string]string{"group_id": "cms"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	if got := row(t, d, "people", "ann"); got != "ann|10|120|0.8||" {
		t.Error(got)
	}
	notes := strings.Join(d.Notes, "\n")
	for _, want := range []string{"No prices configured; showing usage only", "Budgets are shown only to readers of all records"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}

func TestAStatementOfNobodyNamesWhoIsNear(t *testing.T) {
	w := statementWorld()
	w["/v1/usage last-month by  of "] = `{` + windowOfOctober + `,"records":0,"complete":{}}`
	_, err := Statement(t.Context(), v1.API{Caller: w}, StatementOptions{Of: map[string]string{"group_id": "cmx"}, Now: now()})
	if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), `did you mean "cms"?`) {
		t.Error(err)
	}
}

func TestAPeriodIsComparedWithTheOneBeforeIt(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(MinuteLayout, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	const today = "2026-11-22 13:00"
	for _, c := range []struct{ word, from, to, want string }{
		{"last-month", "2026-10-01 00:00", "2026-11-01 00:00", "2026-09-01 00:00 2026-10-01 00:00"},
		{"2026-03", "2026-03-01 00:00", "2026-04-01 00:00", "2026-02-01 00:00 2026-03-01 00:00"},
		{"this-month", "2026-11-01 00:00", today, "2026-10-01 00:00 2026-10-22 13:00"},
		{"2026-11", "2026-11-01 00:00", "2026-12-01 00:00", "2026-10-01 00:00 2026-10-22 13:00"},
		{"2026", "2026-01-01 00:00", "2027-01-01 00:00", "2025-01-01 00:00 2025-11-22 13:00"},
		{"2d", "2026-11-20 13:00", today, "2026-11-18 13:00 2026-11-20 13:00"},
	} {
		got := earlier(c.word, span{From: at(c.from), To: at(c.to)}, at(today), time.UTC)
		if text := got.From.UTC().Format(MinuteLayout) + " " + got.To.UTC().Format(MinuteLayout); text != c.want {
			t.Errorf("%s: %s, want %s", c.word, text, c.want)
		}
	}
}
