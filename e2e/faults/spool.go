//go:build e2e

package faults

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
)

// APEL reads messages in the order in which they came, and returns how many jobs of
// each site its sync messages say and its summaries add up to.
type APEL func(messages []string) (said, summed map[string]int64, err error)

// spool is the outgoing directory of a site's SSM, and what APEL makes of it.
type spool struct {
	dir  string
	read APEL
}

// schedulerSites are the sites of the jobs that schedulers make up.
const schedulerSites = 3

// configBlock is the config block of an action that writes there, for jobs since from.
func (s *spool) configBlock(from record.Time) string {
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

// judgeMessages compares the number of jobs of each site, as the receiver has them.
func (s *spool) judgeMessages(_ *Member, truth Truth, _ []Run) error {
	messages, err := s.readMessages()
	if err != nil {
		return err
	}
	said, summed, err := s.read(messages)
	if err != nil {
		return err
	}
	want := map[string]int64{}
	for _, j := range truth {
		if j.Stop != record.None && j.Stop-j.Start >= record.Time(time.Second.Microseconds()) {
			want[fmt.Sprint("S", j.Cores%schedulerSites)]++
		}
	}
	if !maps.Equal(said, want) || !maps.Equal(summed, want) {
		return fmt.Errorf("%w: APEL was told of the jobs %v by site, and its summaries have %v; there are %v", ErrNotYet, said, summed, want)
	}
	return nil
}

// readMessages are all there are, in the order in which they came.
func (s *spool) readMessages() (messages []string, err error) {
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
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		messages = append(messages, string(text))
	}
	return messages, nil
}
