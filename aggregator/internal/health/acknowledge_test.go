package health

import (
	"strings"
	"testing"
	"time"
)

func TestJudge_AcknowledgedWarning_IsANotice(t *testing.T) {
	lacking := func(f *Facts) {
		f.Data.Lacking = []Lacking{{Agent: "head1", Source: "head1/slurm/nemo", From: noon.Add(-36 * time.Hour), To: noon.Add(-12 * time.Hour), Runs: 3}}
	}
	gaps := func(f *Facts) { f.Data.Gaps, f.Data.NewestGap = 2, noon }
	quarantine := func(f *Facts) { f.Data.Quarantined, f.Data.OldestQuarantined = 3, noon }
	about := "head1/slurm/nemo 2026-02-28"
	for _, c := range []struct {
		name string
		set  func(*Facts)
		is   Acknowledgement
		want State
	}{
		{"so many jobs", quarantine, Acknowledgement{ID: "quarantine", Count: 3}, Healthy},
		{"one job more", quarantine, Acknowledgement{ID: "quarantine", Count: 2}, Degraded},
		{"no number", quarantine, Acknowledgement{ID: "quarantine"}, Degraded},
		{"so many gaps", gaps, Acknowledgement{ID: "gaps", Count: 2}, Healthy},
		{"the day", lacking, Acknowledgement{ID: "runs-missing", About: about, Count: 3}, Healthy},
		{"one run more on the day", lacking, Acknowledgement{ID: "runs-missing", About: about, Count: 2}, Degraded},
		{"another day", lacking, Acknowledgement{ID: "runs-missing", About: "head1/slurm/nemo 2026-02-27", Count: 3}, Degraded},
		{"any day", lacking, Acknowledgement{ID: "runs-missing", Count: 3}, Degraded},
		{"another finding", lacking, Acknowledgement{ID: "gaps", About: about, Count: 3}, Degraded},
		{"what counts nothing", func(f *Facts) { f.Nodes[2].Version = "1.1" }, Acknowledgement{ID: "versions-mixed"}, Healthy},
		{"what is critical", func(f *Facts) { f.Data.Lost = []string{"head1/slurm/nemo"} }, Acknowledgement{ID: "not-conserved", Count: 9}, Failing},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := trio()
			c.set(&f)
			c.is.Reason = "the log is lost"
			f.Acknowledged = []Acknowledgement{c.is}
			r := Judge(f)
			if r.State != c.want || len(r.Findings) != 1 {
				t.Fatalf("%s, want %s: %+v", r.State, c.want, r.Findings)
			}
			if said := strings.HasSuffix(r.Findings[0].What, "; acknowledged: the log is lost"); said != (c.want == Healthy) {
				t.Errorf("%+v", r.Findings[0])
			}
		})
	}
}
