package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// measureMapping measures the agent's mapping on one core.
func (b *bench) measureMapping(ctx context.Context) error {
	b.progress.beginPiece("mapping")
	var rates []float64
	var last fillReport
	for range max(b.runs, 3) {
		r, err := b.runFill(ctx, []string{"GOMAXPROCS=1"}, func(fillReport) {}, "mapping")
		if err != nil {
			return err
		}
		rates, last = append(rates, r.Rate), r
	}
	b.addLine(overRuns("mapping", "mapping, ten expressions, to a finished record, one core", "jobs/s", atLeast(80_000), rates).addNote("%d allocations a job", last.Allocs))
	return nil
}

// How the agent at rest and under a trickle is measured.
const (
	trickle     = 10 // jobs a second
	idleTime    = 3 * time.Second
	trickleTime = 20 * time.Second
)

// agentIdle measures the memory of an agent with one source that has nothing to
// do, and then its CPU while the source brings ten jobs a second.
func (b *bench) agentIdle(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(b.bin, "plugins", "bursar-source-replay")); err != nil {
		return err
	}
	jobs := filepath.Join(b.dir, "jobs.ndjson")
	if err := os.WriteFile(jobs, nil, 0o600); err != nil {
		return err
	}
	a, err := b.newAgent("agent-idle", fmt.Sprintf("source \"replay\" \"lab\" {\n  interval = \"1s\"\n  config { path = %q }\n}\n", jobs))
	if err != nil {
		return err
	}
	if err := a.ensureRunning(ctx); err != nil {
		return err
	}
	defer func() { _ = a.stopAgent() }() // its folder is removed
	b.progress.beginPiece("agent, idle")
	time.Sleep(idleTime)
	b.addLine(overRuns("agent_rss_idle", "agent, RssAnon, idle with one source", "MiB", goalUnder(40), []float64{a.process.anonymousMemory()}))
	share, err := b.trickleJobs(ctx, a, jobs)
	if err != nil {
		return err
	}
	b.addLine(overRuns("agent_cpu", fmt.Sprintf("agent, CPU at %d jobs/s", trickle), "%", goalUnder(1), []float64{share}).addNote("%s, without the plugin's own", trickleTime))
	return nil
}

// trickleJobs writes jobs into the source's file and returns the agent's share of a
// core in percent.
func (b *bench) trickleJobs(ctx context.Context, a *agentSite, path string) (float64, error) {
	b.progress.beginPiece("agent, %d jobs a second", trickle)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	before, begun, ticks := a.process.cpuSeconds(), time.Now(), time.NewTicker(time.Second)
	defer ticks.Stop()
	for i := 0; time.Since(begun) < trickleTime; i++ {
		if _, err := f.Write(trickleJobs(i)); err != nil {
			return 0, err
		}
		b.progress.showDone(time.Since(begun).Seconds(), trickleTime.Seconds())
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-ticks.C:
		}
	}
	share := 100 * (a.process.cpuSeconds() - before) / time.Since(begun).Seconds()
	values, err := a.readMetrics(ctx)
	if err != nil {
		return 0, err
	}
	if sent := values[`bursar_source_records_total{source="replay/lab"}`]; sent < float64(trickle)*trickleTime.Seconds()/2 {
		return 0, fmt.Errorf("only %.0f jobs were sent; the agent said last: %s", sent, a.process.log.lastLines())
	}
	return share, nil
}

// trickleJobs are the jobs of one second.
func trickleJobs(second int) []byte {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	for i := range trickle {
		now := time.Now().Add(-time.Minute)
		_ = out.Encode(map[string]any{ // texts and numbers only
			"id": fmt.Sprint(second*trickle + i), "start": now.Add(-time.Hour).Format(time.RFC3339), "stop": now.Format(time.RFC3339),
			"user": fmt.Sprintf("user%d", i), "group": "lab", "cores": i + 1,
		})
	}
	return b.Bytes()
}

// measureDev measures how long `bursar dev` takes until its first page shows records.
func (b *bench) measureDev(ctx context.Context) error {
	var times []float64
	for range b.runs {
		b.progress.beginPiece("bursar dev")
		seconds, err := b.devOnce(ctx)
		if err != nil {
			return err
		}
		times = append(times, seconds)
	}
	b.addLine(overRuns("dev", "bursar dev, start to first page with data", "s", goalUnder(3), times))
	return nil
}

func (b *bench) devOnce(ctx context.Context) (float64, error) {
	address, err := freePort()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	p, err := startProcess(b.programPath("bursar"), []string{"dev", "-listen", address}, []string{"TMPDIR=" + b.dir})
	if err != nil {
		return 0, err
	}
	defer func() { _ = p.stopProcess() }() // it is a child, and ends with this program
	var link string
	select {
	case line := <-p.log.expectLine("/ui/login?"):
		link = strings.Fields(line)[1] // behind the word Pages
	case <-p.done:
		return 0, p.endedError()
	case <-time.After(patience):
		return 0, errPatience
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Jar: jar}
	if err := pollUntil(ctx, p, func() bool { return isServed(client, link) }); err != nil {
		return 0, err
	}
	err = pollUntil(ctx, p, func() bool { return hasRecords(client, "http://"+address) && isServed(client, "http://"+address+"/") })
	return time.Since(begun).Seconds(), err
}

// hasRecords reports whether a node has any.
func hasRecords(client *http.Client, url string) bool {
	resp, err := client.Get(url + "/v1/status")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var status struct{ Records int }
	return json.NewDecoder(resp.Body).Decode(&status) == nil && status.Records > 0
}

// isServed reports whether a page is served.
func isServed(client *http.Client, url string) bool {
	resp, err := client.Get(url)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}
