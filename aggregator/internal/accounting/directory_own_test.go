package accounting_test

import (
	"reflect"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestOwn_OfAUserALeaderAndAPrincipalInvestigator_IsWhatTheDirectorySaysThen(t *testing.T) {
	day := func(text string) record.Time {
		at, err := accounting.ParseTime(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	d, err := accounting.NewDirectory(accounting.DirectorySettings{
		People: []accounting.Person{{ID: "lead", Leads: []string{"cms"}}},
		Projects: []accounting.Project{
			{ID: "bell", From: record.None, To: record.None, States: []accounting.ProjectState{
				{From: record.None, PI: "pi", Groups: []string{"atlas"}},
				{From: day("2026-07-01"), PI: "next", Groups: []string{"atlas"}, Users: []string{"guest"}},
			}},
			{ID: "dark", From: record.None, To: record.None, States: []accounting.ProjectState{{From: record.None, PI: "other", Users: []string{"eve"}}}},
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	user := func(names ...string) []store.MetaTest { return []store.MetaTest{{Key: "user_id", Any: names}} }
	atlas := func(lacks ...string) []store.MetaTest {
		return []store.MetaTest{{Key: "group_id", Any: []string{"atlas"}}, {Key: "user_id", Lacks: lacks}}
	}
	for _, c := range []struct {
		who, at string
		want    [][]store.MetaTest
	}{
		{"", "2026-08-01", nil},
		{"alice", "2026-08-01", [][]store.MetaTest{user("alice")}},
		{"lead", "2026-08-01", [][]store.MetaTest{user("lead"), {{Key: "group_id", Any: []string{"cms"}}}}},
		{"pi", "2026-06-01", [][]store.MetaTest{user("pi"), atlas("eve")}},
		{"pi", "2026-08-01", [][]store.MetaTest{user("pi")}},
		{"next", "2026-08-01", [][]store.MetaTest{user("next"), user("guest"), atlas("eve")}},
		{"other", "2026-08-01", [][]store.MetaTest{user("other"), user("eve")}},
	} {
		if got := d.Own(c.who, day(c.at)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s at %s: %+v, want %+v", c.who, c.at, got, c.want)
		}
	}
}
