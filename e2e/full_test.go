//go:build e2e

package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
)

func TestDisk_Full_PausesAndResumes(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	jobs := s.Jobs()
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: jobs.Source()})
	agg := s.Aggregator(agent) // which wants 32 MiB free
	f := &fullDisks{
		t: t, s: s, jobs: jobs, agent: agent, agg: agg,
		agentDisk: s.SmallDisk(agent.DataDir, "64m"), aggDisk: s.SmallDisk(agg.DataDir, "256m"),
	}
	f.jobs.Write(2000)
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
	jobs  *site.Jobs
	agent *site.Agent
	agg   *site.Aggregator

	agentDisk, aggDisk site.Disk

	there int   // records that have arrived
	used  int64 // core-seconds of them
}

// arrives waits until all is there, and there once.
func (f *fullDisks) arrives() {
	f.t.Helper()
	f.jobs.Arrive(f.agg)
	f.there, f.used = f.agg.Used()
}

// reads checks that the aggregator answers with what has arrived, no more and no
// less.
func (f *fullDisks) reads(when string) {
	f.t.Helper()
	if !f.agg.Ready() {
		f.t.Errorf("%s: the health check fails", when)
	}
	if there, used := f.agg.Used(); there != f.there || used != f.used {
		f.t.Errorf("%s: %d records of %d core-seconds are read, want %d of %d", when, there, used, f.there, f.used)
	}
}

// fillAggregator fills the aggregator's disk: first beyond what it wants free,
// also over a restart, then to the last byte.
func (f *fullDisks) fillAggregator() {
	f.t.Helper()
	f.aggDisk.Fill(16 << 20)
	f.paused(1)
	f.agg.Kill()
	f.agg.Start()
	f.agg.AwaitReady()
	f.reads("it was started with little space")
	f.aggDisk.Fill(8 << 20) // its end may have given some back
	f.paused(1)
	f.jobs.Write(3000)
	f.takesNoRecord()
	f.s.Eventually("the agent has collected what the aggregator does not take", func() (bool, string) {
		status, err := f.agent.Status()
		return err == nil && status.Source("lab").Counts.Records >= int64(f.jobs.Count), f.agent.Log(2)
	})
	f.reads("less than the wanted space is free")
	f.aggDisk.Fill(0)
	f.reads("the aggregator's disk is full")
	if f.agg.Ended() {
		f.t.Fatal("the aggregator ended")
	}
	f.aggDisk.Empty()
	f.paused(0)
	f.arrives()
}

// paused waits for the metric that says whether writes wait.
func (f *fullDisks) paused(want int) {
	f.t.Helper()
	line := "bursar_writes_paused " + string('0'+byte(want)) + "\n"
	f.s.Eventually("/metrics has "+strings.TrimSpace(line), func() (bool, string) {
		text, err := f.agg.Metrics()
		return err == nil && strings.Contains(text, line), f.agg.Log(2)
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
	f.agentDisk.Fill(0)
	f.jobs.Write(20_000)
	f.s.Eventually("the agent says that it is paused", func() (bool, string) {
		status, err := f.agent.Status()
		source := status.Source("lab")
		return err == nil && source.State == "paused" && strings.Contains(source.Error, "no space left"), source.State + " " + source.Error
	})
	status, err := f.agg.Status()
	if err != nil || status.Records < int64(f.there) {
		f.t.Errorf("while the agent's disk is full: %+v, %v", status, err)
	}
	if f.agent.Ended() {
		f.t.Fatal("the agent ended")
	}
	f.agentDisk.Empty()
	f.arrives()
}
