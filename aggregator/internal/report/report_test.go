package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/big"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// answers gives the same answer to every question about a path and window.
type answers map[string]string

func (a answers) Call(_ context.Context, _, path string, query url.Values, _, into any) error {
	key := path + " " + query.Get("window") + " " + query.Get("by")
	if b := query.Get("bucket"); b != "" {
		key += " " + b
	}
	text, ok := a[key]
	if !ok {
		return errors.New("no answer to " + path + "?" + query.Encode())
	}
	return json.Unmarshal([]byte(text), into)
}

func (a answers) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return pageOf(ctx, a, path, query)
}

const october = `{"window":{"from":"2026-10-01T00:00:00Z","to":"2026-11-01T00:00:00Z"},"by":["group_id"],"records":12,"several":1,
"groups":[{"values":["cms"],"others":0},{"values":["<b>atlas"],"others":0},{"values":[null],"others":0},{"values":[],"others":3}],
"measures":[{"name":"records","kind":"count","unit":null,"totals":[3,7,1,1],"total":12},
{"name":"Cores","kind":"rate","unit":"hour","totals":[10.5,1234567.890123,0.25,2],"total":1234580.640123,"lacking":null},
{"name":"efficiency","kind":"ratio","unit":null,"totals":[0.5,0.998,null,1],"total":0.9}],
"complete":{"complete_to":"2026-11-02T00:00:00Z","limited":false,"open":2,"quarantined":1,
"sources":[{"source":"head1/slurm/nemo","complete_to":"2026-10-20T00:00:00Z","silent":true}],
"gaps":[{"source":"head1/slurm/nemo","from":null,"to":"2026-10-06T00:00:00Z","reason":"the log was rotated"}],
"missing":[{"source":"head1/slurm/nemo","from":"2026-10-07T00:00:00Z","to":"2026-10-08T00:00:00Z","runs":4}],
"unknown":[{"source":"head2","reason":"no_data","days":0},{"source":"head1/slurm-epilog/nemo","reason":"no_watermark","days":0},{"source":"head1/slurm/nemo","reason":"not_counted","days":1}]}}`

const year = `{"window":{"from":"2026-01-01T00:00:00Z","to":"2026-11-22T00:00:00Z"},"by":["group_id"],"records":20,
"groups":[{"values":["<b>atlas"],"others":0},{"values":["zeus"],"others":0}],
"measures":[{"name":"records","kind":"count","unit":null,"totals":[17,3],"total":20},
{"name":"Cores","kind":"rate","unit":"hour","totals":[2000000,5],"total":2000005,"lacking":{"total":7.5}}],
"complete":{"limited":true,"open":0}}`

const subscribed = `{"window":{"from":"2026-10-01T00:00:00Z","to":"2026-11-01T00:00:00Z"},"unit":"SU","used":65.4,"contributed":5000,"unclaimed":20,
"shares":[{"pi":"Bell","name":"A. Bell","state":"both","used":14,"used_share":0.214,"contributed":1200,"contribution_share":0.24,"ratio":0.891744},
{"pi":"Turing","name":null,"state":"over","used":1,"used_share":0.015,"contributed":0,"contribution_share":0,"ratio":null},
{"pi":"Darwin","name":null,"state":"under","used":0,"used_share":0,"contributed":1520,"contribution_share":0.304,"ratio":null},
{"pi":"Guests","name":null,"state":"exempt","used":5,"used_share":0.076,"contributed":800,"contribution_share":null,"ratio":null}],
"complete":{"limited":false,"open":0}}`

const filled = `{"window":{"from":"2026-10-01T00:00:00Z","to":"2026-11-01T00:00:00Z"},"by":["cluster"],"records":12,"labels":[""],
"groups":[{"values":["katana"],"others":0},{"values":["scluster"],"others":0},{"values":[null],"others":0}],
"measures":[{"name":"capacity","kind":"capacity","unit":"hour","totals":[744,1000.5,null],"total":1744.5},
{"name":"utilization","kind":"ratio","unit":null,"totals":[0.63,1.052,null],"total":0.8,"lacking":{"total":24.5}}],"complete":{"limited":false,"open":0}}`

const course = `{"window":{"from":"2026-10-01T00:00:00Z","to":"2026-11-01T00:00:00Z"},"by":["cluster"],"records":12,"labels":["2026-10-01","2026-10-02"],
"groups":[{"values":["katana"],"others":0},{"values":["scluster"],"others":0}],
"measures":[{"name":"capacity","kind":"capacity","unit":"hour","values":[24,24,10,10]},{"name":"utilization","kind":"ratio","unit":null,"values":[0.1,0.2,null,0.4]}],"complete":{}}`

const unknown = `{"window":{"from":"2026-10-01T00:00:00Z","to":"2026-11-01T00:00:00Z"},"by":["cluster"],"records":12,"labels":[""],"groups":[{"values":[null],"others":0}],
"measures":[{"name":"capacity","kind":"capacity","unit":"hour","totals":[null],"total":null},{"name":"utilization","kind":"ratio","unit":null,"totals":[null],"total":null}],"complete":{}}`

const empty = `{"window":{"from":"2031-01-01T00:00:00Z","to":"2032-01-01T00:00:00Z"},"by":["group_id"],"records":0,"groups":[],"measures":[],"complete":{}}`

const months = `{"window":{"from":"2000-01-01T00:00:00Z","to":"2026-11-22T00:00:00Z"},"by":[],"records":9,"labels":["2026-05","2026-06","2026-07","2026-08","2026-09","2026-10"],
"groups":[{"values":[],"others":0}],"measures":[{"name":"records","kind":"count","unit":null,"values":[1,2,0,2,3,1]}],"complete":{}}`

func world() answers {
	return answers{
		"/v1/usage 2026-10 group_id": october, "/v1/usage this-year group_id": year, "/v1/usage 2031 group_id": empty,
		"/v1/usage 2026-10 cluster": filled, "/v1/usage 2026-10 cluster day": course, "/v1/usage 2025 cluster": unknown,
		"/v1/usage 2031 user_id": empty, "/v1/subscription 2026-10 ": subscribed,
	}
}

func TestTheSamePeriodTwiceIsTwoColumns(t *testing.T) {
	d, err := Usage(t.Context(), v1.API{Caller: world()}, UsageOptions{Periods: []string{"2026-10", "2026-10"}, Now: now()})
	if err != nil || len(d.Tables[0].Columns) != 7 {
		t.Errorf("%+v, %v", d, err)
	}
}

func now() time.Time { return time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC) }

func reportOfBoth(t *testing.T) *Document {
	t.Helper()
	d, err := Usage(t.Context(), v1.API{Caller: world()}, UsageOptions{Periods: []string{"2026-10", "this-year"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func reportOfShares(t *testing.T) *Document {
	t.Helper()
	d, err := Subscription(t.Context(), v1.API{Caller: world()}, SubscriptionOptions{Periods: []string{"2026-10"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func reportOfClusters(t *testing.T) *Document {
	t.Helper()
	d, err := Utilization(t.Context(), v1.API{Caller: world()}, UtilizationOptions{Periods: []string{"2026-10"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAClusterMayBeCalledAsTheBucketIs(t *testing.T) {
	w := world()
	w["/v1/usage 2026-10 cluster day"] = strings.ReplaceAll(course, "katana", "day")
	d, err := Utilization(t.Context(), v1.API{Caller: w}, UtilizationOptions{Periods: []string{"2026-10"}, Now: now()})
	if err != nil || d.Tables[1].Columns[1].Name != "day (cluster)" {
		t.Error(d, err)
	}
}

func TestClustersOfWhichNoCapacityIsKnownHaveNoUtilization(t *testing.T) {
	_, err := Utilization(t.Context(), v1.API{Caller: world()}, UtilizationOptions{Periods: []string{"2025"}, Now: now()})
	if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "no capacity configured or reported") {
		t.Error(err)
	}
}

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want +got\n%s", name, diff)
	}
}

func TestReportsAreWrittenAsTheyWereReleased(t *testing.T) {
	for name, d := range map[string]*Document{
		"usage": reportOfBoth(t), "subscription": reportOfShares(t), "utilization": reportOfClusters(t),
		"efficiency": reportOfEfficiency(t), "statement": reportOfCMS(t),
	} {
		for ending, write := range map[string]func(*bytes.Buffer) error{
			"json": func(b *bytes.Buffer) error { return d.WriteJSON(b) },
			"csv":  func(b *bytes.Buffer) error { return d.WriteCSV(b) },
			"html": func(b *bytes.Buffer) error { return d.WriteHTML(b) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, name+"."+ending, b.Bytes())
		}
	}
}

func TestADocumentSurvivesItsJSON(t *testing.T) {
	d := reportOfBoth(t)
	var first, second bytes.Buffer
	if err := d.WriteJSON(&first); err != nil {
		t.Fatal(err)
	}
	var again Document
	if err := json.Unmarshal(first.Bytes(), &again); err != nil {
		t.Fatal(err)
	}
	if err := again.WriteJSON(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error(err, cmp.Diff(first.String(), second.String()))
	}
}

func TestAPageNeedsNothingElseAndTrustsNoText(t *testing.T) {
	var b bytes.Buffer
	if err := reportOfBoth(t).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "http:", "https:", "<link", "@import", "<b>atlas"} {
		if strings.Contains(strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`, ""), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(page, "&lt;b&gt;atlas") || !strings.Contains(page, "<svg") {
		t.Error("the page has no atlas, or no chart")
	}
}

func TestAReportOfWhatIsNotThereSaysSoAndNamesWhatIsNear(t *testing.T) {
	w := world()
	w["/v1/usage 2026-10 user_id"] = empty
	w["/v1/usage  group_id"] = october
	w["/v1/usage   month"] = months
	for _, c := range []struct {
		options UsageOptions
		says    string
	}{
		{UsageOptions{Periods: []string{"2031"}}, "no record ran in 2031; the nearest months that have some are 2026-08, 2026-09, 2026-10"},
		{UsageOptions{Periods: []string{"2031", "2026-10"}, By: "user_id", Where: map[string]string{"group_id": "cmss"}}, `no record of 2031 and 2026-10 has the group_id "cmss"; did you mean "cms"?`},
		{UsageOptions{Periods: []string{"2031", "2026-10"}, By: "user_id", Where: map[string]string{"group_id": "cms"}}, "no record of group_id cms ran in 2031 and 2026-10; the nearest months that have some are 2026-08, 2026-09, 2026-10"},
		{UsageOptions{Periods: []string{"2031", "2026-10"}, By: "user_id", Where: map[string]string{"group_id": "quite-another"}}, "there are <b>atlas, cms"},
	} {
		_, err := Usage(t.Context(), v1.API{Caller: w}, c.options)
		if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %s", c.options, err, c.says)
		}
	}
}

func TestPeriodsHaveTheNamesThatPeopleGiveThem(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(s string) time.Time {
		v, err := time.ParseInLocation(MinuteLayout, s, berlin)
		if err != nil {
			t.Fatal(err)
		}
		return v.UTC()
	}
	for _, c := range []struct{ from, to, word, want string }{
		{"2026-10-01 00:00", "2026-11-01 00:00", "2026-10", "October 2026"},
		{"2026-01-01 00:00", "2027-01-01 00:00", "2026", "2026"},
		{"2026-01-01 00:00", "2026-11-22 13:00", "this-year", "2026 to date"},
		{"2026-11-01 00:00", "2026-11-22 13:00", "this-month", "November 2026 to date"},
		{"2026-07-01 00:00", "2026-10-01 00:00", "2026-Q3", "2026-07-01 to 2026-09-30"},
		{"2026-07-01 12:00", "2026-07-02 00:00", "", "2026-07-01 12:00 to 2026-07-02 00:00"},
	} {
		s := span{From: at(c.from), To: at(c.to)}
		if got := s.name(c.word, berlin); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestNumbersAreShownAsPeopleReadThem(t *testing.T) {
	for _, c := range []struct {
		kind  Kind
		value string
		want  string
	}{
		{Number, "1234567.891", "1 234 568"}, {Number, "12.3456", "12.35"}, {Number, "0.00012", "0.0001"}, {Number, "7", "7"},
		{Number, "-1234.5", "−1 235"}, {Number, "-0.00001", "0.0000"}, {Money, "1234.5", "1 234.50"},
		{Share, "0.2145", "21.5 %"}, {Ratio, "1.944442", "194 %"}, {Change, "0.5", "+50.0 %"}, {Change, "-2", "−200 %"},
	} {
		n := json.Number(c.value)
		if got := (Column{Kind: c.kind}).Show(Figure(&n)); strings.ReplaceAll(got, "\u202f", " ") != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.value, got, c.want)
		}
	}
	if got := (Column{Kind: Number}).Show(Cell{}); got != "–" {
		t.Error(got)
	}
	if got := Rat(big.NewRat(1, 3)).String(); got != "0.333333333" {
		t.Error(got)
	}
}

func TestPaints_DifferentNames_DifferOnOneChart(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		names := make([]string, 1+random.IntN(30))
		for i := range names {
			names[i] = fmt.Sprintf("cluster%d-%d", random.IntN(1000), i)
		}
		paints, of, colours := Paints(names), map[string]Paint{}, map[string]bool{}
		for i, p := range paints {
			colours[p.Colour] = true
			for other, same := range of {
				if same == p {
					t.Fatalf("%q and %q look the same: %+v", names[i], other, p)
				}
			}
			of[names[i]] = p
		}
		if len(colours) != min(len(names), len(palette())) {
			t.Fatalf("%d names have %d colours", len(names), len(colours))
		}
		if len(names) == 1 && paints[0].Colour != Colour(names[0]) {
			t.Fatalf("%q has not its own colour", names[0])
		}
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for i, p := range Paints(names) {
			if of[names[i]] != p {
				t.Fatalf("%q looks like %+v and in another order like %+v", names[i], of[names[i]], p)
			}
		}
	}
}

// What is not known is a gap, in lines as in areas, and never a zero.
func TestChart_UnknownFigures_AreGaps(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		table := Table{Name: "t", Title: "Use", Columns: []Column{{Name: "day", Title: "Day", Kind: Text}, {Name: "a", Title: "A", Kind: Ratio}}}
		rows, known := 2+random.IntN(12), 0
		for i := range rows {
			row := []Cell{Words(fmt.Sprint(i)), {}}
			if random.IntN(3) > 0 {
				row[1] = Rat(big.NewRat(int64(1+random.IntN(9)), 1)) // above the ground
				known++
			}
			table.Rows = append(table.Rows, row)
		}
		for _, kind := range []ChartKind{Line, Area} {
			table.Chart = &Chart{Kind: kind, Label: "day", Values: []string{"a"}}
			drawn := string(table.draw(nil))
			points := strings.Count(drawn, "<circle")
			for _, part := range strings.Split(drawn, `points="`)[1:] {
				list, _, _ := strings.Cut(part, `"`)
				n := len(strings.Fields(list))
				if kind == Area {
					n /= 2
				} else if strings.Contains(list+" ", fmt.Sprintf(",%d ", plotHeight)) {
					t.Fatalf("%s has a point on the ground: %s", kind, list)
				}
				points += n
			}
			if points != known {
				t.Fatalf("%s of %d known figures of %d has %d points: %s", kind, known, rows, points, drawn)
			}
		}
	}
}

func TestLinesAndAreasAreDrawnAsTheirTableSays(t *testing.T) {
	table := Table{
		Name: "t", Title: "Use", Columns: []Column{{Name: "day", Title: "Day", Kind: Text}, {Name: "a", Title: "A", Kind: Number}, {Name: "b", Title: "B", Kind: Number}},
		Rows: [][]Cell{{Words("1"), Rat(big.NewRat(1, 1)), Rat(big.NewRat(2, 1))}, {Words("2"), Rat(big.NewRat(3, 1)), {}}, {Words("3"), {}, Rat(big.NewRat(1, 1))}},
	}
	for _, kind := range []ChartKind{Area, Line} {
		table.Chart = &Chart{Kind: kind, Label: "day", Values: []string{"a", "b"}}
		golden(t, string(kind)+".svg", []byte(table.draw(nil)))
	}
	table.Chart.Values = []string{"c"}
	if err := (&Document{Tables: []Table{table}}).WriteHTML(&bytes.Buffer{}); err == nil {
		t.Error("a chart of a column that is not there was drawn")
	}
}

func FuzzCell(f *testing.F) {
	for _, s := range []string{`null`, `"a"`, `1.5`, `-0`, `1e400`, `{}`, `"\u0000"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Cell
		if len(data) > 100 || !json.Valid(data) || json.Unmarshal(data, &c) != nil {
			return
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var d Cell
		if err := json.Unmarshal(again, &d); err != nil || d.String() != c.String() {
			t.Fatalf("%s became %s: %v", data, again, err)
		}
	})
}
