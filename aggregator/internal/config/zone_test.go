package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// dated is a configuration in which dates stand wherever they can; each %s takes a zone.
const dated = `
aggregator {
  name     = "a"
  data_dir = "/tmp"
}
price "standard" {
  currency = "EUR"
  from     = "2026-01-01"
  to       = "2026-10-25T02:30"
  %[1]s
  per "Cores" { hour = 0.01 }
}
budget "month" {
  group  = "x"
  unit   = "core-hours"
  amount = 1
  period = "month"
  %[1]s
}
budget "single" {
  group  = "x"
  unit   = "core-hours"
  amount = 1
  from   = "2026-Q2"
  to     = "2027-01-01"
  %[1]s
}
cluster "c" {
  %[1]s
  capacity {
    components = { Cores = 10 }
    to         = "2026-03-29"
  }
}
project "p" {
  pi   = "bell"
  from = "2026-04-01"
  since "2026-07-01" { pi = "huygens" }
}
contribution "k" {
  by     = "bell"
  amount = "1"
  from   = "2026-04-01"
}
directory { files = ["people.csv"] }
action "priority" "p" {
  schedule = "@daily"
  %[1]s
  config {}
}
`

func readShared(t *testing.T, text string) (*config.Shared, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.hcl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "people.csv"), []byte("user,group,from\nann,cms,2026-04-01\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, diags := config.LoadOffline(file)
	if err := diags.Err(); err != nil {
		return nil, err
	}
	return config.ReadShared(c.Shared())
}

func TestZone_OfTheSite_IsThatOfAllThatNamesNone(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Berlin", "Pacific/Kiritimati", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"} {
		site, err := readShared(t, fmt.Sprintf("zone = %q\n", zone)+fmt.Sprintf(dated, ""))
		if err != nil {
			t.Fatal(err)
		}
		each, err := readShared(t, fmt.Sprintf("zone = \"Asia/Tokyo\"\n"+dated, fmt.Sprintf("zone = %q", zone)))
		if err != nil {
			t.Fatal(err)
		}
		if site.Zone != zone || !slices.Contains(site.Zones, zone) || !slices.Contains(site.Zones, "UTC") || each.Zone != "Asia/Tokyo" {
			t.Errorf("%s: zone %s, sums in %v", zone, site.Zone, site.Zones)
		}
		if site.Actions[0].Zone != zone || each.Actions[0].Zone != zone {
			t.Errorf("%s: the action's schedule is in %s and %s", zone, site.Actions[0].Zone, each.Actions[0].Zone)
		}
		for _, s := range []*config.Shared{site, each} { // where they stand
			for i := range s.Money.Lists {
				s.Money.Lists[i].Places = nil
				for k := range s.Money.Lists[i].Rules {
					r := &s.Money.Lists[i].Rules[k]
					r.Places, r.Hour, r.HourAt = nil, hcl.Decimal{}, hcl.Range{}
				}
			}
		}
		if d := cmp.Diff(each.Money.Lists, site.Money.Lists); d != "" {
			t.Errorf("%s: prices:\n%s", zone, d)
		}
		for i := range site.Money.Budgets {
			if a, b := each.Money.Budgets[i], site.Money.Budgets[i]; a.Zone != b.Zone || a.From != b.From || a.To != b.To || b.Zone != zone {
				t.Errorf("%s: budgets %+v and %+v", zone, a, b)
			}
		}
		clock, err := calendar.Zone(zone)
		if err != nil {
			t.Fatal(err)
		}
		april, july := record.FromStd(time.Date(2026, 4, 1, 0, 0, 0, 0, clock)), record.FromStd(time.Date(2026, 7, 1, 0, 0, 0, 0, clock))
		d := site.Directory
		if p, c := d.Projects[0], d.Contributions[0]; p.From != april || p.States[1].From != july || c.From != april || d.Tables[0].Zone != zone {
			t.Errorf("%s: project %+v, contribution %+v, table of %s", zone, p, c, d.Tables[0].Zone)
		}
		if a, b := each.Capacity.Clusters[0].Parts[0].To, site.Capacity.Clusters[0].Parts[0].To; a != b {
			t.Errorf("%s: the part of the cluster ends at %s and %s", zone, a, b)
		}
	}
}

func TestZone_NotWritten_IsUTC(t *testing.T) {
	s, err := readShared(t, fmt.Sprintf(dated, ""))
	if err != nil || s.Zone != "UTC" || !slices.Equal(s.Zones, []string{"UTC"}) || s.Money.Budgets[0].Zone != "UTC" {
		t.Errorf("%v %+v", err, s)
	}
}

func TestZone_ThatIsNone_IsRefusedAtItsPlace(t *testing.T) {
	_, err := readShared(t, "zone = \"Europe/Brelin\"\n"+fmt.Sprintf(dated, ""))
	if err == nil || !strings.Contains(err.Error(), "a.hcl:1") || !strings.Contains(err.Error(), `there is no time zone "Europe/Brelin"`) || strings.Count(err.Error(), "Brelin") != 1 {
		t.Error(err)
	}
}
