//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// gaps are those that the aggregator lists.
func gaps(t *testing.T, g *site.Aggregator) []string {
	t.Helper()
	var answer struct {
		Gaps []struct{ Agent, Reason string }
	}
	if err := g.Get("/v1/gaps", &answer); err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, gap := range answer.Gaps {
		reasons = append(reasons, gap.Agent+": "+gap.Reason)
	}
	return reasons
}

// TestCluster_RestoredToBeforeAnAgent_RefillsAndNamesGap:
// the snapshot is one that the node made by itself before the agent came, and the
// agent has dropped what the cluster had by then.
func TestCluster_RestoredToBeforeAnAgent_RefillsAndNamesGap(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	jobs, backups := s.Jobs(), filepath.Join(s.Dir, "backups")
	if err := os.Mkdir(backups, 0o755); err != nil {
		t.Fatal(err)
	}
	jobs.Write(2000)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: jobs.Source(), Buffer: `retain = "1m"`})
	agg := s.AggregatorWith(fmt.Sprintf("min_free = \"1MiB\"\nbackup { path = %q }", backups), agent)
	agg.Start()
	var files []string
	s.Eventually("a backup", func() (bool, string) {
		files, _ = filepath.Glob(filepath.Join(backups, "bursar-agg1-*.snapshot"))
		return len(files) == 1, fmt.Sprint(files)
	})
	agent.Start()
	jobs.Arrive(agg)
	old := time.Now().Add(time.Minute)
	s.Eventually("the agent drops what is acknowledged", func() (bool, string) {
		if time.Now().Before(old) {
			return false, "nothing is old enough"
		}
		agent.Stop()
		agent.Start() // it looks at its start
		var status site.AgentStatus
		s.Eventually("the agent answers", func() (bool, string) {
			var err error
			status, err = agent.Status()
			return err == nil, fmt.Sprint(err)
		})
		return status.Buffer.First > 1, fmt.Sprintf("%+v", status.Buffer)
	})
	if got := gaps(t, agg); got != nil {
		t.Errorf("a gap before there is one: %q", got)
	}
	if out, err := agg.Bursar("snapshot", "restore", "-yes", files[0]); err != nil {
		t.Fatal(out, err)
	}
	s.Eventually("the gap", func() (bool, string) {
		got := gaps(t, agg)
		return len(got) == 1 && strings.HasPrefix(got[0], "head1: the agent's buffer no longer has the frames 1 to "), fmt.Sprint(got)
	})
	jobs.Arrive(agg)
	checkConserved(t, agg)
	if out, err := agg.Bursar("gaps", "-format", "csv"); err != nil || strings.Count(out, "\n") != 2 {
		t.Error(out, err)
	}
}

func TestBuffer_Damaged_IsNamedWithRemedy(t *testing.T) {
	t.Parallel()
	s, jobs, agent, agg := collected(t)
	jobs.Write(2000)
	agent.Start()
	s.Eventually("all jobs are in the buffer", func() (bool, string) {
		status, err := agent.Status()
		return err == nil && status.Source("lab").Counts.Records == int64(jobs.Count), fmt.Sprintf("%+v %v", status, err)
	})
	agent.Stop()
	file := filepath.Join(agent.DataDir, "buffer.db")
	site.DamageLast(t, file, "chunks")
	agent.Start()
	agg.Start()
	remedy := fmt.Sprintf("systemctl stop bursar-agent && mv %s %s.damaged && systemctl start bursar-agent", file, file)
	agg.AwaitFinding(remedy, func(f site.Finding) bool {
		return f.ID == "agent-damaged" && f.About == "head1" && f.Do == remedy+"   # on head1"
	})
	if out, err := s.Run("bursar-agent", "status", "-config", agent.Config); err != nil || !strings.Contains(out, "Do first: "+remedy) {
		t.Error(out, err)
	}
	agent.Stop()
	if err := os.Rename(file, file+".damaged"); err != nil {
		t.Fatal(err)
	}
	agent.Start()
	jobs.Arrive(agg)
}
