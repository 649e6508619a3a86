//go:build e2e

package e2e_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// condorConverted reads all runs that there are by configurations of AUDITOR's HTCondor
// collector, lets the published collector push the same jobs, and compares each record.
// What differs is what bursar config convert lists.
func condorConverted(t *testing.T, p *rig.Pool, all map[string]condorRun) {
	s := site.New(t)
	auditor := s.Node(site.NodeSpec{Name: "auditor"})
	auditor.Start()
	auditor.AwaitReady()
	host, port, _ := strings.Cut(strings.TrimPrefix(auditor.URL, "http://"), ":")
	address := fmt.Sprintf("earliest_datetime: \"2020-01-01\"\nquery_type: exec\naddr: %s\nport: %s\n", host, port)
	sources := ""
	for example, replace := range map[string][]string{
		"htcondor.yml": {"addr: localhost\n", "", "port: 8000\n", "", "interval: 900\n", address, "htcondor.example.org", "127.0.0.1:19618",
			"schedd1.example.org", rig.FirstSchedd, "schedd2.example.org", rig.SecondSchedd, "@site1-.+$", "@ri.+$", "@(?:site1)-.{10}@.+$", "@(?:rig)$"},
		"htcondor-file.yml": {`earliest_datetime: "2025-01-01T00:00:00+00:00"` + "\n", address, "ce1.example.org", rig.SecondSchedd,
			"/var/lib/condor/spool/history", p.History(rig.SecondSchedd), "ifThenElse(CpusProvisioned =?= undefined, 1, CpusProvisioned)", "CpusProvisioned"},
	} {
		path := auditorExample(t, s, example, append(replace, "/var/lib/auditor_htcondor_collector", s.Dir, "state_db: state.db", "state_db: "+s.Dir+"/file.db")...)
		runAuditorsCollector(t, p, path, "Added ")
		sources += convertedSource(t, s, path, fmt.Sprintf("commands = %q", p.Commands()))
	}
	agent := s.Agent(site.AgentSpec{Name: "submit1", Sources: sources})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	last := map[string]string{} // the last run of each job
	matched := map[string]int64{}
	for _, schedd := range []string{rig.FirstSchedd, rig.SecondSchedd} {
		for _, ad := range condorAds(t, p.History(schedd)) {
			id, _ := condorAd(t, ad)
			last[ad["GlobalJobId"]] = id
			matched[ad["GlobalJobId"]], _ = strconv.ParseInt(ad["LastMatchTime"], 10, 64)
		}
	}
	for _, prefix := range []string{"htcondor", "ce"} {
		theirs := endedAsAuditor(t, auditor, prefix)
		if len(theirs) < 3 {
			t.Errorf("%s: AUDITOR has only %d records", prefix, len(theirs))
		}
		s.Eventually("the records of "+prefix+" are those of AUDITOR", func() (bool, string) {
			ours, want := endedAsAuditor(t, agg, prefix), map[string]auditorRecord{}
			for id, r := range theirs {
				job := strings.TrimPrefix(id, prefix+"-")
				if r.Start != matched[job] {
					t.Errorf("%s: start %d, matched %d", id, r.Start, matched[job])
				}
				run := all[last[job]]
				r.Start, r.Stop = run.Start, run.Stop
				want[prefix+"-"+last[job]] = r
			}
			got := maps.Clone(ours)
			maps.DeleteFunc(got, func(id string, _ auditorRecord) bool { _, there := want[id]; return !there })
			d := cmp.Diff(want, got)
			return d == "", d
		})
	}
}
