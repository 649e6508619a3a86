package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// odd are values that a list has to escape, and values that look as if it had.
func odd(n int) []string {
	list := []string{"oak", "elm", "oak,elm", `oak\,elm`, `oak\`, `oak\,`, `\,`, ",", `DOMAIN\user`, `\\server\share`, `a=b,c=d`, `"quoted", twice`, " oak", "x,", ",x"}
	some := rapid.StringOfN(rapid.SampledFrom([]rune{',', '\\', '=', ' ', '"', '\'', '&', '[', ']', 'a', 'b', 'é'}), 1, 8, -1)
	for seed := 0; len(list) < n; seed++ {
		if v := some.Example(seed); strings.TrimSpace(v) != "" && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// oddWorld has a run of each value as a group, a user and the name of a component, in
// February, of as many core-hours as its place says.
func oddWorld(t *testing.T, values []string) *apitest.World {
	w := apitest.New(t)
	var list []record.Record
	for i, v := range values {
		r := apitest.Job{ID: fmt.Sprintf("r%03d", i), Group: v, User: v, Start: "2026-02-02T00:00:00Z", Stop: "2026-02-02T01:00:00Z", Cores: int64(i + 1)}.Record()
		r.Components = append(r.Components, record.Component{Name: v, Amount: int64(i + 1), Kind: record.Rate})
		list = append(list, r)
	}
	w.Post(list...)
	return w
}

func (s shell) json(t *testing.T, into any, args ...string) {
	t.Helper()
	code, out, errs := s.bursar(t.Context(), append(args, "-format", "json")...)
	if code != 0 {
		t.Errorf("%q: %d %s", args, code, errs)
		return
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Errorf("%q: %v\n%s", args, err, out)
	}
}

func TestLists_EachValueOfARow_IsAskedForByItsName(t *testing.T) {
	values := odd(40)
	s := at(oddWorld(t, values).Serve())
	for _, key := range []string{"group_id", "user_id"} {
		var all v1.Usage
		s.json(t, &all, "usage", "-window", "2026-02", "-by", key, "-measure", "Cores")
		if len(all.Groups) != len(values) {
			t.Fatalf("%d groups, want %d", len(all.Groups), len(values))
		}
		for g, group := range all.Groups {
			value, figure := *group.Values[0], string(*all.Measures[0].Totals[g])
			one := key + "=" + v1.JoinList(value)
			if want := fmt.Sprint(slices.Index(values, value) + 1); strings.TrimSuffix(figure, ".000000") != want {
				t.Errorf("%q has %s, want %s", value, figure, want)
			}
			for _, option := range []string{"-where", "-meta"} {
				var asked v1.Usage
				s.json(t, &asked, "usage", "-window", "2026-02", "-measure", "Cores", option, one)
				if len(asked.Measures) != 1 || string(*asked.Measures[0].Total) != figure {
					t.Errorf("usage %s %s: %+v, want %s", option, one, asked.Measures, figure)
				}
			}
			_, out, errs := s.bursar(t.Context(), "records", "-where", one, "-format", "json")
			if strings.Count(out, "\n") != 1 || !strings.Contains(out, fmt.Sprintf(`"r%03d"`, slices.Index(values, value))) {
				t.Errorf("records -where %s: %s%s", one, out, errs)
			}
		}
	}
	for _, value := range values[:18] {
		want := fmt.Sprint(slices.Index(values, value) + 1)
		if strings.TrimSpace(value) != value { // of lists of measures in reports the spaces around commas do not count
			continue
		}
		for _, report := range [][]string{
			{"statement", "-period", "2026-02", "-of", "group_id=" + v1.JoinList(value)},
			{"person", "-period", "2026-02", "-user", value},
			{"projects", "-period", "2026-02", "-of", "group_id=" + v1.JoinList(value)},
			{"usage", "-period", "2026-02", "-by", "user_id", "-where", "group_id=" + v1.JoinList(value), "-measure", "Cores"},
			{"usage", "-period", "2026-02", "-by", "user_id", "-where", "group_id=" + v1.JoinList(value), "-measure", v1.JoinList("records", strings.TrimSpace(value))},
			{"summary", "-period", "2026-02", "-where", "group_id=" + v1.JoinList(value)},
			{"efficiency", "-period", "2026-02", "-where", "group_id=" + v1.JoinList(value)},
		} {
			_, out, errs := s.bursar(t.Context(), append([]string{"report"}, append(report, "-format", "csv")...)...)
			if !hasFigure(out, want) {
				t.Errorf("report %q has no %s:\n%s%s", report, want, out, errs)
			}
		}
		var asked v1.Usage
		s.json(t, &asked, "usage", "-window", "2026-02", "-measure", v1.JoinList(value))
		if len(asked.Measures) != 1 || asked.Measures[0].Component != v1.Text(value) {
			t.Errorf("usage -measure %q: %+v", v1.JoinList(value), asked.Measures)
		}
	}
}

// hasFigure reports whether a cell of a table in CSV is a number.
func hasFigure(text, want string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == '\n' || c == '\r' }), func(cell string) bool { return cell == want })
}

func TestLists_SeveralValues_MatchAnyOfThem(t *testing.T) {
	values := odd(40)
	s := at(oddWorld(t, values).Serve())
	rapid.Check(t, func(rt *rapid.T) {
		some := rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, 4, rapid.ID).Draw(rt, "values")
		want, ids := 0, 0
		for _, v := range some {
			want += slices.Index(values, v) + 1
			ids++
		}
		list := "group_id=" + v1.JoinList(some...)
		repeated := []string{"usage", "-window", "2026-02", "-measure", "Cores"}
		for _, v := range some {
			repeated = append(repeated, "-where", "group_id="+v1.JoinList(v))
		}
		for _, args := range [][]string{{"usage", "-window", "2026-02", "-measure", "Cores", "-where", list}, {"usage", "-window", "2026-02", "-measure", "Cores", "-meta", list}, repeated} {
			var asked v1.Usage
			s.json(t, &asked, args...)
			if len(asked.Measures) != 1 || strings.TrimSuffix(string(*asked.Measures[0].Total), ".000000") != fmt.Sprint(want) {
				rt.Fatalf("%q: %+v, want %d", args, asked.Measures, want)
			}
		}
		_, out, errs := s.bursar(t.Context(), "records", "-where", list, "-format", "json")
		if strings.Count(out, "\n") != ids {
			rt.Fatalf("records -where %s: %d lines, want %d\n%s", list, strings.Count(out, "\n"), ids, errs)
		}
		for _, report := range [][]string{{"usage", "-by", "user_id", "-measure", "Cores", "-where", list}, {"projects", "-of", list}} {
			_, out, errs = s.bursar(t.Context(), append([]string{"report", "-period", "2026-02", "-format", "csv"}, report...)...)
			for _, v := range some {
				if !hasFigure(out, fmt.Sprint(slices.Index(values, v)+1)) {
					rt.Fatalf("report %q has not %q:\n%s%s", report, v, out, errs)
				}
			}
		}
	})
}
