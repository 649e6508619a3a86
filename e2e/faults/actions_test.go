//go:build e2e

package faults_test

import (
	"flag"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/faults"
	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
	"github.com/bursar-accounting/bursar/plugins/action/report/smtptest"
)

var deaths = flag.Int("deaths", 20, "kills of the leader in the test of actions; a tenth as many pauses come with them")

// deathsOnOneSite is how many there are until there is a new site.
const deathsOnOneSite = 60

func TestActions_LeaderKilledOrPaused_HaveEachEffectOnce(t *testing.T) {
	t.Parallel()
	for seed, left := *seed, *deaths; left > 0 && !t.Failed(); seed, left = seed+1, left-deathsOnOneSite {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			g := faults.NewSiege(t, seed, readAPEL, serveMail)
			n := min(left, deathsOnOneSite)
			for done, pauses := 0, 0; done < n; {
				successors := min(int(seed+uint64(done))%4, n-done-1)
				g.Kill(successors)
				done += 1 + successors
				if pauses < done/10 {
					pauses++
					g.Pause()
				}
			}
			g.Judge()
		})
	}
}

// serveMail is a server of mail.
func serveMail(l net.Listener, take func(mail []byte) error) {
	// At once, since one mail may wait at a gate for ever.
	(&smtptest.Server{Take: func(mail []byte) string {
		if err := take(mail); err != nil {
			return "451 " + err.Error()
		}
		return ""
	}}).Serve(l)
}

// readAPEL reads messages as the receiver of APEL does.
func readAPEL(messages []string) (said, summed map[string]int64, err error) {
	receiver := &apeltest.Receiver{}
	for _, text := range messages {
		if err := receiver.Take(text, time.Now()); err != nil {
			return nil, nil, err
		}
	}
	jobs := func(header string) map[string]int64 {
		n := map[string]int64{}
		for _, r := range receiver.Rows(header) {
			n[r.Values["Site"]] += r.Int("NumberOfJobs")
		}
		return n
	}
	return jobs("APEL-sync-message"), jobs("APEL-normalised-summary-message"), nil
}
