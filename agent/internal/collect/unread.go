package collect

import (
	"maps"
	"slices"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// unread counts the jobs of a batch of which an attribute cannot be read.
type unread struct {
	jobs         int
	run, problem string // of the last one
}

// noteUnread notes what cannot be read of a job that is sent.
func (d *draft) noteUnread(job *bursarv1.Job) {
	for _, u := range job.GetUnread() {
		d.unread[u.GetAttribute()] = unread{jobs: d.unread[u.GetAttribute()].jobs + 1, run: job.GetRun(), problem: u.GetProblem()}
	}
}

// logUnread says what could not be read, one line for each attribute.
func (l *Loop) logUnread(d *draft) {
	for _, name := range slices.Sorted(maps.Keys(d.unread)) {
		u := d.unread[name]
		l.log.Warn("an attribute cannot be read; it is null in these jobs", "attribute", name, "jobs", u.jobs, "run", u.run, "problem", u.problem)
	}
}
