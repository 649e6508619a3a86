package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// script answers by the path and, of /v1/usage, by its window or begin, its keys and its
// measures.
type script map[string]string

func (a script) Call(_ context.Context, _, path string, query url.Values, _, into any) error {
	key := path
	if path == "/v1/usage" {
		at := query.Get("window")
		if at == "" {
			at, _, _ = strings.Cut(query.Get("from"), "T")
		}
		key += " " + at + " by " + query.Get("by") + " of " + query.Get("measure")
		if query.Has("component[TotalCPU][gte]") {
			key += " with CPU"
		}
		if query.Has("component[Cores][gte]") {
			key += " and cores"
		}
		if query.Has("bucket") {
			key += " each " + query.Get("bucket")
		}
	}
	if path == "/v1/prices" {
		key += " " + query.Get("at")
	}
	if path == "/v1/prices" { // those of the latest time that is scripted
		at := key
		key = ""
		for k := range a {
			if strings.HasPrefix(k, path) && k <= at && k > key {
				key = k
			}
		}
	}
	text, ok := a[key]
	if !ok {
		return fmt.Errorf("no answer to %s (%s)", key, query.Encode())
	}
	return json.Unmarshal([]byte(text), into)
}

func (a script) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return pageOf(ctx, a, path, query)
}

// pageOf yields the records of a page.
func pageOf(ctx context.Context, r v1.Caller, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		var page struct{ Records []json.RawMessage }
		if err := r.Call(ctx, http.MethodGet, path, query, nil, &page); err != nil {
			yield(nil, err)
			return
		}
		for _, one := range page.Records {
			if !yield(one, nil) {
				return
			}
		}
	}
}

const windowOfOctober = `"window":{"from":"2026-10-01T00:00:00Z","to":"2026-11-01T00:00:00Z"}`

func efficiencyWorld() script {
	return script{
		"/v1/usage 2026-10 by user_id of ": `{` + windowOfOctober + `,"records":40,"by":["user_id"],"groups":[{"values":["ann"]},{"values":["<b>bob"]},{"values":[null]}],
"measures":[{"name":"records","kind":"count","totals":[10,20,10],"total":40},{"name":"Cores","kind":"rate","unit":"hour","totals":[100,50,10],"total":160,"without":0},
{"name":"Memory","kind":"rate","unit":"hour","totals":[204800,1024,0],"total":205824,"without":0},{"name":"MemoryUsed","kind":"rate","unit":"hour","totals":[102400,2048,0],"total":104448,"without":0},
{"name":"GPUs","kind":"rate","unit":"hour","totals":[0,5,0],"total":5,"without":30},{"name":"TotalCPU","kind":"total","unit":null,"totals":[180000,198000,0],"total":378000,"without":10}],
"complete":{"complete_to":"2026-11-02T00:00:00Z","limited":false,"open":0}}`,
		"/v1/usage 2026-10 by user_id of records,Cores,TotalCPU with CPU and cores": `{` + windowOfOctober + `,"records":30,"groups":[{"values":["ann"]},{"values":["<b>bob"]}],
"measures":[{"name":"records","kind":"count","totals":[10,20],"total":30},{"name":"Cores","kind":"rate","unit":"hour","totals":[100,50],"total":150},{"name":"TotalCPU","kind":"total","totals":[180000,198000],"total":378000}],"complete":{}}`,
		"/v1/usage 2026-10 by user_id of started,wait": `{` + windowOfOctober + `,"records":40,"groups":[{"values":["ann"]},{"values":["<b>bob"]},{"values":[null]}],
"measures":[{"name":"started","kind":"count","totals":[3,2,0],"total":5},{"name":"wait","kind":"mean","unit":"second","totals":[600,90,null],"total":396}],"complete":{}}`,
		"/v1/records": `{"next":null,"records":[` + strings.Join([]string{
			recordOf("a1", "ann", 8, 36000, "2026-10-03T00:00:00Z", "2026-10-03T10:00:00Z", "2026-10-02T23:55:00Z"),
			recordOf("a2", "ann", 4, 3600, "2026-10-04T00:00:00Z", "2026-10-04T01:00:00Z", "2026-10-03T23:55:00Z"),
			recordOf("a3", "ann", 1, 3600, "2026-10-05T00:00:00Z", "2026-10-05T01:00:00Z", "2026-10-04T23:40:00Z"),
			recordOf("b1", "<b>bob", 1, 7200, "2026-10-05T00:00:00Z", "2026-10-05T01:00:00Z", "2026-10-04T23:59:00Z"),
			recordOf("b2", "<b>bob", 2, 3600, "2026-10-05T00:00:00Z", "2026-10-05T01:00:00Z", "2026-10-04T23:58:00Z"),
		}, ",") + `]}`,
	}
}

func recordOf(id, user string, cores, cpu int, start, stop, submit string) string {
	return fmt.Sprintf(`{"record_id":%q,"meta":{"user_id":[%q],"group_id":["cms"]},"components":[{"name":"Cores","amount":%d,"kind":"rate"},{"name":"Memory","amount":2048,"kind":"rate"},
{"name":"MemoryUsed","amount":1024,"kind":"rate"},{"name":"TotalCPU","amount":%d,"kind":"total"}],"start_time":%q,"stop_time":%q,"submit_time":%q,"state":"COMPLETED"}`, id, user, cores, cpu, start, stop, submit)
}

func reportOfEfficiency(t *testing.T) *Document {
	t.Helper()
	d, err := Efficiency(t.Context(), v1.API{Caller: efficiencyWorld()}, EfficiencyOptions{Periods: []string{"2026-10"}, Worst: 3, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// cells are a row as it stands in CSV.
func cells(row []Cell) string {
	var out []string
	for _, c := range row {
		out = append(out, c.String())
	}
	return strings.Join(out, "|")
}

// row finds a line of a table by its first cell.
func row(t *testing.T, d *Document, table, first string) string {
	t.Helper()
	for i := range d.Tables {
		for _, r := range d.Tables[i].Rows {
			if d.Tables[i].Name == table && r[0].String() == first {
				return cells(r)
			}
		}
	}
	t.Errorf("there is no line %s in the table %s", first, table)
	return ""
}

func TestWhatCouldBeSavedIsBookedLessUsedOfThoseThatSayBoth(t *testing.T) {
	d := reportOfEfficiency(t)
	for _, c := range []struct{ table, first, want string }{
		{"saving-1", "Cores", "Cores|core-hours|150|105|0.7|50|1.002|0.47595"}, // 50 of ann × 0.012 × 1.67, × 0.475; bob used more than he booked
		{"saving-1", "Memory", "Memory|GB-hours|201|102|0.507462687|100|0.0622075|0.029548563"},
		{"saving-1", "GPUs", "GPUs|GPU-hours|5|||||"},
		{"cores-1", "ann", "ann|10|100|50|0.5|50|1.002|0.47595"},
		{"cores-1", "<b>bob", "<b>bob|20|50|55|1.1|0|0|0"},
		{"wait-1", "ann", "ann|3|5|10|20"},
		{"wait-1", "<b>bob", "<b>bob|2|1.5|1.5|2"},
		{"jobs", "a1", "a1|ann|8|10|0.125|70|2|1|COMPLETED"},
		{"jobs", "a2", "a2|ann|4|1|0.25|3|2|1|COMPLETED"},
		{"jobs", "b2", "b2|<b>bob|2|1|0.5|1|2|1|COMPLETED"},
	} {
		if got := row(t, d, c.table, c.first); got != c.want {
			t.Errorf("%s: %s, want %s", c.table, got, c.want)
		}
	}
	notes := strings.Join(d.Notes, "\n")
	for _, want := range []string{"10 of 40 records do not say how much of the Cores they used, and 0 do not say how much they booked", "how much of the GPUs was used is not in the records", "10.1002/advs.202100707"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}

func TestWhatWasUsedOfNothingBookedIsNotCounted(t *testing.T) {
	w := efficiencyWorld()
	of := "/v1/usage 2026-10 by user_id of "
	w[of] = strings.NewReplacer(`"total":160,"without":0`, `"total":160,"without":7`, `"total":378000,"without":10`, `"total":378000,"without":0`).Replace(w[of])
	d, err := Efficiency(t.Context(), v1.API{Caller: w}, EfficiencyOptions{Periods: []string{"2026-10"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "0 of 40 records do not say how much of the Cores they used, and 7 do not say how much they booked") {
		t.Error(notes)
	}
	if got := row(t, d, "saving-1", "Cores"); !strings.HasPrefix(got, "Cores|core-hours|150|105|0.7|") {
		t.Error(got)
	}
}

func TestNumbersThatNoReportCanBeMadeWithAreRefused(t *testing.T) {
	for says, o := range map[string]EfficiencyOptions{
		"jobs is -1; want a number from 1 to 100": {Worst: -1},
		"jobs is 101":              {Worst: 101},
		"scan is -1":               {Scan: -1},
		"top is -1":                {Top: -1},
		"memory_per_gb is NaN":     {MemoryPerGB: math.NaN()},
		"memory_per_gb is -1":      {MemoryPerGB: -1},
		"pue is 0":                 {Factors: Factors{Carbon: 1}},
		"carbon_per_kwh is -1":     {Factors: Factors{PUE: 1, Carbon: -1}},
		"kwh_per_gpu_hour is +Inf": {Factors: Factors{PUE: 1, GPUHour: math.Inf(1)}},
	} {
		if _, err := Efficiency(t.Context(), v1.API{Caller: efficiencyWorld()}, o); !errors.Is(err, ErrQuery) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
	for says, o := range map[string]StatementOptions{"top is -1": {Top: -1}, "top is 101": {Top: 101}, "memory_per_gb is NaN": {MemoryPerGB: math.NaN()}} {
		o.Of = map[string]string{"group_id": "cms"}
		if _, err := Statement(t.Context(), v1.API{Caller: statementWorld()}, o); !errors.Is(err, ErrQuery) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}

func TestAComponentOfTheWrongKindIsNotTakenForWhatWasUsed(t *testing.T) {
	w := efficiencyWorld()
	of := "/v1/usage 2026-10 by user_id of "
	w[of] = strings.NewReplacer(`"TotalCPU","kind":"total"`, `"TotalCPU","kind":"rate"`, `"MemoryUsed","kind":"rate"`, `"MemoryUsed","kind":"total"`).Replace(w[of])
	w["/v1/records"] = strings.ReplaceAll(w["/v1/records"], `"kind":"total"`, `"kind":"rate"`)
	d, err := Efficiency(t.Context(), v1.API{Caller: w}, EfficiencyOptions{Periods: []string{"2026-10"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	for first, want := range map[string]string{"Cores": "Cores|core-hours|160|||||", "Memory": "Memory|GB-hours|201|||||"} {
		if got := row(t, d, "saving-1", first); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	notes := strings.Join(d.Notes, "\n")
	for _, want := range []string{"the component TotalCPU is a rate, and is wanted as a total.", "the component MemoryUsed is a total, and is wanted as a rate."} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
	for i := range d.Tables {
		if d.Tables[i].Name == "jobs" {
			t.Error("there are jobs that left something unused", d.Tables[i].Rows)
		}
	}
}

func TestWhereJobsCannotBeToldApartAReportSaysSo(t *testing.T) {
	w := efficiencyWorld()
	delete(w, "/v1/records")
	d, err := Efficiency(t.Context(), v1.API{Caller: w}, EfficiencyOptions{Periods: []string{"2026-10"}, Where: map[string]string{"cluster": "lhc"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	if got := row(t, d, "wait-1", "ann"); got != "ann|3||10|" {
		t.Error(got)
	}
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "no single job says its cluster of itself") {
		t.Error(notes)
	}
	w = statementWorld()
	delete(w, "/v1/records")
	w["/v1/usage 2026-10-01 by group_id of records"] = `{"groups":[]}`
	d, err = Statement(t.Context(), v1.API{Caller: w}, StatementOptions{Of: map[string]string{"host_class": "fat"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "no single job says its host_class of itself") {
		t.Error(notes)
	}
}

func TestWhereJobsAreTooManyTheMedianIsNotKnown(t *testing.T) {
	w := efficiencyWorld()
	d, err := Efficiency(t.Context(), v1.API{Caller: w}, EfficiencyOptions{Periods: []string{"2026-10"}, Scan: 4, Top: 1, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	if got := row(t, d, "wait-1", "ann"); got != "ann|3||10|" {
		t.Error(got)
	}
	if got := row(t, d, "cores-1", "1 others"); got != "1 others|20|50|55|1.1|0|0|0" {
		t.Error(got)
	}
	if !strings.Contains(strings.Join(d.Notes, "\n"), "more than 4 jobs began") {
		t.Error(d.Notes)
	}
}

func TestEfficiencyOfNobodyNamesWhatIsNear(t *testing.T) {
	w := script{
		"/v1/usage 2031 by user_id of ":                  `{"window":{"from":"2031-01-01T00:00:00Z","to":"2032-01-01T00:00:00Z"},"records":0,"complete":{}}`,
		"/v1/usage 2000-01-01 by group_id of records":    `{"records":2,"groups":[{"values":["cms"]}],"complete":{}}`,
		"/v1/usage 2000-01-01 by  of records each month": months,
	}
	for value, want := range map[string]string{"cmss": `did you mean "cms"?`, "cms": "the nearest months that have some are 2026-08, 2026-09, 2026-10"} {
		_, err := Efficiency(t.Context(), v1.API{Caller: w}, EfficiencyOptions{Periods: []string{"2031"}, Where: map[string]string{"group_id": value}, Now: now()})
		if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestTheMedianOfTwoIsTheirMean(t *testing.T) {
	for want, list := range map[time.Duration][]time.Duration{3: {9, 3, 1}, 2: {3, 1}, 7: {7}} {
		if got := (&waits{list: list}).median(); got != want {
			t.Errorf("%v: %d, want %d", list, got, want)
		}
	}
}
