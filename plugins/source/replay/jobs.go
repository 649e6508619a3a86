package main

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// job is one run of the recorded cluster.
type job struct {
	number              int
	id, name            string
	submit, start, stop time.Time
	user                int
	site, partition     int
	nodes, cpus, gpus   int64
	memory              int64
	efficiency          float64
	state               string
	code, signal        int64
	odd                 bool // its CPU time makes no sense
}

// site is one of the recorded cluster's sites.
type site struct {
	name       string
	hepscore   float64
	partitions []string
}

func playedSites() [3]site {
	return [...]site{
		{"aurora", 14.5, []string{"compute", "compute", "compute", "gpu", "express"}},
		{"breeze", 11.2, []string{"cpu", "cpu", "fat", "gpu"}},
		{"cirrus", 18.9, []string{"grid", "grid", "grid", "opportunistic"}},
	}
}

func playedGroups() []string {
	return []string{"atlas", "cms", "climate", "astro", "genomics", "materials", "fluids", "chemistry", "neuro", "linguistics", "robotics", "hydrology"}
}

const users = 60

func userName(n int) string {
	return fmt.Sprintf("%s%02d", playedGroups()[n%len(playedGroups())][:2], n)
}

// jobsBetween yields the jobs that can have begun or ended in (from, to]: those of
// the history, or only those that outlived it, and the live ones.
func (c *cluster) jobsBetween(anchor, from, to time.Time) iter.Seq[job] {
	return func(yield func(job) bool) {
		if from.Before(anchor) {
			for n := range c.jobs {
				if !yield(c.pastJob(anchor, n)) {
					return
				}
			}
		} else {
			for _, j := range c.jobsOutliving(anchor) {
				if !yield(j) {
					return
				}
			}
		}
		gap, most := c.scaleDuration(liveGap), c.scaleDuration(liveMost)
		first := max(0, int(from.Sub(anchor)-most)/int(gap))
		for n := first; !anchor.Add(time.Duration(n) * gap).After(to); n++ {
			if !yield(c.liveJob(anchor, n)) {
				return
			}
		}
	}
}

// longest is the longest run of the history.
const longest = 72 * time.Hour

// jobsOutliving returns the jobs of the history that still ran at its end. They are
// kept, since every second asks for them.
func (c *cluster) jobsOutliving(anchor time.Time) []job {
	if c.late == nil || !c.lateOf.Equal(anchor) {
		c.late, c.lateOf = []job{}, anchor
		for n := range c.jobs {
			if j := c.pastJob(anchor, n); j.stop.After(anchor) {
				c.late = append(c.late, j)
			}
		}
	}
	return c.late
}

func (c *cluster) scaleDuration(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.speed)
}

func (c *cluster) newRandom(stream uint64, n int) *rand.Rand {
	return rand.New(rand.NewPCG(c.seed<<8|stream, uint64(n)))
}

// pastJob makes a job of the history. Jobs begin in the order of their numbers.
func (c *cluster) pastJob(anchor time.Time, n int) job {
	r := c.newRandom(1, n)
	step := float64(c.history) / float64(c.jobs)
	start := anchor.Add(-c.history + time.Duration(step*(float64(n)+r.Float64())))
	j := c.drawJob(r, n)
	j.start = start.Truncate(time.Microsecond)
	j.stop = j.start.Add(drawRuntime(r, 50*time.Minute, 1.5, longest))
	j.submit = j.start.Add(-time.Duration(r.ExpFloat64() * float64(20*time.Minute))).Truncate(time.Microsecond)
	j.odd = n == c.jobs/4 || n == c.jobs/2 || n == c.jobs*3/4
	return j
}

// liveJob makes a job that begins after the history.
func (c *cluster) liveJob(anchor time.Time, n int) job {
	r := c.newRandom(2, n)
	j := c.drawJob(r, c.jobs+n)
	gap := c.scaleDuration(liveGap)
	j.start = anchor.Add(time.Duration(n)*gap + time.Duration(r.Float64()*float64(gap))).Truncate(time.Microsecond)
	j.stop = j.start.Add(drawRuntime(r, c.scaleDuration(45*time.Second), 0.8, c.scaleDuration(liveMost)))
	j.submit = j.start.Add(-time.Duration(r.ExpFloat64() * float64(c.scaleDuration(20*time.Second)))).Truncate(time.Microsecond)
	return j
}

// drawRuntime draws from a log-normal distribution.
func drawRuntime(r *rand.Rand, median time.Duration, sigma float64, most time.Duration) time.Duration {
	d := time.Duration(float64(median) * math.Exp(sigma*r.NormFloat64()))
	return min(max(d, time.Second), most-time.Second).Truncate(time.Microsecond)
}

// drawJob makes all of a job but its times.
func (c *cluster) drawJob(r *rand.Rand, n int) job {
	j := job{number: n, site: r.IntN(3), user: int(float64(users) * math.Pow(r.Float64(), 2.2))}
	s := playedSites()[j.site]
	j.partition = r.IntN(len(s.partitions))
	j.id, j.name = identifyJob(n)
	j.cpus = []int64{1, 1, 2, 4, 8, 8, 16, 32, 64, 128}[r.IntN(10)]
	j.nodes = (j.cpus + 63) / 64
	j.memory = j.cpus * []int64{1024, 2048, 4096}[r.IntN(3)]
	j.efficiency = 0.35 + 0.64*math.Sqrt(r.Float64())
	switch s.partitions[j.partition] {
	case "gpu":
		j.gpus = []int64{1, 1, 1, 2, 4, 8}[r.IntN(6)]
	case "fat":
		j.memory *= 16
	}
	j.endAfter(r.Float64())
	return j
}

// identifyJob names a job. One in seven is a task of an array of up to 16.
func identifyJob(n int) (id, name string) {
	const base, every, size = 1_000_000, 112, 16
	if n%every < size {
		return fmt.Sprintf("%d_%d", base+n-n%every, n%every+1), "sweep"
	}
	return fmt.Sprint(base + n), []string{"train", "simulate", "reco", "align", "relax", "render"}[n%6]
}

func (j *job) endAfter(x float64) {
	j.state = "COMPLETED"
	switch {
	case x < 0.06:
		j.state, j.code = "FAILED", 1
	case x < 0.08:
		j.state = "TIMEOUT"
	case x < 0.11:
		j.state, j.signal = "CANCELLED", 15
	case x < 0.12:
		j.state, j.signal = "OUT_OF_MEMORY", 9
	}
}

// encodeJob gives the job as it looks at a time.
func (j *job) encodeJob(now time.Time) sdk.Job {
	s, group := playedSites()[j.site], playedGroups()[j.user%len(playedGroups())]
	state, end, stop := j.state, j.stop, sdk.Time(j.stop)
	code, signal := sdk.Int(j.code), sdk.Int(j.signal)
	ended := !j.stop.After(now)
	if !ended {
		state, end, stop, code, signal = "RUNNING", now, sdk.Null(), sdk.Null(), sdk.Null()
	}
	cpu := int64(end.Sub(j.start).Seconds() * float64(j.cpus) * j.efficiency)
	if j.odd {
		cpu = -cpu - 1
	}
	return sdk.Job{Run: j.id, Ended: ended, Values: []sdk.Value{
		sdk.String(j.id), sdk.Time(j.start), stop, sdk.Time(j.submit),
		sdk.String(state), code, signal, sdk.String(j.name),
		sdk.String(userName(j.user)), sdk.String(group), sdk.String(group + "-2026"),
		sdk.String(s.partitions[j.partition]), sdk.String(s.name),
		sdk.Int(j.nodes), sdk.Int(j.cpus), sdk.Int(j.memory), sdk.Int(j.gpus), sdk.Int(cpu),
		sdk.Float(s.hepscore), sdk.Null(),
	}}
}
