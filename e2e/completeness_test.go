//go:build e2e

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// days is what GET /v1/completeness says.
type days struct {
	Days []struct {
		Day, State              string
		Runs                    *int64
		Stored, Missing, Unread int64
	}
	Stretches []struct {
		Source, Do string
		Missing    int64
	}
	Missing int64
}

// counted is how many days have been compared.
func (d *days) counted() (n int) {
	for i := range d.Days {
		if d.Days[i].Runs != nil {
			n++
		}
	}
	return n
}

// slurmLateRuns checks that runs are found and collected again that slurmdbd gets late,
// behind every overlap. Before them all that has run, moved five days into the past, and
// a history are collected.
func slurmLateRuns(t *testing.T, c *rig.Cluster) {
	back := "update rig_job_table set mod_time=mod_time"
	for _, column := range []string{"time_submit", "time_eligible", "time_start", "time_end"} {
		back += fmt.Sprintf(", %[1]s=if(%[1]s>432000, %[1]s-432000, %[1]s)", column)
	}
	c.SQL(back + " where time_end>0")
	today := time.Now().UTC().Truncate(24 * time.Hour)
	c.Fill(300, 3, today.Add(-4*24*time.Hour))
	want := 0
	for _, r := range expected("rig", c.Runs()) {
		if r.Stop > 0 {
			want++
		}
	}
	s := site.New(t)
	sources := slurmSource(c, "rig", fmt.Sprintf("earliest = %q\n    running = false\n    overlap = \"1m\"\n    deep_overlap = \"1h\"\n    lag = \"0s\"", today.Add(-20*24*time.Hour).Format(time.RFC3339)), "")
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: strings.Replace(sources, "interval = \"1s\"", "interval = \"1s\"\n  audit = false", 1)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	agg.AwaitRecords(int64(want))

	late := c.Fill(40, 1, today.Add(-6*24*time.Hour))
	agent.Reload(sources)
	var found days
	compare := func(what string, ok func() bool) {
		t.Helper()
		s.Eventually(what, func() (bool, string) {
			found = days{}
			err := agg.Get("/v1/completeness?window=21d", &found)
			return err == nil && found.counted() >= 20 && ok(), fmt.Sprintf("%+v %v", found, err)
		})
	}
	compare("the late runs are missing, and nothing else", func() bool { return found.Missing == int64(late.Jobs) && len(found.Stretches) == 1 })
	for _, d := range found.Days {
		if d.Unread != 0 || d.State == "surplus" {
			t.Errorf("what sacct counts by state is not what is collected: %+v", d)
		}
	}
	if out, err := agg.Bursar("completeness", "-check"); err == nil || !strings.Contains(fmt.Sprint(out, err), found.Stretches[0].Do) {
		t.Error(out, err)
	}
	agg.AwaitFinding("the remedy", func(f site.Finding) bool {
		return f.ID == "runs-missing" && strings.HasPrefix(f.Do, found.Stretches[0].Do)
	})
	remedy := append(strings.Fields(found.Stretches[0].Do)[1:], "-config", agent.Config)
	for _, more := range [][]string{{"-plan"}, nil} {
		if out, err := s.Run("bursar-agent", append(remedy, more...)...); err != nil {
			t.Fatal(out, err)
		}
	}
	compare("nothing is missing any more", func() bool { return found.Missing == 0 })
	if out, err := agg.Bursar("completeness", "-check"); err != nil {
		t.Error(out, err)
	}
	checkConserved(t, agg)
}
