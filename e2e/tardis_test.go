//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// losing is a server before another; it loses each twentieth answer to a push, once the
// push is done.
func losing(t *testing.T, to string) *httptest.Server {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy, n := httputil.NewSingleHostReverseProxy(target), &atomic.Int64{}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%20 == 0 {
			w = httptest.NewRecorder()
			defer panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// drone is what a drone went through: when it became available and when it went down, each
// as often as TARDIS tried to tell.
type drone struct{ available, down []int64 }

func dronesOf(t *testing.T, dir string) map[string]*drone {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "states"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*drone{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		at, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			t.Fatal(line)
		}
		d := all[f[0]]
		if d == nil {
			d = &drone{}
			all[f[0]] = d
		}
		switch f[1] {
		case "AvailableState":
			d.available = append(d.available, at)
		case "DownState":
			d.down = append(d.down, at)
		}
	}
	return all
}

// The plugin of TARDIS, as PyPI has it, under its own drones: while the agent, TARDIS and
// the aggregator are killed and answers are lost, each drone that was available becomes one
// record, with the stop that TARDIS told last.
func TestTardis_DronesThroughKillsAndLostAnswers_AreOneRecordEach(t *testing.T) {
	t.Parallel()
	const drones = 30
	s := site.New(t)
	block, to := receiver(s, "tardis", "ignore_record_exists_error = true")
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: block})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	awaitHealthy(t, s, to)
	front, err := url.Parse(losing(t, to).URL)
	if err != nil {
		t.Fatal(err)
	}
	chance, restarts := rand.New(rand.NewPCG(*seed, 7)), 0
	for ended := false; !ended; restarts++ {
		if restarts > 300 {
			t.Fatal("TARDIS does not come to its end")
		}
		// A TARDIS that hangs is started anew.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, rig.Tardis(t), "-W", "ignore", "testdata/tardis_drones.py", front.Hostname(), front.Port(), s.Dir, fmt.Sprint(drones))
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		if restarts < 5 {
			go func(pause time.Duration, which int) {
				select {
				case <-stop:
				case <-time.After(pause):
					switch which {
					case 0:
						_ = cmd.Process.Kill()
					case 1:
						agent.KillChildren()
					}
				}
			}(time.Duration(1500+chance.IntN(2500))*time.Millisecond, chance.IntN(2))
		}
		err := cmd.Wait()
		cancel()
		close(stop)
		ended = err == nil
		if _, crashed := errors.AsType[*exec.ExitError](err); err != nil && !crashed {
			t.Fatal(err)
		}
		if !ended && cmd.ProcessState.Exited() && !strings.Contains(said.String(), "Reqwest Error") {
			t.Fatalf("TARDIS broke off for another reason than a lost answer:\n%s", said.String())
		}
		if restarts == 3 {
			agent.Restart()
			agg.Restart()
			awaitHealthy(t, s, to)
		}
	}
	checkDrones(t, s, agg, dronesOf(t, s.Dir), drones)
	t.Logf("%d drones, TARDIS was started %d times", drones, restarts)
	checkConserved(t, agg)
}

func checkDrones(t *testing.T, s *site.Site, agg *site.Aggregator, want map[string]*drone, count int) {
	t.Helper()
	if len(want) != count {
		t.Fatalf("%d drones, want %d", len(want), count)
	}
	never, stopped := 0, 0
	s.Eventually("each drone that was available is a closed record", func() (bool, string) {
		never, stopped = 0, 0
		got := agg.ByID()
		for id, d := range want {
			r, ok := got[id]
			if len(d.available) == 0 {
				never++
				// A TARDIS that is killed before it has noted a new drone forgets the drone.
				if len(d.down) > 0 {
					stopped++
				}
				if ok {
					return false, id + " was never available"
				}
				continue
			}
			if !ok || !slices.Contains(d.available, int64(r.Start)) || len(d.down) == 0 || int64(r.Stop) != d.down[len(d.down)-1] {
				return false, fmt.Sprintf("%s: %+v, want %+v", id, r, d)
			}
			cores := r.Component("Cores")
			if cores == nil || cores.Amount != 8 || len(cores.Scores) != 1 || cores.Scores[0].Value != 18.4 || r.Component("Disk").Amount != 160 || r.Meta.Get("group_id")[0] != "pilots" {
				return false, fmt.Sprintf("%s: %+v", id, r)
			}
		}
		return len(got) == len(want)-never, fmt.Sprintf("%d records of %d drones, %d were never available", len(got), len(want), never)
	})
	s.Eventually("each stop of a drone that never was available waits", func() (bool, string) {
		var answer struct {
			Waiting []struct {
				ID string `json:"record_id"`
			} `json:"waiting"`
		}
		err := agg.Get("/v1/waiting", &answer)
		return err == nil && len(answer.Waiting) == stopped && stopped > 0, fmt.Sprintf("%d stops wait, want those of %d drones; %v", len(answer.Waiting), stopped, err)
	})
}
