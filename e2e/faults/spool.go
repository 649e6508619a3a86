//go:build e2e

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
)

// spool is the outgoing directory of a site's SSM, and what APEL makes of it: the
// newest message counts.
type spool struct{ dir string }

// schedulerSites are the sites of the jobs that schedulers make up.
const schedulerSites = 3

// block is the config block of an action that writes there, for jobs since from.
func (s *spool) block(from record.Time) string {
	text := fmt.Sprintf("from = %q\n recheck = 2\n", time.UnixMicro(int64(from)).UTC().Format("2006-01"))
	for i := range schedulerSites {
		text += fmt.Sprintf("site \"S%d\" { ids = [\"site%d\"] }\n", i, i)
	}
	return text + fmt.Sprintf(`fields {
  VO          = "vo"
  SubmitHost  = "ce1.example.org"
  CpuDuration = record.runtime
}
benchmark "HEPscore23" { score = 10 }
directory { path = %q }`, s.dir)
}

// judge compares the number of jobs that the receiver knows of each site.
func (s *spool) judge(_ *Member, truth Truth, _ []Run) error {
	want := map[string]string{}
	for i := range schedulerSites {
		n := 0
		for _, j := range truth {
			if j.Stop != record.None && j.Stop-j.Start >= record.Time(time.Second.Microseconds()) && j.Cores%schedulerSites == int64(i) {
				n++
			}
		}
		want[fmt.Sprint("S", i)] = fmt.Sprint(n)
	}
	got, err := s.newest()
	if err != nil {
		return err
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("%w: APEL knows the jobs %v, there are %v", ErrNotYet, got, want)
	}
	return nil
}

// newest is the number of jobs of each site in the newest message about it.
func (s *spool) newest() (map[string]string, error) {
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
	jobs := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(string(text), "APEL-sync-message") {
			continue
		}
		for part := range strings.SplitSeq(string(text), "%%") {
			values := map[string]string{}
			for line := range strings.Lines(part) {
				name, value, _ := strings.Cut(line, ":")
				values[name] = strings.TrimSpace(value)
			}
			if values["Site"] != "" {
				jobs[values["Site"]] = values["NumberOfJobs"]
			}
		}
	}
	return jobs, nil
}
