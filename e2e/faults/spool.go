//go:build e2e

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// spool is the outgoing directory of a site's SSM, and what APEL makes of it: the
// newest message counts.
type spool struct{ dir string }

// schedulerSites are the sites of the jobs that schedulers make up.
const schedulerSites = 3

// block is the config block of an action that writes there, for jobs since from.
func (s *spool) block(from record.Time) string {
	var text strings.Builder
	fmt.Fprintf(&text, "from = %q\n recheck = 2\n", time.UnixMicro(int64(from)).UTC().Format("2006-01"))
	for i := range schedulerSites {
		fmt.Fprintf(&text, "site \"S%d\" { ids = [\"site%d\"] }\n", i, i)
	}
	fmt.Fprintf(&text, `fields {
  VO          = "vo"
  SubmitHost  = "ce1.example.org"
  CpuDuration = record.runtime
}
benchmark "HEPscore23" { score = 10 }
directory { path = %q }`, s.dir)
	return text.String()
}

// judge compares the number of jobs of each site, as the receiver has them.
func (s *spool) judge(_ *Member, truth Truth, _ []Run) error {
	receiver, err := s.received()
	if err != nil {
		return err
	}
	var want, said, summed [schedulerSites]int64
	for _, j := range truth {
		if j.Stop != record.None && j.Stop-j.Start >= record.Time(time.Second.Microseconds()) {
			want[j.Cores%schedulerSites]++
		}
	}
	for i := range schedulerSites {
		said[i] = jobsOf(receiver.Rows("APEL-sync-message"), i)
		summed[i] = jobsOf(receiver.Rows("APEL-normalised-summary-message"), i)
	}
	if said != want || summed != want {
		return fmt.Errorf("%w: APEL was told of the jobs %v by site, and their sums have %v; there are %v", ErrNotYet, said, summed, want)
	}
	return nil
}

func jobsOf(rows []apeltest.Record, site int) (n int64) {
	for _, r := range rows {
		if r.Values["Site"] == fmt.Sprint("S", site) {
			n += r.Int("NumberOfJobs")
		}
	}
	return n
}

// received is what the receiver has of all messages, in the order in which they came.
func (s *spool) received() (*apeltest.Receiver, error) {
	files, err := filepath.Glob(filepath.Join(s.dir, "????????", "??????????????"))
	if err != nil {
		return nil, err
	}
	times := map[string]time.Time{}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return nil, err
		}
		times[f] = info.ModTime()
	}
	slices.SortFunc(files, func(a, b string) int { return times[a].Compare(times[b]) })
	receiver := &apeltest.Receiver{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err == nil {
			err = receiver.Take(string(text), time.Now())
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
	}
	return receiver, nil
}
