package source

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// However many events one question to sacct takes, a run that was told without
// slurmdbd's word is taken over by its better name: as it comes, after a restart, and
// when its window is collected again by a daemon that still has the old name.
func TestChunks_AnySplit_TakesTheOldNameBack(t *testing.T) {
	for most := 1; most <= 9; most++ {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			chance := rand.New(rand.NewPCG(uint64(most), 5))
			run(t, func(s *site) {
				s.source.most = most
				want, old := map[string]bool{}, map[string]sdk.Job{}
				first := time.Now()
				var mend []func()
				for n := range 4 {
					raw := strconv.Itoa(11 + n)
					submit, start, end := at(-100), at(-50), at(0)
					id := fmt.Sprintf("5_%d", n)
					want[id] = true
					for range 1 + chance.IntN(2) {
						s.tell(int64(11+n), ofSlurmd(time.Now().Unix()-50))
					}
					if later := chance.IntN(3) == 0; later { // slurmdbd has an earlier run of the task
						s.job(raw, "REQUEUED", at(-5000), at(-4000), at(-3000), "JobID", id)
						s.job(raw, "COMPLETED", submit, start, end, "Partition", "")
						want[id+"-"+submit] = true
					}
					mend = append(mend, func() { s.job(raw, "COMPLETED", submit, start, end, "JobID", id) })
					s.wait(time.Duration(chance.IntN(90)) * time.Minute)
				}
				s.wait(2 * time.Hour)
				maps.Copy(old, s.jobs)
				if chance.IntN(2) == 0 {
					s.restart()
					s.source.most = most
				}
				for _, f := range mend {
					f()
				}
				s.wait(3 * time.Hour)
				check := func(when string) {
					t.Helper()
					if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(s.jobs))); diff != "" {
						t.Errorf("%s (-want +got)\n%s", when, diff)
					}
				}
				check("as it comes")
				maps.Copy(s.jobs, old) // as the cluster has it, after a loss
				s.source.sent = map[job.Key]int64{}
				w := &sdk.Window{From: first.Add(-2 * time.Hour), To: time.Now()}
				if err := s.collect(time.Minute, sdk.Start{Window: w}); err != nil {
					t.Fatal(err)
				}
				check("collected again")
			})
		})
	}
}
