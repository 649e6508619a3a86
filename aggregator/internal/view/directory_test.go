package view_test

import (
	"encoding/json"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestDirectory_Parts_HaveRowsAndNotes(t *testing.T) {
	at := march(12)
	d := v1.Directory{
		At:       at,
		Projects: []v1.Project{{ID: "guests", PI: "bell", PIName: "A. Bell", Groups: []string{"a,b", "c"}, Exempt: true, Since: at}, {ID: "higgs", Users: []string{"eve"}}},
		People:   []v1.Person{{ID: "ann", Name: "Ann Onyma", Groups: []string{"c"}, Project: "higgs"}}, HostClasses: []v1.HostClass{{ID: "gpu", Pattern: "^gpu"}, {ID: "node", Pattern: "^n", SUFactor: new(json.Number("1.900000"))}},
		Contributions: []v1.Contribution{{ID: "old", By: "phys", Credit: "bell", Amount: "2000.000000", Split: "25", SUFactor: "1", Units: "500.5", To: at}},
		Unclaimed:     &v1.Unclaimed{From: at, Lines: []v1.UnclaimedUsage{{User: "eve", Records: 1200}}, More: 1100},
	}
	wantExactList(t, view.Projects(d, "Europe/Berlin"), `project|pi|name|groups|users|exempt|since|until
guests|bell|A. Bell|a\,b,c||yes|2026-03-01T12:00:00Z|
higgs||||eve|||
As of 2026-03-01 13:00:00 Europe/Berlin. Other parts: people (1), classes of hosts (2), contributions (1); see bursar directory -h.`)
	wantExactList(t, view.People(d), "id|name|email|groups|project|pi\nann|Ann Onyma||c|higgs|\nThe project is that of records without a group.")
	wantExactList(t, view.Contributions(d), "contribution|by|credit|amount|split|factor|units|from|to\nold|phys|bell|2000|25|1|500.5||2026-03-01T12:00:00Z")
	wantExactList(t, view.Unclaimed(d, "UTC"), "group|user|records\n|eve|1200\nThere are 1 100 more with fewer records.")
	if l := view.HostClasses(d); l.Rows[1][2].String() != "1.9" {
		t.Errorf("the factor in files is %s, want 1.9", l.Rows[1][2])
	}
	for name, c := range map[string]struct {
		units *v1.ServiceUnits
		note  string
	}{
		"no units":  {nil, ""},
		"no factor": {&v1.ServiceUnits{}, " What has no factor is counted apart."},
		"a factor":  {&v1.ServiceUnits{DefaultFactor: new(json.Number("0.50"))}, " What has no factor has 0.5."},
	} {
		t.Run(name, func(t *testing.T) {
			d.ServiceUnits = c.units
			wantExactList(t, view.HostClasses(d), "class|pattern|factor\ngpu|^gpu|\nnode|^n|1.9\nThe first class whose pattern matches counts."+c.note)
		})
	}
}

func TestUnclaimed_NothingIsLeft_SaysSoWithItsTime(t *testing.T) {
	at := march(12)
	wantExactList(t, view.Unclaimed(v1.Directory{At: at, Unclaimed: &v1.Unclaimed{From: at}}, "Europe/Berlin"),
		"group|user|records\nThe projects of 2026-03-01 13:00:00 Europe/Berlin claim everything that ran since 2026-03-01 13:00:00 Europe/Berlin.")
}
