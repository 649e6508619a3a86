package source

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/fakenomad"
)

// The recorded cluster of ai4-accounting, from whose snapshots that program loses
// whole jobs, tails and restarts, is told to the digit: whether by the event stream
// alone, with jobs that are purged within the second, by listings alone, or by a source
// that is killed after every change.
func TestTheClusterOfAi4IsToldToTheDigit(t *testing.T) {
	for name, play := range map[string]func(*site){
		"by the event stream": func(s *site) { s.start(text("list_interval", "1h")) },
		"by listings": func(s *site) {
			s.server.NoStream = true
			s.start()
		},
		"by a source that is killed after every change": func(s *site) { s.start() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			s := newSite(t)
			s.set(time.Date(2025, 2, 1, 0, 0, 0, 0, time.UTC))
			w, err := fakenomad.ReadWorld("testdata/ai4-world.json")
			if err != nil {
				t.Fatal(err)
			}
			play(s)
			killed := strings.Contains(name, "killed")
			player := fakenomad.NewPlayer(s.server, w)
			for at, more := player.Step(); more; at, more = player.Step() {
				s.set(at)
				s.await("the runs of "+at.String(), func() bool { return upToDate(s, w, at) })
				if strings.Contains(name, "listings") {
					s.listed()
				}
				if killed {
					s.kill()
					s.start()
				}
			}
			want, err := os.ReadFile("testdata/ai4-truth.txt")
			if err != nil {
				t.Fatal(err)
			}
			s.stop()
			if diff := cmp.Diff(string(want), hours(s, w)); diff != "" {
				t.Errorf("(-truth +source)\n%s", diff)
			}
			s.checkRecords()
			if len(s.gaps) != 0 && !killed {
				t.Errorf("gaps: %v", s.gaps)
			}
		})
	}
}

// upToDate reports whether the daemon knows all starts and ends up to a time.
func upToDate(s *site, w *fakenomad.World, at time.Time) bool {
	for _, a := range w.Allocs {
		runs, ended := 0, 0
		for _, j := range s.jobs {
			if valueOf(j, "alloc_id").Str() == a.ID {
				runs++
				if j.Ended {
					ended++
				}
			}
		}
		want := len(slices.DeleteFunc(slices.Clone(a.Starts), func(t time.Time) bool { return t.After(at) }))
		over := max(want-1, 0)
		if a.End != nil && !a.End.After(at) {
			over = want
		}
		if runs != want || ended != over {
			return false
		}
	}
	return true
}

// use is what a job used, in hours.
type use struct {
	ns, owner            string
	time, cpu, gpu, disk float64
	memory               float64
}

// hours writes what the runs used from the first to the third of March as the truth
// does.
func hours(s *site, w *fakenomad.World) string {
	from, to := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, 3, 4, 0, 0, 0, 0, time.UTC)
	used := map[string]use{}
	for _, j := range s.jobs {
		start, stop := valueOf(j, "start").Time(), valueOf(j, "stop").Time()
		if stop.IsZero() || stop.After(to) {
			stop = to
		}
		if start.Before(from) {
			start = from
		}
		h := max(0, stop.Sub(start).Hours())
		u := used[valueOf(j, "job_id").Str()]
		u.ns, u.owner = valueOf(j, "namespace").Str(), valueOf(j, "owner").Str()
		u.time += h
		u.cpu += h * float64(valueOf(j, "cores").Int())
		u.gpu += h * float64(valueOf(j, "gpus").Int())
		u.memory += h * float64(valueOf(j, "memory_mb").Int())
		u.disk += h * float64(valueOf(j, "disk_mb").Int())
		used[valueOf(j, "job_id").Str()] = u
	}
	var out strings.Builder
	for _, ns := range []string{"ai4eosc", "imagine", "ai4life", "tutorials"} {
		var sum use
		fmt.Fprintln(&out, ns)
		for _, id := range sortedJobs(used) {
			u := used[id]
			if u.ns != ns {
				continue
			}
			if u.owner == "" {
				u.owner = "None"
			}
			fmt.Fprintf(&out, "  %s  owner=%-5s%9.4f h  cpu %10.4f gpu %8.4f\n", id, u.owner, u.time, u.cpu, u.gpu)
			sum.cpu, sum.gpu, sum.memory, sum.disk = sum.cpu+u.cpu, sum.gpu+u.gpu, sum.memory+u.memory, sum.disk+u.disk
		}
		fmt.Fprintf(&out, "  total cpu-hours %.4f gpu-hours %.4f memory_MB-hours %.2f disk_MB-hours %.2f\n", sum.cpu, sum.gpu, sum.memory, sum.disk)
	}
	return out.String()
}

func sortedJobs(used map[string]use) []string {
	var ids []string
	for id := range used {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
