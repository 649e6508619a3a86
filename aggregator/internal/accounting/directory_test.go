package accounting

import (
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
)

// day is the first instant of a date.
func day(t testing.TB, text string) record.Time {
	t.Helper()
	at, err := ParseTime(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func parsedDecimal(t testing.TB, text string) Decimal {
	t.Helper()
	d, err := ParseDecimal(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func made(t testing.TB, set DirectorySettings, told ...SourcePeople) *Directory {
	t.Helper()
	d, err := NewDirectory(set, told)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// project is one that is always there.
func project(id, pi string, groups ...string) Project {
	return Project{ID: id, From: record.None, To: record.None, Place: id + ".hcl:1", States: []ProjectState{{From: record.None, PI: pi, Groups: groups, Place: id + ".hcl:1"}}}
}

func TestAGroupThatMovesAndAnInvestigatorWhoChangesAreDated(t *testing.T) {
	moved, follows := day(t, "2026-07-01"), day(t, "2026-09-01")
	a := project("a", "bell", "g", "h")
	a.States = append(a.States, ProjectState{From: moved, PI: "bell", Groups: []string{"h"}}, ProjectState{From: follows, PI: "sagan", Groups: []string{"h"}})
	b := project("b", "huygens")
	b.States = append(b.States, ProjectState{From: moved, PI: "huygens", Groups: []string{"g"}})
	d := made(t, DirectorySettings{Projects: []Project{a, b}})
	for _, c := range []struct {
		group, project, pi string
		at                 record.Time
	}{
		{"g", "a", "bell", moved - 1}, {"g", "b", "huygens", moved}, {"g", "b", "huygens", follows},
		{"h", "a", "bell", follows - 1}, {"h", "a", "sagan", follows}, {"x", "", "", follows},
	} {
		p, _ := d.Project("", c.group, c.at)
		pi, _ := d.PI(p, c.at)
		if p != c.project || pi != c.pi {
			t.Errorf("%s at %s: %q %q, want %q %q", c.group, c.at, p, pi, c.project, c.pi)
		}
	}
	keys := d.Keys()
	if got := []string{keys[0].Name, keys[1].Name, keys[2].Name}; !slices.Equal(got, []string{"project", "pi", "exempt"}) {
		t.Error(got)
	}
	if !slices.Equal(keys[0].Cuts, []record.Time{moved}) || !slices.Equal(keys[1].Cuts, []record.Time{moved, follows}) {
		t.Error(keys[0].Cuts, keys[1].Cuts)
	}
}

func TestAUserHasTheProjectThatClaimsHimBeforeThatOfTheGroup(t *testing.T) {
	p, q := project("p", "bell", "g", "other"), project("q", "sagan")
	q.States[0].Users = []string{"ann"}
	q.States[0].From, q.From = day(t, "2026-01-01"), day(t, "2026-01-01")
	bob := Person{ID: "bob", Groups: []Groups{{From: record.None, Names: []string{"g", "h"}}}}
	told := SourcePeople{People: []Person{{ID: "bob", Name: "Bob", Groups: []Groups{{From: record.None, Names: []string{"x"}}}}, {ID: "eve", Groups: []Groups{{From: record.None, Names: []string{"other"}}}}}}
	d := made(t, DirectorySettings{Projects: []Project{p, q}, People: []Person{bob}}, told)
	key := d.Keys()[0]
	now := day(t, "2026-06-01")
	for _, c := range []struct {
		user, group, want string
		at                record.Time
	}{
		{"ann", "g", "q", now}, {"ann", "g", "p", day(t, "2025-12-31")}, {"bob", "", "p", now}, {"bob", "zoo", "", now},
		{"eve", "", "p", now}, {"nobody", "", "", now}, {"", "g", "p", now}, {"", "", "", now},
	} {
		got, has := key.Of([]string{c.user, c.group}, []bool{c.user == "", c.group == ""}, c.at)
		if got != c.want || has != (c.want != "") {
			t.Errorf("%s of %s at %s: %q %v, want %q", c.user, c.group, c.at, got, has, c.want)
		}
	}
	if name, _ := d.Name("bob"); name != "Bob" {
		t.Error(name)
	}
	if got := d.Groups("bob", now); !slices.Equal(got, []string{"g", "h"}) {
		t.Error("what a source tells counts beside the configuration:", got)
	}
}

func TestTwoClaimsOfOneThingAreAnErrorWithBothPlaces(t *testing.T) {
	b := project("b", "sagan", "g")
	b.States[0].From = day(t, "2026-07-01")
	twice := project("c", "sagan")
	twice.States[0].Users = []string{"ann"}
	table := DirectoryTable{File: "people.csv", Columns: []string{"user", "project", "pi"}, Rows: [][]string{{"ann", "d"}, {"", "c", "bell"}}, Lines: []int{2, 3}}
	_, err := NewDirectory(DirectorySettings{Projects: []Project{project("a", "bell", "g"), b, twice}, Tables: []DirectoryTable{table}}, nil)
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{
		`b.hcl:1: group "g" is claimed by project "b" here, and at a.hcl:1 it is claimed by project "a", both from 2026-07-01T00:00:00Z on`,
		`people.csv:2: user "ann" is claimed by project "d" here, and at c.hcl:1 it is claimed by project "c", both for all time`,
		`people.csv:3: project "c" has the principal investigator "bell" here, and at c.hcl:1 it has the principal investigator "sagan", both for all time`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestWhatIsSaidAgainIsNoContradiction(t *testing.T) {
	text := "project;group;user;pi;from;to;name\np;g;ann;bell;;;Ann\np;g;bob;bell;;;\np;g;;;2026-01-01;2026-02-01;\n"
	table, err := ReadDirectoryTable("x.csv", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	d := made(t, DirectorySettings{Tables: []DirectoryTable{table}, Projects: []Project{project("p", "bell", "g")}})
	if p, _ := d.Project("bob", "", 0); p != "p" || len(d.Keys()[0].Cuts) != 0 {
		t.Error(p, d.Keys()[0].Cuts)
	}
}

func TestAFactorThatChangesHoldsFromItsTimeOn(t *testing.T) {
	later := day(t, "2012-10-05")
	d := made(t, DirectorySettings{Classes: []Class{
		{ID: "gpu", Pattern: "^kat-gpu", Factors: []Factor{{From: later, Factor: parsedDecimal(t, "2.7")}}},
		{ID: "kat", Pattern: "^kat-", Factors: []Factor{{From: record.None, Factor: One}, {From: later, Factor: parsedDecimal(t, "1.5")}}},
	}})
	for host, want := range map[string]string{"kat-gpu1": "gpu", "kat-n1": "kat", "xkat-n1": ""} {
		if got, _ := d.Classes()[0].Of(host); got != want {
			t.Errorf("%s is %q, want %q", host, got, want)
		}
	}
	w, ok := d.Units()
	if !ok || w.Unit != "SU" || !slices.Equal(w.From, []string{"host_class"}) || !slices.Equal(w.Cuts, []record.Time{later}) {
		t.Errorf("%+v", w)
	}
	of := func(class string, at record.Time) int64 {
		v, has := w.Of("Cores", record.Rate, []string{class}, []bool{class == ""}, at)
		if !has {
			return -1
		}
		return v
	}
	got := []int64{of("kat", later-1), of("kat", later), of("gpu", later-1), of("gpu", later), of("", later)}
	if want := []int64{1e9, 15e8, -1, 27e8, -1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, has := w.Of("Cores", record.Total, []string{"kat"}, []bool{false}, later); has {
		t.Error("cores that are a total have a worth by the hour")
	}
}

func TestWithoutProjectsAndClassesNoKeyIsHidden(t *testing.T) {
	d := made(t, DirectorySettings{People: []Person{{ID: "bell", Name: "A. Bell"}}})
	if _, ok := d.Units(); ok || d.Keys() != nil || d.Classes() != nil {
		t.Error("an empty directory has keys")
	}
	one := One
	if w, ok := made(t, DirectorySettings{Units: UnitRates{Default: &one}}).Units(); !ok || w.From != nil {
		t.Errorf("%+v", w)
	}
}

func TestDecimalsAreExact(t *testing.T) {
	for text, want := range map[string]string{"1.9": "1.9", "12": "12", "0.000000001": "0.000000001", "1.50": "1.5", "007.0000000000": "7", "1000000000": "1000000000"} {
		d, err := ParseDecimal(text)
		if err != nil || d.String() != want {
			t.Errorf("%s: %s %v", text, d, err)
		}
	}
	for _, text := range []string{"", "-1", "1.", ".5", "1e3", "0.0000000001", "1000000000.1", "99999999999999999999", "٣"} {
		if d, err := ParseDecimal(text); err == nil {
			t.Errorf("%q is %s", text, d)
		}
	}
	if p, ok := parsedDecimal(t, "1.9").times(parsedDecimal(t, "0.333333333")); !ok || p.String() != "0.633333333" {
		t.Error(p, ok)
	}
	if _, ok := (most * One).times(2 * One); ok {
		t.Error("a product that does not fit is one")
	}
}

func TestWhatCannotBeIsSaidWithItsPlace(t *testing.T) {
	late := project("late", "x")
	late.To = day(t, "2020-01-01")
	late.States[0].From = day(t, "2021-01-01")
	back := project("back", "x")
	back.States = append(back.States, ProjectState{From: day(t, "2021-01-01"), Place: "p:2"}, ProjectState{From: day(t, "2020-01-01"), Place: "p:3"}, ProjectState{Place: "p:4", From: record.None})
	_, err := NewDirectory(DirectorySettings{
		UserKey: strings.Repeat("x", 300), Projects: []Project{late, back, project("", ""), project("tab\tbed", "x", "")},
		Classes: []Class{{ID: "c", Pattern: "(", Place: "p:5"}, {ID: "d", Pattern: "x", Place: "p:6"}, {ID: "d", Pattern: "", Place: "p:7"}, {ID: "d", Pattern: "y", Place: "p:8"}},
		Units:   UnitRates{Rates: []UnitRate{{Component: "Cores", Worth: One, Place: "p:9"}, {Component: "Cores", Worth: One, Place: "p:10"}}},
		Contributions: []Contribution{
			{ID: "c", By: "x", Split: 101 * One, From: record.None, To: record.None, Place: "p:11"}, {ID: "d", From: record.None, To: record.None, Place: "p:12"},
			{ID: "e", By: "x", From: day(t, "2020-01-01"), To: day(t, "2020-01-01"), Place: "p:13"},
		},
	}, nil)
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{
		"user_key", "late.hcl:1: it ends at 2020-01-01T00:00:00Z", "p:3: this holds from 2020", "p:4: it is not said from when", "the name of a project is empty", "control characters",
		"p:5: host_class \"c\": invalid pattern \"(\": missing closing )", "p:7: host_class \"d\": the pattern is empty", "p:8: duplicate host_class \"d\"", "p:10: the component \"Cores\" has a worth twice",
		"p:11: the split is 101 %", "p:12: the name of a contributor is empty", "p:13: it ends",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
