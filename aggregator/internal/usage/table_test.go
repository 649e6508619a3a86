package usage

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"

	"github.com/bursar-accounting/bursar/proto/record"
)

// plain asks without derived keys.
func plain(ask sums.AskFunc) sums.AskFunc {
	return func(ctx context.Context, q sums.Query) (*sums.Answer, error) {
		return (&Derivation{}).Answer(ctx, ask, q)
	}
}

func testWindow(t interface{ Fatal(...any) }, word string) calendar.Window {
	w, err := calendar.ParseWindow(word, 0, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// answerOf makes up an answer of some groups.
func answerOf(t *rapid.T, q sums.Query, groups int) *sums.Answer {
	cells := groups * (len(q.Edges) - 1)
	number := rapid.Uint64Range(0, 9)
	sum := rapid.Map(rapid.Int64Range(-3, 1e18), func(v int64) sums.Sum { return sums.SumOf(max(v, 0)) })
	a := &sums.Answer{Edges: q.Edges, By: q.By, Records: listOf(t, number, cells), Begun: listOf(t, number, cells), Jobs: listOf(t, number, cells), Started: listOf(t, number, cells), Stopped: listOf(t, number, cells),
		Waited: listOf(t, sum, cells), Waiters: listOf(t, number, cells), People: listOf(t, number, cells), CPU: listOf(t, sum, cells), Cores: listOf(t, sum, cells),
		Running: listOf(t, sum, cells), Queued: listOf(t, sum, cells)}
	for g := range groups {
		a.Groups = append(a.Groups, sums.Group{Values: []string{fmt.Sprintf("g,\"%02d", g)}, Lacks: []bool{g == 0 && groups > 1}})
	}
	cores := sums.Component{Name: "Cores", Used: listOf(t, sum, cells)}
	cores.Scores = []sums.Score{{Name: "HS", Used: listOf(t, rapid.Float64Range(0, 1e12), cells), Lacking: listOf(t, sum, cells)}}
	a.Components = []sums.Component{cores, {Name: "Cores", Kind: record.Total, Used: listOf(t, sum, cells)}}
	return a
}

func listOf[T any](t *rapid.T, g *rapid.Generator[T], n int) []T {
	return rapid.SliceOfN(g, n, n).Draw(t, "list")
}

// asJSON is the table as a client sees it.
type asJSON struct {
	Groups []struct {
		Values []*string
		Others int
	}
	Edges    []string
	Measures []struct {
		Name           string
		Values, Totals []*json.Number
		Total          *json.Number
		Compared       *struct{ Before, Difference, Relative []*json.Number }
	}
}

func read(t interface{ Fatal(...any) }, s *Table) asJSON {
	var out asJSON
	if err := json.Unmarshal(s.AppendJSON(nil, []byte(`{}`)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func everything() []string { return append(MeasureWords(), "Cores", "Cores*HS") }

func TestAllFormatsSayTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.IntRange(0, 5).Draw(t, "groups")
		r := Request{Window: testWindow(t, "2026-Q1"), Bucket: calendar.Month, By: []string{"k"}, Measures: everything(),
			Hours: rapid.Bool().Draw(t, "hours"), Top: rapid.IntRange(0, 4).Draw(t, "top"), Order: rapid.SampledFrom([]string{"", "Cores", "wait"}).Draw(t, "order")}
		s, err := MakeTable(context.Background(), plain(func(_ context.Context, q sums.Query) (*sums.Answer, error) { return answerOf(t, q, groups), nil }), r)
		if err != nil {
			t.Fatal(err)
		}
		whole := read(t, s)
		var table bytes.Buffer
		if err := s.CSV(func(b []byte) error { table.Write(b); return nil }); err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(&table).ReadAll()
		if err != nil || len(lines) != 1+len(whole.Groups)*3 {
			t.Fatalf("%d lines of %d groups: %v", len(lines), len(whole.Groups), err)
		}
		var objects bytes.Buffer
		if err := s.NDJSON([]byte(`{}`), func(b []byte) error { objects.Write(b); return nil }); err != nil {
			t.Fatal(err)
		}
		cells := objectsOf(t, objects.Bytes())
		for i, m := range whole.Measures {
			for at, v := range m.Values {
				want := ""
				if v != nil {
					want = v.String()
				}
				if got := lines[1+at][4+i]; got != want {
					t.Fatalf("%s in cell %d: %s in CSV, %s in JSON", m.Name, at, got, want)
				}
				object, ok := cells[lines[1+at][0]+" "+lines[1+at][1]]
				switch {
				case ok && !cmp.Equal(v, object[m.Name]):
					t.Fatalf("%s in cell %d: %v in NDJSON, %s in JSON", m.Name, at, object[m.Name], want)
				case !ok && want != "" && want != "0":
					t.Fatalf("cell %d with %s is left out", at, want)
				}
			}
		}
	})
}

// objectsOf reads lines by the first two columns of the table.
func objectsOf(t *rapid.T, text []byte) map[string]map[string]*json.Number {
	out := map[string]map[string]*json.Number{}
	for line := range bytes.Lines(text) {
		var o struct {
			About    json.RawMessage
			Group    map[string]*string
			Others   int
			Bucket   string
			Measures map[string]*json.Number
		}
		if err := json.Unmarshal(line, &o); err != nil {
			t.Fatal(err)
		}
		name := ""
		if v := o.Group["k"]; v != nil {
			name = *v
		}
		if o.Others > 0 {
			name = fmt.Sprintf("(%d others)", o.Others)
		}
		if o.About == nil {
			out[name+" "+o.Bucket] = o.Measures
		}
	}
	return out
}

func TestTheOthersHaveWhatTheTopHasNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.IntRange(0, 6).Draw(t, "groups")
		var a *sums.Answer
		ask := func(_ context.Context, q sums.Query) (*sums.Answer, error) {
			if a == nil {
				a = answerOf(t, q, groups)
			}
			return a, nil
		}
		r := Request{Window: testWindow(t, "2026-Q1"), Bucket: calendar.Month, By: []string{"k"}, Measures: []string{"Cores", "started", "people"}}
		all, err := MakeTable(context.Background(), plain(ask), r)
		if err != nil {
			t.Fatal(err)
		}
		r.Top = rapid.IntRange(1, 7).Draw(t, "top")
		top, err := MakeTable(context.Background(), plain(ask), r)
		if err != nil {
			t.Fatal(err)
		}
		one, few := read(t, all), read(t, top)
		if len(few.Groups) > r.Top+1 {
			t.Fatalf("%d groups of the top %d", len(few.Groups), r.Top)
		}
		for i, m := range few.Measures {
			if groups > 1 && m.Name == "people" {
				if m.Total != nil {
					t.Fatal("people were added up")
				}
				continue
			}
			if d := cmp.Diff(one.Measures[i].Total, m.Total); d != "" {
				t.Fatal(m.Name, d)
			}
		}
		cores := top.Columns[slices.IndexFunc(top.Columns, func(c Column) bool { return c.Name == "Cores" })]
		for g := 1; g < min(len(top.Groups), r.Top); g++ {
			if cores.whole.sum[g-1].Less(cores.whole.sum[g]) && cores.whole.sum[g].Float() > cores.whole.sum[g-1].Float() {
				t.Fatalf("group %d has more than the one before", g)
			}
		}
	})
}

func TestGroupsOfEitherWindowAreCompared(t *testing.T) {
	now, before := testWindow(t, "2026-03"), testWindow(t, "2026-02")
	ask := func(_ context.Context, q sums.Query) (*sums.Answer, error) {
		names, used, component := []string{"a", "b"}, []int64{4e6, 2e6}, "Cores"
		if q.Edges[0] == before.From {
			names, used, component = []string{"b", "c"}, []int64{1e6, 5e6}, "Cores"
		}
		a := &sums.Answer{Edges: q.Edges, By: q.By, Components: []sums.Component{{Name: component}}}
		for i, n := range names {
			a.Groups = append(a.Groups, sums.Group{Values: []string{n}, Lacks: []bool{false}})
			a.Components[0].Used = append(a.Components[0].Used, sums.SumOf(used[i]))
		}
		if q.Edges[0] == before.From { // what is gone is shown too
			a.Components = append(a.Components, sums.Component{Name: "GPUs", Used: []sums.Sum{sums.SumOf(1e6), {}}})
		}
		a.Records = make([]uint64, 2)
		return a, nil
	}
	s, err := MakeTable(t.Context(), plain(ask), Request{Window: now, Versus: &before, By: []string{"k"}, Order: "Cores"})
	if err != nil {
		t.Fatal(err)
	}
	got := string(s.AppendJSON(nil, []byte("{}")))
	for _, want := range []string{
		`"groups":[{"values":["a"],"others":0},{"values":["b"],"others":0},{"values":["c"],"others":0}]`,
		`"values":[4,2,0],"totals":[4,2,0],"total":6,"lacking":null,"unpriced":null,"without":0,"shared":false,"compared":{"before":[0,1,5],"difference":[4,1,-5],"relative":[null,1,-1]}`,
		`{"name":"GPUs","component":"GPUs","score":null,"kind":"rate","unit":"second","values":[0,0,0],"totals":[0,0,0],"total":0,"lacking":null,"unpriced":null,"without":0,"shared":false,"compared":{"before":[0,1,0],"difference":[0,-1,0],"relative":[null,-1,null]}}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

func TestTable_ChangeOfLessThanNothing_IsNoPart(t *testing.T) {
	now, before := testWindow(t, "2026-03"), testWindow(t, "2026-02")
	ask := func(_ context.Context, q sums.Query) (*sums.Answer, error) {
		cores, cpu := sums.SumOf(4e6), sums.SumOf(1e6)
		if q.Edges[0] == before.From { // more was used than requested
			cores, cpu = sums.SumOf(1e6), sums.SumOf(3e6)
		}
		return &sums.Answer{Edges: q.Edges, Groups: make([]sums.Group, 1), Records: make([]uint64, 1), Cores: []sums.Sum{cores}, CPU: []sums.Sum{cpu}}, nil
	}
	s, err := MakeTable(t.Context(), plain(ask), Request{Window: now, Versus: &before, Measures: []string{"unused"}, CPU: "TotalCPU", Cores: "Cores"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(s.AppendJSON(nil, []byte("{}"))), `"compared":{"before":[-2],"difference":[5],"relative":[null]}`; !strings.Contains(got, want) {
		t.Errorf("no %s in\n%s", want, got)
	}
}

func TestTooManyCellsAreRefusedWithWhatHelps(t *testing.T) {
	for _, known := range []bool{true, false} {
		ask := func(_ context.Context, q sums.Query) (*sums.Answer, error) {
			if q.MaxCells != MaxCells {
				t.Error(q.MaxCells)
			}
			if known {
				return nil, sums.ErrTooMany
			}
			return &sums.Answer{Groups: make([]sums.Group, MaxCells/365)}, nil
		}
		_, err := MakeTable(t.Context(), plain(ask), Request{Window: testWindow(t, "2024"), Bucket: calendar.Day, By: []string{"k"}})
		if !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), "366 buckets") || !strings.Contains(err.Error(), "longer buckets") {
			t.Error(err)
		}
	}
}

func TestManyCellsAreWrittenAsFewAre(t *testing.T) {
	r := Request{Window: testWindow(t, "2026"), Bucket: calendar.Day, By: []string{"user_id"}, Measures: []string{"Cores", "Cores*HEPScore23", "records"}}
	s, err := MakeTable(t.Context(), plain(yearOfUsers), r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		var got []byte
		l := &lines{send: func(piece []byte) error {
			got = append(got, piece...)
			return nil
		}}
		if err := s.sendValues(l, c); err != nil || l.flush(0) != nil || !bytes.Equal(got, s.appendGroupValues(nil, c, 0, len(s.Groups))) {
			t.Errorf("%s is written in another way by several, %v", c.Name, err)
		}
	}
	gone, sent := errors.New("the client is gone"), 0
	err = s.JSON([]byte("{}"), func([]byte) error {
		if sent++; sent == 5 {
			return gone
		}
		return nil
	})
	if !errors.Is(err, gone) || sent != 5 {
		t.Errorf("after %d pieces: %v", sent, err)
	}
}

func TestErrorsOfTheAnswerComeThrough(t *testing.T) {
	broken := errors.New("the disk is broken")
	_, err := MakeTable(t.Context(), plain(func(context.Context, sums.Query) (*sums.Answer, error) { return nil, broken }), Request{Window: testWindow(t, "2026")})
	if !errors.Is(err, broken) || errors.Is(err, ErrRequest) {
		t.Error(err)
	}
}
