package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

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

func TestPeriodsHaveTheNamesThatPeopleGiveThem(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(s string) time.Time {
		v, err := time.ParseInLocation(view.MinuteLayout, s, berlin)
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
		if got := s.periodName(c.word, berlin); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestPeriods_ThatRoll_AreNeitherToDateNorMonths(t *testing.T) {
	at := time.Date(2026, 11, 30, 10, 28, 0, 0, time.UTC)
	begun := at.Add(-time.Millisecond) // of the report, before the answer
	month := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		word        string
		now, before span
		want        [2]string
	}{
		{"30d", span{at.AddDate(0, 0, -30), at}, span{begun.AddDate(0, 0, -60), begun.AddDate(0, 0, -30)}, [2]string{"2026-10-31 10:28 to 2026-11-30 10:28", "2026-10-01 10:27 to 2026-10-31 10:27"}},
		{"this-month", span{month, at}, span{month.AddDate(0, -1, 0), begun.AddDate(0, -1, 0)}, [2]string{"November 2026 to date", "October 2026 to the same day"}},
		{"2026-11", span{month, month.AddDate(0, 1, 0)}, span{month.AddDate(0, -1, 0), month}, [2]string{"November 2026 to date", "October 2026"}},
	} {
		got := namePeriods(c.word, c.now, c.before, begun, time.UTC)
		if got[0].Name != c.want[0] || got[1].Name != c.want[1] {
			t.Errorf("%s: %q and %q, want %q", c.word, got[0].Name, got[1].Name, c.want)
		}
	}
}

func TestNumbersAreShownAsPeopleReadThem(t *testing.T) {
	for _, c := range []struct {
		kind  string
		value string
		want  string
	}{
		{Number, "1234567.891", "1 234 568"}, {Number, "12.3456", "12.35"}, {Number, "0.00012", "0.0001"}, {Number, "7", "7"},
		{Number, "-1234.5", "−1 235"}, {Number, "-0.00001", "0.0000"}, {Money, "1234.5", "1 234.50"},
		{Share, "0.2145", "21.5 %"}, {Ratio, "1.944442", "194 %"}, {Change, "0.5", "+50.0 %"}, {Change, "-2", "−200 %"},
	} {
		n := json.Number(c.value)
		if got := v1.Show(c.kind, v1.Figure(&n)); strings.ReplaceAll(got, "\u202f", " ") != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.value, got, c.want)
		}
	}
	if got := v1.Show(Number, Cell{}); got != "–" {
		t.Error(got)
	}
	if got := v1.Rat(big.NewRat(1, 3)).String(); got != "0.333333333" {
		t.Error(got)
	}
}

func TestPaints_OneName_HasOneColourWhateverIsBesideIt(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		names := make([]string, 1+random.IntN(60))
		for i := range names {
			names[i] = fmt.Sprintf("cluster%d-%d", random.IntN(1000), i)
		}
		names[0] = []string{names[0], "(12 others)"}[random.IntN(2)]
		of := map[string]Paint{}
		for i, p := range Paints(names) {
			if want := Colour(names[i]); p.Colour != want && (names[i] != "(12 others)" || p.Colour != OthersColour) {
				t.Fatalf("%q is %s and alone %s", names[i], p.Colour, want)
			}
			for other, same := range of {
				if same == p {
					t.Fatalf("%q and %q look the same: %+v", names[i], other, p)
				}
			}
			of[names[i]] = p
		}
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = append(names, names[0]) // the same name is the same everywhere
		for i, p := range Paints(names) {
			if of[names[i]] != p {
				t.Fatalf("%q looks like %+v and in another order like %+v", names[i], of[names[i]], p)
			}
		}
	}
}

// A site's colours stay when it updates: they are of the released palette and hash.
func TestColour_OfNames_IsTheReleasedOne(t *testing.T) {
	for name, want := range map[string]string{"atlas": "#784b5a", "cms": "#009e73", "COMPLETED": "#009e73", "FAILED": "#a51e2d", "(none)": "#cc79a7", "": "#a3298d"} {
		if got := Colour(name); got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
	}
}

func TestPalette_EachColour_ContrastsWithPagesAndOthers(t *testing.T) {
	luminance := func(colour string) float64 {
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			c := float64(n) / 255
			if c <= 0.04045 {
				sum += weight * c / 12.92
				continue
			}
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
		return sum
	}
	seen := map[string]bool{OthersColour: true}
	for _, colour := range palette() {
		for _, page := range []string{"#ffffff", "#f6f7f6", "#121715", "#1a211e"} {
			a, b := luminance(colour), luminance(page)
			if contrast := (max(a, b) + 0.05) / (min(a, b) + 0.05); contrast < 2 {
				t.Errorf("%s on %s has a contrast of %.2f", colour, page, contrast)
			}
		}
		if seen[colour] {
			t.Errorf("%s is given more than once", colour)
		}
		seen[colour] = true
	}
}

// What is not known is a gap, in lines as in areas, and never a zero.
func TestChart_UnknownFigures_AreGaps(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		table := Table{Name: "t", Title: "Use", Columns: []Column{{Name: "day", Title: "Day", Kind: Text}, {Name: "a", Title: "A", Kind: Ratio}}}
		rows, known := 2+random.IntN(12), 0
		for i := range rows {
			row := []Cell{v1.Words(fmt.Sprint(i)), {}}
			if random.IntN(3) > 0 {
				row[1] = v1.Rat(big.NewRat(int64(1+random.IntN(9)), 1)) // above the ground
				known++
			}
			table.Rows = append(table.Rows, row)
		}
		for _, kind := range []string{Line, Steps} {
			table.Chart = &Chart{Kind: kind, Label: "day", Values: []string{"a"}}
			drawn := string(table.drawChart(nil))
			points := strings.Count(drawn, "<circle")
			if kind == Steps {
				points = strings.Count(drawn, `fill-opacity=".8"`)
			}
			for _, part := range strings.Split(drawn, `points="`)[1:] {
				list, _, _ := strings.Cut(part, `"`)
				n := len(strings.Fields(list))
				if strings.Contains(list+" ", fmt.Sprintf(",%d ", plotTop+plotHeight)) {
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

func TestLinesAndStepsAreDrawnAsTheirTableSays(t *testing.T) {
	table := Table{
		Name: "t", Title: "Use", Columns: []Column{{Name: "day", Title: "Day", Kind: Text}, {Name: "a", Title: "A", Kind: Number}, {Name: "b", Title: "B", Kind: Number}},
		Rows: [][]Cell{{v1.Words("1"), v1.Rat(big.NewRat(1, 1)), v1.Rat(big.NewRat(2, 1))}, {v1.Words("2"), v1.Rat(big.NewRat(3, 1)), {}}, {v1.Words("3 (partial)"), {}, v1.Rat(big.NewRat(1, 1))}},
	}
	for _, kind := range []string{Steps, Line} {
		table.Chart = &Chart{Kind: kind, Label: "day", Values: []string{"a", "b"}}
		golden(t, kind+".svg", []byte(table.drawChart(nil)))
	}
	table.Chart.Values = []string{"c"}
	if err := (&Document{Tables: []v1.DocumentTable{v1.DocumentTable(table)}}).WriteHTML(&bytes.Buffer{}); err == nil {
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

func TestAPeriodIsComparedWithTheOneBeforeIt(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(view.MinuteLayout, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	const today = "2026-11-22 13:00"
	for _, c := range []struct {
		word, from, to string
		unit           calendar.Unit
		want           string
	}{
		{"last-month", "2026-10-01 00:00", "2026-11-01 00:00", calendar.Day, "2026-09-01 00:00 2026-10-01 00:00"},
		{"2026-03", "2026-03-01 00:00", "2026-04-01 00:00", calendar.None, "2026-02-01 00:00 2026-03-01 00:00"},
		{"this-month", "2026-11-01 00:00", today, calendar.None, "2026-10-01 00:00 2026-10-22 13:00"},
		{"2026-11", "2026-11-01 00:00", "2026-12-01 00:00", calendar.None, "2026-10-01 00:00 2026-10-22 13:00"},
		{"2026", "2026-01-01 00:00", "2027-01-01 00:00", calendar.None, "2025-01-01 00:00 2025-11-22 13:00"},
		{"2d", "2026-11-20 13:00", today, calendar.None, "2026-11-18 13:00 2026-11-20 13:00"},
		{"2d", "2026-11-20 00:00", today, calendar.Day, "2026-11-17 11:00 2026-11-20 00:00"},
	} {
		got := previousWindow(c.word, span{From: at(c.from), To: at(c.to)}, c.unit, at(today), time.UTC)
		if text := got.From.UTC().Format(view.MinuteLayout) + " " + got.To.UTC().Format(view.MinuteLayout); text != c.want {
			t.Errorf("%s: %s, want %s", c.word, text, c.want)
		}
	}
}

func TestTheMedianOfTwoIsTheirMean(t *testing.T) {
	for want, list := range map[time.Duration][]time.Duration{3: {9, 3, 1}, 2: {3, 1}, 7: {7}} {
		if got := (&waits{list: list}).medianWait(); got != want {
			t.Errorf("%v: %d, want %d", list, got, want)
		}
	}
}

func TestEveryReportOfTheCatalogueSaysWhatItIsForAndWhatItTakes(t *testing.T) {
	name := regexp.MustCompile(`^[a-z_]+$`)
	seen := map[string]bool{}
	for _, e := range Catalogue() {
		if !name.MatchString(e.Name) || seen[e.Name] || e.Title == "" || !strings.HasSuffix(e.About, ".") || e.make == nil {
			t.Errorf("%s: %+v", e.Name, e)
		}
		seen[e.Name] = true
		params := map[string]bool{}
		for _, p := range e.Parameters {
			if !name.MatchString(p.Name) || params[p.Name] || p.Title == "" || !strings.HasSuffix(p.About, ".") || p.Most < 1 || p.Default == nil || p.Words == nil {
				t.Errorf("%s: %+v", e.Name, p)
			}
			params[p.Name] = true
			if p.Kind == ParamChoice && (len(p.Default) != 1 || !slices.Contains(p.Words, p.Default[0])) {
				t.Errorf("%s: the default of %s is none of its words", e.Name, p.Name)
			}
			for _, reserved := range []string{"report", "format", "download", "consistency", "max_age"} {
				if p.Name == reserved {
					t.Errorf("%s: %s has a meaning for all reports", e.Name, p.Name)
				}
			}
		}
		if _, err := json.Marshal(e); err != nil {
			t.Error(err)
		}
	}
}

func TestTheTableByDayHasABoundAndSaysWhatIsLeftOut(t *testing.T) {
	ann, bob := "ann", "bob"
	answer := v1.Usage{Labels: []string{"2026-10-01", "2026-10-02"}, Groups: []v1.UsageGroup{{Values: []*string{&ann}}, {Values: []*string{&bob}}}}
	answer.By, answer.Measures = []string{"user_id"}, []v1.Measure{{Name: "records", Kind: "count"}}
	for _, n := range []json.Number{"1", "2", "3", "0"} {
		answer.Measures[0].Values = append(answer.Measures[0].Values, &n)
	}
	for most, want := range map[int]string{3: "", 2: "The table by day has the first 2 lines, up to 2026-10-01; 1 more are not in it."} {
		s := &summary{o: SummaryOptions{By: []string{"user_id"}, Bucket: "day"}, periods: []Period{{Name: "October 2026"}}, answers: []*v1.Usage{&answer}}
		rows, notes := s.dailyTable(most).Rows, strings.Join(s.notes, " ")
		if len(rows) != most || !strings.HasPrefix(notes, want) || (want == "") != (notes == "") {
			t.Errorf("%d: %v %s", most, rows, notes)
		}
	}
	e, err := Find("summary")
	if err != nil || e.Param("top").Default[0] != "100" {
		t.Error("a summary that is asked for by name has all lines", err)
	}
}

// emptied knows the groups of records that are all gone.
type emptied struct{ v1.Caller }

func (emptied) Call(_ context.Context, _, _ string, query url.Values, _, into any) error {
	answer := v1.Usage{}
	if cms := "cms"; query.Get("by") == "group_id" {
		answer.Records, answer.Groups = 2, []v1.UsageGroup{{Values: []*string{&cms}}}
	}
	text, err := json.Marshal(answer)
	return errors.Join(err, json.Unmarshal(text, into))
}

func TestOwnBudgets_OfAllOrNone_AskNothing(t *testing.T) {
	all := []v1.Budget{{Name: "teaching"}}
	everything := statement{o: &StatementOptions{}} // it has no API that it could ask
	if own, err := everything.ownBudgets(t.Context(), all); err != nil || len(own) != 1 {
		t.Errorf("%v, %v", own, err)
	}
	someone := statement{o: &StatementOptions{Of: map[string]string{"user_id": "alice"}}}
	if own, err := someone.ownBudgets(t.Context(), nil); err != nil || len(own) != 0 {
		t.Errorf("%v, %v", own, err)
	}
}

func TestWhoNeverHadARecordIsNamed(t *testing.T) {
	n := absent{of: "report summary", where: map[string]string{"group_id": "cms"}, periods: []string{"2031"}}
	if err := n.checkAnswers(t.Context(), v1.API{Caller: emptied{}}, []*v1.Usage{{}}); !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "no record of group_id cms ran in 2031, nor in any other month") {
		t.Error(err)
	}
	n.periods = []string{"30d", "last-month"}
	if err := n.checkAnswers(t.Context(), v1.API{Caller: emptied{}}, []*v1.Usage{{}}); err == nil || !strings.Contains(err.Error(), "ran in the last 30 days and last-month, nor in any other month") {
		t.Error(err)
	}
}

// A percentage is drawn on an axis from 0 to at least 100, whatever the greatest is.
func TestChart_OfPercentages_HasAxisToHundred(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 300 {
		most := float64(random.IntN(1001)) / 1000
		if random.IntN(4) == 0 {
			most *= 60
		}
		kind := []string{Ratio, Share}[random.IntN(2)]
		table := Table{
			Name: "t", Title: "Use", Columns: []Column{{Name: "who", Title: "Who", Kind: Text}, {Name: "a", Title: "A", Kind: kind}},
			Rows: [][]Cell{{v1.Words("x"), v1.Rat(new(big.Rat).SetFloat64(most))}, {v1.Words("y"), v1.Rat(new(big.Rat).SetFloat64(most / 2))}},
		}
		for _, chart := range []string{Line, Steps, Columns} {
			table.Chart = &Chart{Kind: chart, Label: "who", Values: []string{"a"}}
			drawn := string(table.drawChart(nil))
			ticks := regexp.MustCompile(`text-anchor="end">([0-9.]+)\x{202f}%<`).FindAllStringSubmatch(drawn, -1)
			if len(ticks) < 2 || len(ticks) > 9 {
				t.Fatalf("%s of %v has the ticks %v: %s", chart, most, ticks, drawn)
			}
			last, err := strconv.ParseFloat(ticks[len(ticks)-1][1], 64)
			if err != nil || ticks[0][1] != "0" || last < max(100, most*100-0.05) || most <= 1 && chart != Steps && last != 100 {
				t.Fatalf("%s of %v has the ticks %v: %v", chart, most, ticks, err)
			}
		}
		table.Chart = &Chart{Kind: Bars, Label: "who", Values: []string{"a"}}
		want := fmt.Sprintf(`width="%s"`, formatTenth(most/max(most, 1)*(chartWidth-labelWidth-figureWidth)))
		if drawn := string(table.drawChart(nil)); !strings.Contains(drawn, want) {
			t.Fatalf("bars of %v lack %s: %s", most, want, drawn)
		}
	}
}

func TestCentre_MonthOfWhichAPartIsKnown_IsNamed(t *testing.T) {
	month := func(m time.Month) v1.Time { return v1.Time{Time: time.Date(2026, m, 1, 0, 0, 0, 0, time.UTC)} }
	some, answer := json.Number("1"), v1.Usage{Labels: []string{"2026-08", "2026-09", "2026-10", "2026-11"}, Partial: []bool{true, true, false, true}}
	answer.Edges = []v1.Time{month(8), month(9), month(10), month(11), {Time: month(11).AddDate(0, 0, 20)}}
	answer.Measures = []v1.Measure{{Name: "Cores", Values: []*json.Number{nil, &some, &some, &some}}}
	b := &board{statement: statement{zone: time.UTC}}
	b.notePartialMonths(&answer, answer.Edges[4].Time)
	if want := []string{"Month by month: only a part of September 2026 is known."}; !slices.Equal(b.notes, want) {
		t.Errorf("%q, want %q", b.notes, want)
	}
}

// A server takes an address of 64 KiB.
func TestJobFilter_ManyLongNames_FitInAnAddress(t *testing.T) {
	for _, long := range []int{5, 40, 60, 400} {
		f := jobFilter{keys: Keys{}.Whole(), meta: map[string]v1.MetaTest{}, owners: map[[2]string]bool{}}
		for i := range 400 {
			f.owners[[2]string{fmt.Sprintf("%s/%d", strings.Repeat("g", long), i), fmt.Sprintf("/DC=%s %d", strings.Repeat("ü", long/2), i)}] = true
		}
		f.narrowMeta()
		address := v1.ListRecordsAddress(&v1.ListRecordsQuery{Meta: f.meta}, "ndjson")
		if len(address) > 50<<10 {
			t.Errorf("with names of %d letters the address has %d bytes", long, len(address))
		}
		if long == 5 && len(f.meta) == 0 {
			t.Error("the server is not asked for the few names")
		}
	}
}
