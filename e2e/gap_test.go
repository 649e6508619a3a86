//go:build e2e

package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

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

// TestAClusterThatIsTakenBackToBeforeAnAgentHasItsJobsAgainAndSaysWhatTheAgentLost:
// the snapshot is one that the node made by itself before the agent came, and the
// agent has dropped what the cluster had by then.
func TestAClusterThatIsTakenBackToBeforeAnAgentHasItsJobsAgainAndSaysWhatTheAgentLost(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	log, backups := filepath.Join(s.Dir, "jobs.ndjson"), filepath.Join(s.Dir, "backups")
	if err := os.Mkdir(backups, 0o755); err != nil {
		t.Fatal(err)
	}
	want := writeJobs(t, log, 0, 2000)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: replaySource(log), Buffer: `retain = "1m"`})
	agg := s.AggregatorWith(fmt.Sprintf("min_free = \"1MiB\"\nbackup { path = %q }", backups), agent)
	agg.Start()
	var files []string
	s.Eventually("a backup", func() (bool, string) {
		files, _ = filepath.Glob(filepath.Join(backups, "bursar-agg1-*.snapshot"))
		return len(files) == 1, fmt.Sprint(files)
	})
	agent.Start()
	agg.AwaitRecords(int64(want.jobs))
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
	if out, err := s.Run("bursar", "snapshot", "restore", "-yes", "-address", agg.Admin(), files[0]); err != nil {
		t.Fatal(out, err)
	}
	s.Eventually("the gap", func() (bool, string) {
		got := gaps(t, agg)
		return len(got) == 1 && strings.HasPrefix(got[0], "head1: the agent's buffer no longer has the frames 1 to "), fmt.Sprint(got)
	})
	agg.AwaitRecords(int64(want.jobs))
	if got := measure(agg); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	checkConserved(t, agg)
	if out, err := s.Run("bursar", "gaps", "-address", agg.Admin(), "-format", "csv"); err != nil || strings.Count(out, "\n") != 2 {
		t.Error(out, err)
	}
}

// rot flips a bit in the newest chunk of a buffer whose agent does not run.
func rot(t *testing.T, file string) {
	t.Helper()
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		chunks := tx.Bucket([]byte("chunks"))
		key, value := chunks.Cursor().Last()
		value = append([]byte{}, value...)
		value[len(value)-1] ^= 1
		return chunks.Put(append([]byte{}, key...), value)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedBufferIsNamedWithTheCommandThatMendsIt(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	log := filepath.Join(s.Dir, "jobs.ndjson")
	want := writeJobs(t, log, 0, 2000)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: replaySource(log)})
	agg := s.Aggregator(agent)
	agent.Start()
	s.Eventually("all jobs are in the buffer", func() (bool, string) {
		status, err := agent.Status()
		return err == nil && status.Source("lab").Counts.Records == int64(want.jobs), fmt.Sprintf("%+v %v", status, err)
	})
	agent.Stop()
	file := filepath.Join(agent.DataDir, "buffer.db")
	rot(t, file)
	agent.Start()
	agg.Start()
	remedy := fmt.Sprintf("systemctl stop bursar-agent && mv %s %s.damaged && systemctl start bursar-agent", file, file)
	s.Eventually("the status of the cluster names it", func() (bool, string) {
		var status struct {
			Findings []struct{ ID, About, Do string }
		}
		err := agg.Get("/v1/status", &status)
		for _, f := range status.Findings {
			if f.ID == "agent-damaged" && f.About == "head1" && f.Do == remedy+"   # on head1" {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%+v %v", status, err)
	})
	if out, err := s.Run("bursar-agent", "status", "-config", agent.Config); err != nil || !strings.Contains(out, "Do first: "+remedy) {
		t.Error(out, err)
	}
	agent.Stop()
	if err := os.Rename(file, file+".damaged"); err != nil {
		t.Fatal(err)
	}
	agent.Start()
	agg.AwaitRecords(int64(want.jobs))
	if got := measure(agg); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}
