//go:build e2e

package faults

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Job is what is known of a run: what is asked for when all is counted.
type Job struct {
	Start record.Time
	Stop  record.Time // record.None while it runs
	Cores int64
}

// Usage is the job's cores times microseconds; none while it runs.
func (j Job) Usage() int64 {
	if j.Stop == record.None || j.Stop < j.Start {
		return 0
	}
	return j.Cores * int64(j.Stop-j.Start)
}

// Truth is all jobs there have been, by record id.
type Truth map[string]Job

// Usage is the sum over all jobs.
func (t Truth) Usage() int64 {
	var sum int64
	for _, j := range t {
		sum += j.Usage()
	}
	return sum
}

// Scheduler makes up jobs and writes them into the log that an agent reads.
type Scheduler struct {
	label  string
	path   string
	chance *rand.Rand
	next   int
	now    record.Time // the scheduler's clock; jobs are reported in about its order
	open   []string    // ids of jobs that run
	truth  Truth
}

// NewScheduler makes one that writes to path; label is that of the agent's source.
func NewScheduler(label, path string, seed uint64) *Scheduler {
	return &Scheduler{label: label, path: path, chance: rand.New(rand.NewPCG(seed, 77)), now: 1_760_000_000_000_000, truth: Truth{}}
}

// Source is the source block of the agent that reads the log.
func (s *Scheduler) Source() string {
	return fmt.Sprintf("source \"replay\" %q {\n  interval = \"200ms\"\n  config {\n    path  = %q\n    batch = 100\n  }\n}\n", s.label, s.path)
}

// Write ends some of the jobs that run and adds n new ones, of which some go on.
func (s *Scheduler) Write(n int) error {
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	still := s.open[:0]
	for _, id := range s.open {
		if s.chance.IntN(2) == 0 {
			still = append(still, id)
			continue
		}
		job := s.truth[s.recordID(id)]
		job.Stop = max(s.nextTime(), job.Start) // ticks are reported late, and no job ends before it starts
		s.writeJobLine(w, id, job)
	}
	s.open = still
	for range n {
		s.next++
		id := fmt.Sprint(s.next)
		job := Job{Start: s.nextTime(), Stop: record.None, Cores: 1 + s.chance.Int64N(256)}
		if s.chance.IntN(20) == 0 {
			s.open = append(s.open, id)
		} else {
			job.Stop = job.Start
			job.Start -= record.Time(1 + s.chance.Int64N(10*3600*1e6)) // up to ten hours, to the microsecond
		}
		s.writeJobLine(w, id, job)
	}
	return errors.Join(w.Flush(), f.Close())
}

// nextTime is when something happens: about a second after what happened before, and
// reported up to a minute late.
func (s *Scheduler) nextTime() record.Time {
	s.now += record.Time(s.chance.Int64N(2e6))
	return s.now - record.Time(s.chance.Int64N(60e6))
}

func (s *Scheduler) recordID(id string) string { return s.label + "-" + id }

func (s *Scheduler) writeJobLine(w *bufio.Writer, id string, j Job) {
	stamp := func(t record.Time) string { return time.UnixMicro(int64(t)).UTC().Format(time.RFC3339Nano) }
	fmt.Fprintf(w, `{"id":%q,"start":%q,"user":"u%d","site":"site%d","cpus":%d`, id, stamp(j.Start), len(id)%7, j.Cores%3, j.Cores)
	if j.Stop != record.None {
		fmt.Fprintf(w, `,"stop":%q,"state":"COMPLETED"`, stamp(j.Stop))
	}
	fmt.Fprintln(w, "}")
	s.truth[s.recordID(id)] = j
}
