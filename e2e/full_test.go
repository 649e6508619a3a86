//go:build e2e

package e2e_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// smallDisk mounts a file system of that size at dir, until the test ends. It
// needs root.
func smallDisk(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=755"); err != nil {
		t.Fatalf("mount a small file system (needs root): %v", err)
	}
	t.Cleanup(func() {
		// The daemons end later than this; what they hold open goes away then.
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// ballast is a file that takes the space of a disk.
func ballast(dir string) string { return filepath.Join(dir, "ballast") }

// fillUp takes all space of a disk but about leave bytes.
func fillUp(t *testing.T, dir string, leave uint64) {
	t.Helper()
	f, err := os.OpenFile(ballast(dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	piece := make([]byte, 64<<10)
	for {
		var st syscall.Statfs_t
		if err := syscall.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		if st.Bavail*uint64(st.Bsize) <= leave {
			return
		}
		if _, err := f.Write(piece); err != nil {
			return // it is full to the last byte
		}
	}
}

// empty gives the space back.
func empty(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(ballast(dir)); err != nil {
		t.Fatal(err)
	}
}

func TestAFullDiskPausesAndResumes(t *testing.T) {
	s := site.New(t)
	log := filepath.Join(s.Dir, "jobs.ndjson")
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: replaySource(log)})
	agg := s.AggregatorWith(`min_free = "32MiB"`, agent)
	smallDisk(t, agent.DataDir, "64m")
	smallDisk(t, agg.DataDir, "256m")
	f := &fullDisks{t: t, s: s, log: log, agent: agent, agg: agg}
	f.write(2000)
	agent.Start()
	agg.Start()
	f.arrives()
	f.fillAggregator()
	f.fillAgent()
	checkConserved(t, agg)
}

// fullDisks is a site whose disks are filled.
type fullDisks struct {
	t     *testing.T
	s     *site.Site
	log   string
	agent *site.Agent
	agg   *site.Aggregator
	want  truth // all that the scheduler has
	there truth // what has arrived
}

func (f *fullDisks) write(n int) {
	more := writeJobs(f.t, f.log, f.want.jobs, n)
	f.want = truth{f.want.jobs + more.jobs, f.want.coreSeconds + more.coreSeconds}
}

// arrives waits until all is there, and there once.
func (f *fullDisks) arrives() {
	f.t.Helper()
	f.agg.AwaitRecords(int64(f.want.jobs), time.Minute)
	f.there = f.want
	f.reads("all has arrived")
}

// reads checks that the aggregator answers with what has arrived, no more and no
// less.
func (f *fullDisks) reads(when string) {
	f.t.Helper()
	if !f.agg.Ready() {
		f.t.Errorf("%s: the health check fails", when)
	}
	if got := measure(f.agg); got != f.there {
		f.t.Errorf("%s: %+v are read, want %+v", when, got, f.there)
	}
}

// fillAggregator fills the aggregator's disk: first beyond what it wants free,
// also over a restart, then to the last byte.
func (f *fullDisks) fillAggregator() {
	f.t.Helper()
	fillUp(f.t, f.agg.DataDir, 16<<20)
	f.paused(1)
	f.agg.Kill()
	f.agg.Start()
	f.agg.AwaitReady()
	f.reads("it was started with little space")
	fillUp(f.t, f.agg.DataDir, 8<<20) // its end may have given some back
	f.paused(1)
	f.write(3000)
	f.takesNoRecord()
	f.s.Eventually(time.Minute, "the agent has collected what the aggregator does not take", func() (bool, string) {
		status, err := f.agent.Status()
		return err == nil && status.Source("lab").Counts.Records >= int64(f.want.jobs), f.agent.Log(2)
	})
	f.reads("less than the wanted space is free")
	fillUp(f.t, f.agg.DataDir, 0)
	f.reads("the aggregator's disk is full")
	if f.agg.Ended() {
		f.t.Fatal("the aggregator ended")
	}
	empty(f.t, f.agg.DataDir)
	f.paused(0)
	f.arrives()
}

// paused waits for the metric that says whether writes wait.
func (f *fullDisks) paused(want int) {
	f.t.Helper()
	line := "bursar_writes_paused " + string('0'+byte(want)) + "\n"
	f.s.Eventually(time.Minute, "/metrics has "+strings.TrimSpace(line), func() (bool, string) {
		resp, err := http.Get(f.agg.URL + "/metrics")
		if err != nil {
			return false, err.Error()
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), line), f.agg.Log(2)
	})
}

// takesNoRecord checks that a client of AUDITOR's interface gets no answer, which
// it would take for success, and so keeps its record.
func (f *fullDisks) takesNoRecord() {
	f.t.Helper()
	const body = `{"record_id":"pushed","meta":{},"components":[],"start_time":"2026-01-01T00:00:00Z","stop_time":"2026-01-01T01:00:00Z"}`
	client := &http.Client{Timeout: 2 * time.Second}
	resp, err := client.Post(f.agg.URL+"/record", "application/json", strings.NewReader(body))
	if err == nil {
		resp.Body.Close()
		f.t.Errorf("a record that cannot be written now was answered with %s", resp.Status)
	}
}

// fillAgent fills the agent's disk to the last byte: what the scheduler writes
// meanwhile is collected when there is space again.
func (f *fullDisks) fillAgent() {
	f.t.Helper()
	fillUp(f.t, f.agent.DataDir, 0)
	f.write(20_000)
	f.s.Eventually(time.Minute, "the agent says that it is paused", func() (bool, string) {
		status, err := f.agent.Status()
		source := status.Source("lab")
		return err == nil && source.State == "paused" && strings.Contains(source.Error, "no space left"), source.State + " " + source.Error
	})
	status, err := f.agg.Status()
	if err != nil || status.Records < int64(f.there.jobs) {
		f.t.Errorf("while the agent's disk is full: %+v, %v", status, err)
	}
	if f.agent.Ended() {
		f.t.Fatal("the agent ended")
	}
	empty(f.t, f.agent.DataDir)
	f.arrives()
}
