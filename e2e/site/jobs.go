//go:build e2e

package site

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"os"
)

// Jobs is a scheduler that writes the jobs that ended into a file of JSON lines.
type Jobs struct {
	Path  string
	Count int // of the jobs so far
	Pad   int // bytes of chance in the user of each job

	site        *Site
	coreSeconds int64
}

// Jobs makes a scheduler, which has had no job.
func (s *Site) Jobs() *Jobs { return &Jobs{Path: s.path("jobs.ndjson"), site: s} }

// Source is the source block that collects the jobs, as label lab.
func (j *Jobs) Source() string { return Replay(j.Path, "200ms") }

// Replay is the source block that collects the jobs of a file, as label lab.
func Replay(path, interval string) string {
	return fmt.Sprintf("source \"replay\" \"lab\" {\n  interval = %q\n  config { path = %q }\n}\n", interval, path)
}

// Write lets n jobs end.
func (j *Jobs) Write(n int) {
	j.site.t.Helper()
	f, err := os.OpenFile(j.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		j.site.t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	chance := make([]byte, j.Pad)
	for range n {
		i := j.Count
		start, seconds, cores := int64(1_760_000_000+i), int64(1+i%5000), int64(1+i%64)
		_, _ = rand.Read(chance) // it never fails
		fmt.Fprintf(w, `{"id":"%d","start":%d,"stop":%d,"user":"u%d%x","cpus":%d}`+"\n", i, start, start+seconds, i%100, chance, cores)
		j.Count++
		j.coreSeconds += seconds * cores
	}
	if err := w.Flush(); err != nil {
		j.site.t.Fatal(err)
	}
}

// Arrive waits until the aggregator has as many records as there were jobs, and compares
// their use.
func (j *Jobs) Arrive(g *Aggregator) {
	j.site.t.Helper()
	g.AwaitRecords(int64(j.Count))
	if count, used := g.Used(); count != j.Count || used != j.coreSeconds {
		j.site.t.Errorf("%d records of %d core-seconds, want %d of %d", count, used, j.Count, j.coreSeconds)
	}
}

// Used counts the records of the node and the core-seconds that they used.
func (g *Aggregator) Used() (records int, coreSeconds int64) {
	g.site.t.Helper()
	for _, r := range g.ByID() {
		seconds, _ := r.Runtime()
		records++
		if cores := r.Component("Cores"); cores != nil {
			coreSeconds += seconds * cores.Amount
		}
	}
	return records, coreSeconds
}
