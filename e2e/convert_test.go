//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// auditorRecord is a record as AUDITOR has it. The times are in seconds.
type auditorRecord struct {
	Meta        map[string][]string
	Components  []auditorComponent
	Start, Stop int64
}

type auditorComponent struct {
	Name   string
	Amount int64
	Scores []auditorScore
}

type auditorScore struct {
	Name  string
	Value float64
}

// endedAsAuditor are the ended records of a prefix as AUDITOR has them.
func endedAsAuditor(t testing.TB, g *site.Aggregator, prefix string) map[string]auditorRecord {
	all := map[string]auditorRecord{}
	for id, r := range g.Whole() {
		if !strings.HasPrefix(id, prefix+"-") || r.Open() {
			continue
		}
		a := auditorRecord{Meta: map[string][]string{}, Start: seconds(t, id, r.Start), Stop: seconds(t, id, r.Stop)}
		for _, m := range r.Meta {
			a.Meta[m.Key] = m.Values
		}
		for i := range r.Components {
			c := auditorComponent{Name: r.Components[i].Name, Amount: r.Components[i].Amount, Scores: []auditorScore{}}
			for _, s := range r.Components[i].Scores {
				c.Scores = append(c.Scores, auditorScore{s.Name, s.Value})
			}
			a.Components = append(a.Components, c)
		}
		all[id] = a
	}
	return all
}

// auditorExample is an example of AUDITOR's configuration, with other words of this machine.
func auditorExample(t *testing.T, s *site.Site, name string, replace ...string) (path string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(site.Top(), "aggregator/internal/convert/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return s.Write(name, strings.NewReplacer(replace...).Replace(string(text)))
}

var sourceHead = regexp.MustCompile(`(?s)^(source "[^"]*" "[^"]*" \{\n)(?:\s*interval = "[^"]*"\n)?\s*(?:config \{\n)?(.*)$`)

// convertedSource is the source that bursar config convert makes of a file, with more
// settings.
func convertedSource(t *testing.T, s *site.Site, path, settings string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := s.Run("bursar", "config", "convert", "-o", dir, path); err != nil {
		t.Fatal(out, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "agent.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	_, source, _ := strings.Cut(string(text), "\nsource ")
	parts := sourceHead.FindStringSubmatch("source " + source)
	if parts == nil {
		t.Fatalf("%s", text)
	}
	end := "\n"
	if !strings.Contains(source, "\n  config {\n") {
		end = "\n}\n"
	}
	return parts[1] + "interval = \"1s\"\nconfig {\n" + settings + end + parts[2]
}

// auditorOracle are the records that a collector of AUDITOR makes, and the jobs that it drops.
type auditorOracle struct {
	Records map[string]auditorRecord
	Dropped map[string]string
}

func slurmOracle(t *testing.T, kind, config, from string) (o auditorOracle) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), rig.Python(t), "testdata/auditor_slurm.py", kind, config, from)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &o)
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, &said, out)
	}
	return o
}

// slurmConverted collects all jobs that there are by configurations of AUDITOR's Slurm
// collector, and compares each record with the one that AUDITOR's rules make of the job.
func slurmConverted(t *testing.T, c *rig.Cluster) {
	for i, comment := range []string{`{"voms": "/atlas/Role=pilot", "headnode": "ce1"}`, `{'voms': '/cms'}`, `"{'headnode': 'ce2'}"`, `{"n": 1}`, "no JSON", ""} {
		id := c.Submit(rig.Alice, "-n", fmt.Sprint(1+i), "-t", "2", "--comment", comment, "--wrap", "sleep 1")
		c.WaitState(id, "COMPLETED")
	}
	s := site.New(t)
	names := []string{"record_prefix: \"slurm\"", "record_prefix: all", "part1", rig.Compute, "part2", rig.GPU, "atlas", rig.Alice, "cms", rig.Bob, `"physics"`, fmt.Sprintf("%q, %q", rig.Physics, rig.Chem), `user: ["alice"]`, ""}
	sources, configs := "", map[string]string{}
	for prefix, example := range map[string]string{"all": "slurm-all.yml", "site one": "slurm-least.yml", "types": "slurm-types.yml"} {
		configs[prefix] = auditorExample(t, s, example, names...)
		sources += convertedSource(t, s, configs[prefix], fmt.Sprintf("sacct = %q", c.SacctPath()))
	}
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: sources})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	for prefix, config := range configs {
		var oracle auditorOracle
		s.Eventually("the records of "+prefix+" are those of AUDITOR", func() (bool, string) {
			oracle = slurmOracle(t, "collector", config, c.SacctPath()) // each time: Slurm adds steps to jobs that have ended
			odd := expectDifferences(c, prefix, oracle.Records)
			ours := endedAsAuditor(t, agg, prefix)
			for id, r := range oracle.Records { // a column that bursar does not have
				r.Components = slices.DeleteFunc(r.Components, func(c auditorComponent) bool { return c.Name == "AveRSS" })
				oracle.Records[id] = r
			}
			for id, r := range ours {
				delete(r.Meta, "n") // a number, for which AUDITOR takes no key of the comment
				if odd[id] {
					delete(ours, id)
				}
				for i, component := range oracle.Records[id].Components {
					if slices.Contains([]string{"MaxRSS", "VMSize"}, component.Name) && i < len(r.Components) {
						r.Components[i].Amount = min(r.Components[i].Amount, component.Amount) // other steps may have used more
					}
				}
			}
			d := cmp.Diff(oracle.Records, ours)
			return d == "", d
		})
		if len(oracle.Records) < 5 {
			t.Errorf("%s: AUDITOR has only %d records", prefix, len(oracle.Records))
		}
		t.Logf("%s: %d records are AUDITOR's; it breaks off at or drops %v", prefix, len(oracle.Records), oracle.Dropped)
	}
}

// expectDifferences changes the records of AUDITOR by what bursar config convert lists: the
// last run of a requeued job has an id of its own, and jobs that never ran have no record. It
// returns the ids of odd jobs, whose texts shift AUDITOR's columns.
func expectDifferences(c *rig.Cluster, prefix string, records map[string]auditorRecord) (odd map[string]bool) {
	odd = map[string]bool{}
	runs := map[string]int{}
	for _, r := range c.Runs() {
		id := prefix + "-" + r.JobID
		odd[id] = odd[id] || strings.ContainsAny(r.Comment+r.Name, "|\n")
		if odd[id] || !r.Ran() {
			delete(records, id)
		}
		if runs[id]++; runs[id] > 1 {
			if last, ok := records[id]; ok && last.Start == r.Start {
				delete(records, id)
				records[fmt.Sprintf("%s-%d", id, r.Submit)] = last
			}
		}
	}
	return odd
}
