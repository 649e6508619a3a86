//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// priorityAction sets the priorities of the rig's partitions. It has one more line for
// where its programs run.
func priorityAction(c *rig.Cluster, line string) string {
	scontrol := filepath.Join(c.BinDir(), "scontrol")
	return fmt.Sprintf(`
action "priority" "rig" {
  schedule = "@manual"
  %s
  config {
    components = { Cores = "HEPscore23" }
    lookback   = "14d"
    priority   = { min = 1, max = 65335 }
    group "physics" { params = [%q] }
    group "chem" { params = [%q] }
    command = [%q, "update", "PartitionName={1}", "PriorityJobFactor={priority}"]
    read {
      command = [%q, "show", "partition", "{1}"]
    }
    timeout = "2m"
  }
}
`, line, rig.Compute, rig.GPU, scontrol, scontrol)
}

// prioritized is an aggregator with the action, and the Slurm that it acts on.
type prioritized struct {
	*testing.T
	site *site.Site
	agg  *site.Aggregator
	c    *rig.Cluster
	runs int
}

// where says where the programs of the action run: on the leader with one Slurm, and
// on an agent that allows them with the other.
func where(v rig.Variant) string {
	if v == rig.Chroot {
		return "run_on = agent.head1"
	}
	return ""
}

// starts starts the aggregator and an agent, which allows the two commands and no other.
func (p *prioritized) starts(line string) {
	p.Helper()
	scontrol := filepath.Join(p.c.BinDir(), "scontrol")
	agent := p.site.Agent(site.AgentSpec{Name: "head1", Sources: fmt.Sprintf(`
allow_action "priority" "rig" {
  commands = [
    [%q, "update", "PartitionName=*", "PriorityJobFactor=*"],
    [%q, "show", "partition", "*"],
  ]
}
`, scontrol, scontrol)})
	p.agg = p.site.Aggregator(agent)
	p.agg.Add(priorityAction(p.c, line))
	agent.Start()
	p.agg.Start()
}

// ran posts a record of a group that ran for some minutes on a core, two hours ago.
func (p *prioritized) ran(id, group string, minutes int) {
	p.Helper()
	start := time.Now().Add(-2 * time.Hour).UTC().Truncate(time.Second)
	p.agg.Post("/record", fmt.Sprintf(`{"record_id":%q,"meta":{"group_id":[%q]},"components":[{"name":"Cores","amount":1,"scores":[{"name":"HEPscore23","value":10.5}]}],"start_time":%q,"stop_time":%q}`,
		id, group, start.Format(time.RFC3339), start.Add(time.Duration(minutes)*time.Minute).Format(time.RFC3339)))
}

// acts orders a run and returns what became of each group.
func (p *prioritized) acts() map[string]string {
	p.Helper()
	if _, err := p.agg.Bursar("actions", "run", "priority/rig"); err != nil {
		p.Fatal(err)
	}
	p.runs++
	var run struct {
		Run     struct{ Done, Effects int }
		Effects []struct {
			Name, State string
			Attempts    []struct{ Message string }
		}
	}
	p.site.Eventually("all of a run is done", func() (bool, string) {
		err := p.agg.Get(fmt.Sprintf("/v1/actions/priority/rig/runs/%d", p.runs), &run)
		return err == nil && run.Run.Done == 2 && run.Run.Effects == 2, fmt.Sprintf("%+v %v", run, err)
	})
	out := map[string]string{}
	for _, e := range run.Effects {
		out[e.Name] = e.Attempts[len(e.Attempts)-1].Message
	}
	return out
}

// agrees checks what Slurm says of the partitions, and what the run said of it.
func (p *prioritized) agrees(physics, chem string, said map[string]string, want ...string) {
	p.Helper()
	for partition, priority := range map[string]string{rig.Compute: physics, rig.GPU: chem} {
		if out := p.c.Scontrol("show", "partition", partition); !strings.Contains(out, "PriorityJobFactor="+priority+" ") {
			p.Errorf("%s should have %s:\n%s", partition, priority, out)
		}
	}
	for i, group := range []string{"group=physics", "group=chem"} {
		if said[group] != want[i] {
			p.Errorf("%s: %q, want %q", group, said[group], want[i])
		}
	}
}

// shows checks the metrics of both groups, which have used the same, and that the usage
// is what /v1/usage says.
func (p *prioritized) shows(priority, used string) {
	p.Helper()
	text, err := p.agg.Metrics()
	if err != nil {
		p.Fatal(err)
	}
	for _, group := range []string{"physics", "chem"} {
		for name, value := range map[string]string{"priority": priority, "resource_usage": used} {
			want := fmt.Sprintf("bursar_action_priority_%s{action=\"rig\",group=%q} %s\n", name, group, value)
			if !strings.Contains(text, want) {
				p.Errorf("%s is not among the metrics", want)
			}
		}
		usage, err := p.agg.Bursar("usage", "-window", "14d", "-by", "group_id", "-where", "group_id="+group, "-measure", "Cores*HEPscore23", "-unit", "second", "-format", "csv")
		if err != nil || !strings.Contains(usage, used) {
			p.Errorf("%s\n%v, want %s", usage, err, used)
		}
	}
}

func TestPriority_Example_IsTaken(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	text, err := os.ReadFile(filepath.Join(site.Top(), "hcl/examples/aggregator-priority.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	files := s.Cert(identity.Aggregator, "agg1")
	example := strings.NewReplacer("/etc/bursar/tls/ca.pem", files.CA, "/etc/bursar/tls/agg1.pem", files.Cert, "/etc/bursar/tls/agg1.key", files.Key).Replace(string(text))
	if out, err := s.Run("bursar", "aggregator", "-dev", "-check", "-config", s.Write("good.hcl", example)); err != nil {
		t.Error(out, err)
	}
	bad := s.Write("bad.hcl", strings.Replace(example, `"{2}", "set"`, `"{3}", "set"`, 1))
	if out, err := s.Run("bursar", "aggregator", "-dev", "-check", "-config", bad); err == nil || !strings.Contains(err.Error(), "bad.hcl line 49, in action") || !strings.Contains(err.Error(), "refers to {3}") {
		t.Error(out, err)
	}
}

// slurmPriorities checks that the priorities of partitions follow what groups have used.
func slurmPriorities(t *testing.T, c *rig.Cluster, v rig.Variant) {
	s := site.New(t)
	p := &prioritized{T: t, site: s, c: c}
	p.starts(where(v))
	p.agg.AwaitReady()
	p.ran("1", "physics", 45)
	p.ran("2", "chem", 15)
	p.ran("3", "nobody", 30)

	plan, err := p.agg.Bursar("actions", "plan", "priority/rig")
	if err != nil || !strings.Contains(plan, "priority 49002 of 1 to 65335, usage 28350") {
		t.Errorf("%s\n%v", plan, err)
	}
	p.agrees("1", "1", nil, "", "") // a plan sets nothing
	p.agrees("49002", "16335", p.acts(), "set to 49002, before it was 1", "set to 16335, before it was 1")
	p.agrees("49002", "16335", p.acts(), "it is 49002 already", "it is 16335 already")

	c.Scontrol("update", "PartitionName="+rig.GPU, "PriorityJobFactor=7")
	p.agrees("49002", "16335", p.acts(), "it is 49002 already", "set to 16335, before it was 7")

	p.ran("4", "chem", 30)
	p.agrees("32668", "32668", p.acts(), "set to 32668, before it was 49002", "set to 32668, before it was 16335")
	p.shows("32668", "28350")
	p.agg.Stop()
}
