package health

import (
	"fmt"
	"time"
)

func (j *judge) checkQuarantine() {
	if n := j.Data.Quarantined; n > 0 {
		j.addFinding(Finding{
			Severity: Warning, ID: "quarantine", Since: j.Data.OldestQuarantined, Count: int64(n),
			What: plural(n, "job is quarantined; its", "jobs are quarantined; their") + " usage is not counted",
			Do:   "bursar quarantine list   # fix the mapping, then: bursar quarantine retry -all, which names what it cannot retry",
		})
	}
}

// checkConservation finds counters that do not add up, which is a defect.
func (j *judge) checkConservation() {
	if len(j.Data.Lost) > 0 {
		j.addFinding(Finding{
			Severity: Critical, ID: "not-conserved", What: "the counters of pulled writes do not add up: " + joinThree(j.Data.Lost),
			Do: "bursar agents -format json   # and report it: this must never happen",
		})
	}
}

func (j *judge) checkGaps() {
	if n := j.Data.Gaps; n > 0 {
		f := Finding{
			Severity: Warning, ID: "gaps", Since: j.Data.NewestGap, Count: int64(n),
			What: fmt.Sprintf("%s in what the agents could hand over", plural(n, "gap", "gaps")),
			Do:   "bursar gaps   # lists what is missing; bursar-agent recollect on the agent fetches what the scheduler still has",
		}
		if j.Now.Sub(j.Data.NewestGap) > oldGap {
			f.Severity = Notice
		}
		j.addFinding(f)
	}
}

// checkMissingRuns finds days that lack runs.
func (j *judge) checkMissingRuns() {
	for i := range j.Data.Lacking {
		l := &j.Data.Lacking[i]
		days := l.From.Format(time.DateOnly)
		if last := l.To.Add(-time.Second).Format(time.DateOnly); last != days {
			days += " to " + last
		}
		f := Finding{
			Severity: Warning, ID: "runs-missing", About: l.Source + " " + days, Count: l.Runs, Do: l.Remedy + "   # on " + l.Agent + "; first with -plan",
			What: fmt.Sprintf("%s of %s: the scheduler has %s", days, l.Source, plural(int(l.Runs), "run that is not counted", "runs that are not counted")),
		}
		switch l.Runs {
		case l.Unread:
			f.What += ", and the source does not collect"
			f.Do = "journalctl -u bursar-agent -n 50   # on " + l.Agent + "; what the source counts it must also collect: please report it"
		case l.Shared:
			f.What += ", because the mapping gives the record ids of other runs"
			f.Do = "bursar-agent preview   # on " + l.Agent + ": correct the id in the mapping, then: " + l.Remedy
		}
		j.addFinding(f)
	}
}

func (j *judge) checkConflicts() {
	if n := j.Data.Conflicts; n > 0 {
		j.addFinding(Finding{
			Severity: Warning, ID: "conflicts", Count: int64(n), What: fmt.Sprintf("origins disagree about the start of %s", plural(n, "run", "runs")),
			Do: "bursar conflicts",
		})
	}
}

func (j *judge) checkWaitingStops() {
	if n := j.Data.Waiting; n > 0 {
		j.addFinding(Finding{
			Severity: Notice, ID: "waiting-stops", What: fmt.Sprintf("%s for a record that has not come", plural(n, "stop waits", "stops wait")),
			Do: "bursar waiting list",
		})
	}
}

func (j *judge) checkSnapshots() {
	b := j.Backup
	if !b.Known {
		return
	}
	f := Finding{ID: "backup-old", Do: "bursar snapshot save FILE"}
	switch {
	case b.Last.IsZero() && j.Data.Records > 0:
		f.Severity, f.ID, f.What = Notice, "backup-none", "no snapshot has been saved that this cluster knows of"
	case !b.Last.IsZero() && j.Now.Sub(b.Last) > max(oldBackup, 2*b.Every):
		f.Severity, f.Since = Warning, b.Last
		f.What = fmt.Sprintf("the newest snapshot is %d days old", int(j.Now.Sub(b.Last).Hours()/24))
	default:
		return
	}
	j.addFinding(f)
}

// checkNodeBackups finds nodes whose backups fail, or do not come.
func (j *judge) checkNodeBackups() {
	j.eachHeardNode(func(n *Node) {
		b := n.Backup
		if b == nil {
			return
		}
		if b.Error != "" {
			j.addFinding(Finding{
				Severity: Warning, ID: "backup-fails", About: n.Name, Since: b.Failing,
				What: fmt.Sprintf("the backup of %s fails: %s", n.Name, b.Error), Do: fmt.Sprintf("%s   # on %s", b.Remedy, n.Name),
			})
			return
		}
		last, what := b.Last, "the newest backup"
		if last.Before(b.Began) {
			last, what = b.Began, "the wait for a backup"
		}
		if late := j.Now.Sub(last); late > 2*b.Every+lateBackup {
			j.addFinding(Finding{
				Severity: Warning, ID: "backup-late", About: n.Name, Since: last.Add(b.Every),
				What: fmt.Sprintf("%s of %s is %d h old, and one is to be made every %d h", what, n.Name, int(late.Hours()), int(b.Every.Hours())),
				Do:   fmt.Sprintf("journalctl -u bursar -n 50   # on %s", n.Name),
			})
		}
	})
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
