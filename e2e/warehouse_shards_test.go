//go:build e2e

package e2e_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

var queried = flag.Int("queried", 200, "queries over shards whose rows are replaced, from each server")

// newShards starts two sites with a shard each. Profile is that of the servers.
func newShards(t *testing.T, profile string) (sites []*warehouse) {
	t.Helper()
	s := site.New(t)
	natives := []string{s.Address(), s.Address()}
	for i := range natives {
		own := s
		if i > 0 {
			own = site.New(t)
		}
		w := &warehouse{T: t, site: own, agg: own.Aggregator(), ch: rig.NewClickHouse(t, s.Address(), natives[i], natives...), label: "national", rng: rand.New(rand.NewPCG(uint64(i), 36))}
		if profile != "" {
			w.ch.SetProfile(profile)
		}
		w.ch.Start()
		sites = append(sites, w)
	}
	for _, w := range sites {
		w.begin(w.ch.URL(), `cluster = "shards"`)
	}
	return sites
}

func TestWarehouse_SitesOnShards_AreReadTogether(t *testing.T) {
	t.Parallel()
	sites := newShards(t, "")
	records := 0
	for _, w := range sites {
		w.fill(500)
		w.shake(50)
		w.rest()
		w.agree()
		n, err := strconv.Atoi(w.ch.MustQuery("SELECT sum(sign) FROM bursar.ledger"))
		if err != nil {
			t.Fatal(err)
		}
		records += n
	}
	for i, w := range sites {
		for n := range i + 1 {
			w.openJob(fmt.Sprint("open/", n), time.Hour)
		}
		w.settle()
	}
	for _, w := range sites {
		if got := w.ch.MustQuery("SELECT count(DISTINCT cluster), count() FROM bursar.running_now_all"); got != "2\t3" {
			t.Errorf("clusters and records that go on: %s", got)
		}
		running := w.ch.MustQuery("SELECT count(), sum(Cores) FROM bursar.running_now_all")
		if got := w.ch.MustQuery("SELECT sum(running * started), sum(Cores * running) FROM bursar.usage_now_all"); got != running {
			t.Errorf("usage_now_all has %s of what goes on, running_now_all %s", got, running)
		}
		got := w.ch.MustQuery("SELECT count(DISTINCT cluster), sum(sign) FROM bursar.ledger_all")
		if want := fmt.Sprintf("2\t%d", records); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		whole := w.ch.MustQuery("SELECT sum(sign * Cores) FROM bursar.ledger_all")
		for _, table := range []string{"daily_all", "monthly_all"} {
			if sums := w.ch.MustQuery("SELECT sum(Cores) FROM bursar." + table); sums != whole {
				t.Errorf("%s has %s core-seconds, ledger_all %s", table, sums, whole)
			}
		}
	}
}

// TestWarehouse_QueriesOverShards_EndWhileRowsAreReplaced drops partitions on both shards while
// queries read both. Where they wait in a circle, receive_timeout ends it.
func TestWarehouse_QueriesOverShards_EndWhileRowsAreReplaced(t *testing.T) {
	t.Parallel()
	sites := newShards(t, "<receive_timeout>10</receive_timeout>")
	for _, w := range sites {
		w.fill(500)
		w.shake(50)
		w.arrive()
	}
	var queries []string
	from, to := time.Date(2023, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, by := range []string{"site", "group_id", "user_id"} {
		for _, sums := range []string{"daily_all", "monthly_all"} {
			for _, p := range readDashboard(t).Panels {
				queries = append(queries, inGrafana(p.Targets[0].RawSQL, from, to, map[string][]string{"database": {"bursar"}, "daily": {sums}, "ledger": {"ledger_all"}, "by": {by}}))
			}
		}
	}
	queries = append(queries, "SELECT count() FROM bursar.running_now_all", "SELECT sum(Cores * running) FROM bursar.usage_now_all")
	const readers = 4
	var reading, writing sync.WaitGroup
	var mu sync.Mutex
	ended, broken, longest := make([]int, len(sites)), 0, time.Duration(0)
	stop := make(chan struct{})
	for i, w := range sites {
		writing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				w.order("replace=all", "agree at change")
				w.shake(20)
			}
		})
		for k := range readers {
			rng := rand.New(rand.NewPCG(uint64(k), uint64(i)))
			reading.Go(func() {
				for range *queried / readers {
					begun := time.Now()
					query := queries[rng.IntN(len(queries))]
					_, err := w.ch.Query(query)
					mu.Lock()
					longest = max(longest, time.Since(begun))
					switch {
					case err == nil:
						ended[i]++
					case strings.Contains(err.Error(), "Code: 209"):
						broken++
					default:
						t.Error(err)
					}
					mu.Unlock()
				}
			})
		}
	}
	reading.Wait()
	close(stop)
	writing.Wait()
	t.Logf("%d queries were answered, %d ended by receive_timeout; the longest took %s", ended, broken, longest.Round(time.Millisecond))
	for i, w := range sites {
		if ended[i] == 0 {
			t.Errorf("no query to site %d was answered", i)
		}
		w.rest()
		w.agree()
	}
}
