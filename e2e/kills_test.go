//go:build e2e

package e2e_test

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
)

var (
	seed  = flag.Uint64("seed", 1, "seed of the schedules of kills")
	kills = flag.Int("kills", 30, "kills of each test that kills daemons while jobs flow")
)

// killing is a schedule of kills while jobs flow: the same for the same seed and test.
type killing struct {
	victims []func()
	alive   []*site.Daemon                 // must not end by themselves
	pause   time.Duration                  // the longest before a kill
	before  func(chance *rand.Rand, n int) // what else happens before kill n; may be nil
}

func (k killing) run(t *testing.T) {
	t.Helper()
	name := fnv.New64()
	_, _ = name.Write([]byte(t.Name())) // it never fails
	chance := rand.New(rand.NewPCG(*seed, name.Sum64()))
	for n := range *kills {
		if k.before != nil {
			k.before(chance, n)
		}
		time.Sleep(time.Duration(chance.Int64N(int64(k.pause))))
		k.victims[chance.IntN(len(k.victims))]()
		for _, d := range k.alive {
			if d.Ended() {
				t.Fatalf("a daemon ended by itself after kill %d (seed %d)\n%s", n, *seed, d.Log(20))
			}
		}
	}
}
