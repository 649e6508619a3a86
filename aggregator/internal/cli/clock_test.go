package cli_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
)

// instants finds times in a text.
var instants = regexp.MustCompile(`\d{4}-\d{2}-\d{2}( \d{2}:\d{2}(:\d{2})?)?`)

// People read all times by the site's clock, and are told so; programs read them in UTC.
func TestTimes_OfASiteWithAZone_AreThoseOfItsClock(t *testing.T) {
	const name = "Asia/Kolkata" // half an hour beside all others
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	site := time.UTC
	show := func(s shell, line string) (out, notes string) {
		t.Helper()
		_, out, notes = s.bursar(t.Context(), strings.Fields(line)...)
		return out, notes
	}
	s, w := filled(t)
	w.Options.Actions, w.Options.Members, w.Options.Snapshots = troubled(), trioMembers(), noSnapshots{}
	w.Options.Zone = func() *time.Location { return site }
	watched, other := acting(t, apitest.Watching())
	other.Options.Zone = w.Options.Zone
	for line, from := range map[string]shell{
		"records": s, "records -open": s, "agents": s, "gaps": s, "conflicts": s, "quarantine list": s, "quarantine show head1/slurm/nemo/4711/a": s,
		"waiting list": s, "status": s, "prices": s, "prices -window 2020-01-01T00:00:00Z..2030-01-01T00:00:00Z": s, "capacity -window 2020-01-01T00:00:00Z..2030-01-01T00:00:00Z": s, "census": s, "directory": s, "directory -unclaimed": s, "directory contributions": s,
		"actions list": s, "actions history mail/monthly": s, "actions history mail/monthly 12": s, "operator raft list-peers": s, "alerts list": watched,
	} {
		site = time.UTC
		utc, before := show(from, line)
		json, _ := show(from, line+" -format json")
		csv, _ := show(from, line+" -format csv")
		site = zone
		local, after := show(from, line)
		want := instants.ReplaceAllStringFunc(utc+before, func(text string) string {
			layout := time.DateTime[:len(text)]
			at, _ := time.Parse(layout, text)
			if at = at.In(zone); layout == time.DateOnly { // of a moment that begins a day
				layout = view.MinuteLayout
			}
			return at.Format(layout)
		})
		told := strings.Contains(after, "Times are those of "+name+".")
		if some := instants.MatchString(utc); some && !strings.Contains(local+after, name) {
			t.Errorf("%s: it does not say whose clock its times are of:\n%s%s", line, local, after)
		} else if told && !instants.MatchString(utc+before) {
			t.Errorf("%s: it names the clock of no time:\n%s%s", line, local, after)
		}
		plain := func(text string) string {
			text = strings.ReplaceAll(text, "Times are those of "+name+".", "")
			text = strings.NewReplacer(name, "UTC").Replace(text)
			return strings.Join(strings.Fields(text), " ")
		}
		if got, want := plain(local+after), plain(want); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", line, got, want)
		}
		if again, _ := show(from, line+" -format json"); again != json {
			t.Errorf("%s -format json is %s\nby a clock, and %s", line, again, json)
		}
		if again, _ := show(from, line+" -format csv"); again != csv {
			t.Errorf("%s -format csv is %s\nby a clock, and %s", line, again, csv)
		}
	}
}
