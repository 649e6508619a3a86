package source

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func TestHalfRun_RestAfterTheOverlaps_TakesTheRecordOver(t *testing.T) {
	for name, later := range map[string]time.Duration{"within the overlap": 20 * time.Minute, "within the deep overlap": 30 * time.Hour, "days": 20 * 24 * time.Hour} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " restart ", restart), func(t *testing.T) {
				s := newSite(t)
				s.job("11", "COMPLETED", -0.5, -0.5, -0.4, "Partition", "")
				s.poll(0)
				s.wantRuns("11")
				s.poll(later)
				s.wantRuns("11")
				if restart {
					s.restart()
				}
				s.job("11", "COMPLETED", -0.5, -0.5, -0.4, "JobID", "5_1")
				s.poll(time.Hour)
				s.wantRuns("5_1")
				s.poll(time.Minute)
				before := s.calls()
				s.poll(2 * time.Minute)
				if n := s.calls() - before; n != 2 { // columns and one window
					t.Errorf("%d calls of sacct after the run has its name", n)
				}
			})
		}
	}
}

func TestHalfRun_StillRunning_TakesTheOpenRecordOver(t *testing.T) {
	s := newSite(t)
	s.job("11", "RUNNING", -0.5, -0.5, never, "Partition", "")
	s.poll(0)
	s.wantRuns("11 open")
	s.job("11", "RUNNING", -0.5, -0.5, never, "JobID", "5_1")
	s.poll(time.Minute)
	s.wantRuns("5_1 open")
}

func TestHalfRun_LaterRunOfAJob_IsTakenBackByItsWholeName(t *testing.T) {
	s := newSite(t)
	s.job("11", "REQUEUED", -3, -3, -2.5, "JobID", "5_1")
	s.job("11", "COMPLETED", -2, -2, -1.5, "Partition", "")
	s.poll(0)
	submit := strconv.FormatInt(noon().Add(-2*time.Hour).Unix(), 10)
	s.wantRuns("11-"+submit, "5_1")
	s.job("11", "COMPLETED", -2, -2, -1.5, "JobID", "5_1")
	s.poll(time.Minute)
	s.wantRuns("5_1", "5_1-"+submit)
}

func TestHalfRun_CollectedAgain_IsTakenBack(t *testing.T) {
	s := newSite(t)
	s.job("11", "COMPLETED", -0.5, -0.5, -0.4, "Partition", "")
	s.poll(0)
	s.job("11", "COMPLETED", -0.5, -0.5, -0.4, "JobID", "5_1")
	w := &sdk.Window{From: noon().Add(-time.Hour), To: noon()}
	for range 2 {
		s.jobs["11"] = sdk.Job{Run: "11", Ended: true} // as the cluster may have it
		if err := s.collect(sdk.Start{Window: w}); err != nil {
			t.Fatal(err)
		}
		s.wantRuns("5_1")
	}
}

// Whatever of each run slurmdbd gets when, and however often the plugin dies or the
// daemon fails: in the end each run is one job by its true name.
func TestHalfRun_AnyOrder_EachRunIsOneJob(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 7))
			s := newSite(t, text("window", "6h"))
			var want []string
			var whole []func()
			for n := range 1 + chance.IntN(7) {
				raw := strconv.Itoa(11 + n)
				id := []string{raw, fmt.Sprintf("5_%d", n), fmt.Sprintf("6+%d", n)}[chance.IntN(3)]
				start := -40 * chance.Float64()
				end := start + min(-start, chance.Float64())
				want = append(want, id)
				s.job(raw, "COMPLETED", start, start, end, "Partition", "")
				whole = append(whole, func() { s.job(raw, "COMPLETED", start, start, end, "JobID", id) })
			}
			chance.Shuffle(len(whole), func(a, b int) { whole[a], whole[b] = whole[b], whole[a] })
			for _, mend := range whole {
				if chance.IntN(4) == 0 {
					s.fail = chance.IntN(3)
				}
				s.time = s.time.Add(time.Duration(chance.IntN(3000)) * time.Minute)
				_ = s.collect(sdk.Start{}) // which may fail
				s.fail = -1
				if chance.IntN(3) == 0 {
					s.restart()
				}
				mend()
			}
			s.poll(2 * time.Hour)
			s.poll(7 * time.Hour)
			slices.Sort(want)
			s.wantRuns(want...)
			if c, err := decodeCheckpoint(s.checkpoint); err != nil || len(c.Half) > 0 {
				t.Error(c.Half, err)
			}
		})
	}
}
