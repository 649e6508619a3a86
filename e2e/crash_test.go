//go:build e2e

package e2e_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// truth is what a fake scheduler has written into its log.
type truth struct {
	jobs        int
	coreSeconds int64
}

// writeJobs appends n finished jobs to a file of JSON lines.
func writeJobs(t testing.TB, path string, first, n int) truth {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	var sum truth
	for i := first; i < first+n; i++ {
		start, seconds, cores := int64(1_760_000_000+i), int64(1+i%5000), int64(1+i%64)
		fmt.Fprintf(w, `{"id":"%d","start":%d,"stop":%d,"user":"u%d","cpus":%d}`+"\n", i, start, start+seconds, i%100, cores)
		sum.jobs++
		sum.coreSeconds += seconds * cores
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return sum
}

// measure counts what the aggregator holds.
func measure(g *site.Aggregator) truth {
	var got truth
	for _, r := range g.ByID() {
		seconds, _ := r.Runtime()
		got.jobs++
		got.coreSeconds += seconds * r.Component("Cores").Amount
	}
	return got
}

func replaySource(path string) string {
	return fmt.Sprintf("source \"replay\" \"lab\" {\n  interval = \"200ms\"\n  config { path = %q }\n}\n", path)
}

func TestReplay_Kills_CountEachJobOnce(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	log := filepath.Join(s.Dir, "jobs.ndjson")
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: replaySource(log)})
	agg := s.Aggregator(agent)
	want := writeJobs(t, log, 0, 1000)
	agent.Start()
	agg.Start()
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 1000; i < 100_000; i += 1000 {
			more := writeJobs(t, log, i, 1000)
			want.jobs += more.jobs
			want.coreSeconds += more.coreSeconds
			time.Sleep(150 * time.Millisecond)
		}
	})
	killing{
		victims: []func(){agent.Restart, agg.Restart, agent.KillChildren},
		alive:   []*site.Daemon{agent.Daemon, agg.Daemon},
		pause:   900 * time.Millisecond,
	}.run(t)
	writing.Wait()
	agg.AwaitRecords(int64(want.jobs))
	if got := measure(agg); got != want {
		t.Errorf("counted %+v, want %+v (seed %d)", got, want, *seed)
	}
	checkConserved(t, agg)
}

// checkConserved checks that every write that was pulled has one outcome.
func checkConserved(t *testing.T, g *site.Aggregator) {
	t.Helper()
	var answer struct {
		Counters []struct {
			Source    string `json:"source"`
			Pulled    int64  `json:"pulled"`
			Conserved bool   `json:"conserved"`
		} `json:"counters"`
	}
	if err := g.Get("/v1/counters", &answer); err != nil {
		t.Fatal(err)
	}
	for _, c := range answer.Counters {
		if !c.Conserved || c.Pulled == 0 {
			t.Errorf("counters of %s do not add up: %+v", c.Source, c)
		}
	}
	if len(answer.Counters) == 0 {
		t.Error("no counters")
	}
}

func TestAWipedAggregatorRefillsItselfFromTheAgent(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	log := filepath.Join(s.Dir, "jobs.ndjson")
	want := writeJobs(t, log, 0, 20_000)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: replaySource(log)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	agg.AwaitRecords(int64(want.jobs))
	agg.Kill()
	if err := os.RemoveAll(agg.DataDir); err != nil {
		t.Fatal(err)
	}
	agg.Start()
	agg.AwaitRecords(int64(want.jobs))
	if got := measure(agg); got != want {
		t.Errorf("refilled with %+v, want %+v", got, want)
	}
}

func TestAWipedAgentLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	log := filepath.Join(s.Dir, "jobs.ndjson")
	want := writeJobs(t, log, 0, 20_000)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: replaySource(log)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	agg.AwaitRecords(int64(want.jobs))
	agent.Kill()
	more := writeJobs(t, log, 20_000, 5000)
	if err := os.RemoveAll(agent.DataDir); err != nil {
		t.Fatal(err)
	}
	agent.Start()
	agg.AwaitRecords(int64(want.jobs + more.jobs))
	want = truth{want.jobs + more.jobs, want.coreSeconds + more.coreSeconds}
	if got := measure(agg); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	checkConserved(t, agg)
}

func TestAnAgentRestoredFromAnOldCopyLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	log := filepath.Join(s.Dir, "jobs.ndjson")
	want := writeJobs(t, log, 0, 10_000)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: replaySource(log)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	agg.AwaitRecords(int64(want.jobs))
	agent.Stop()
	backup := filepath.Join(s.Dir, "backup")
	if err := os.CopyFS(backup, os.DirFS(agent.DataDir)); err != nil {
		t.Fatal(err)
	}
	agent.Start()
	more := writeJobs(t, log, 10_000, 10_000)
	agg.AwaitRecords(int64(want.jobs + more.jobs))
	agent.Kill()
	last := writeJobs(t, log, 20_000, 3000)
	if err := os.RemoveAll(agent.DataDir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(agent.DataDir, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	agent.Start()
	want = truth{want.jobs + more.jobs + last.jobs, want.coreSeconds + more.coreSeconds + last.coreSeconds}
	agg.AwaitRecords(int64(want.jobs))
	if got := measure(agg); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	checkConserved(t, agg)
}
