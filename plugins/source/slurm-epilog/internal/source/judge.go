package source

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/setting"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
)

// draft is a batch in the making.
type draft struct {
	*pass
	batch   sdk.Batch
	window  *sdk.Window // of which runs are wanted; nil: of any time
	sent    []*job.Run
	refused []refusal
	in      map[job.Key]int // what was looked at, and where it is among the jobs; -1: nowhere
}

func newDraft(p *pass) *draft { return &draft{pass: p, in: map[job.Key]int{}} }

func (d *draft) hasSome() bool {
	return len(d.batch.Jobs) > 0 || len(d.batch.Refused) > 0 || d.batch.Skipped > 0
}

// judgeEvent puts into the batch what slurmdbd says of an event's job, and reports whether
// nothing more is to be expected.
//
// All runs that ended are true, whichever the event is of, so they are sent. Settled
// it is when the run that went on as the epilog ran has ended; while slurmdbd does
// not say so yet, it is asked again, and after a while the epilog is believed. Then
// w.news is the job id under which that was told.
func (d *draft) judgeEvent(w *waiting, a *answer) (settled bool) {
	w.news = ""
	for _, o := range a.bad {
		d.refuseRow(o.name, o.err, o.raw)
	}
	var last *job.Run // that had begun when the epilog ran
	some := false     // runs that may be the epilog's
	half := false     // of which slurmdbd does not know all yet
	runs := a.runsOf(w)
	for _, r := range runs {
		if r.Half(d.now()) {
			half = true
			continue
		}
		some = some || !r.Ended() || !r.End.Before(w.epilogTime().Add(-slack))
		if r.Started() && r.Ended() {
			again, told := w.takesOver(r, runs)
			d.addRun(r, d.config.Filter, again, told)
		}
		if !r.Start.IsZero() && !r.Start.After(w.epilogTime().Add(w.clockSkew())) {
			last = r
		}
	}
	over := last != nil && last.Ended()
	switch {
	case half:
		return false
	case over && w.endsWith(last) && (!last.Incomplete() || w.Told == ""):
		d.countNeverRan(last)
		if last.Incomplete() {
			w.news = last.Name()
		}
		return true
	case last == nil && len(a.bad) > 0:
		return true // what there is of it is in quarantine
	case w.Told != "":
		return d.giveUp(w)
	case w.since.IsZero() || d.now().Sub(w.since) < d.config.Wait:
		return false
	case over:
		d.judgeLate(w, last)
	case last != nil:
		d.doubtRun(w, last)
	case some:
		d.log.Warn("an epilog ran before its job began; are the clocks of the cluster right?", "job", w.JobID(), "epilog", w.epilogTime().UTC().Format(time.RFC3339), "on", w.Host)
	default:
		d.believeEpilog(w)
	}
	return true
}

// endsWith reports whether the epilog is that of a run that has ended. The epilog of a
// node that was away runs long after the end; but then slurmdbd may as well lack a
// later run of the same number. The start tells, where the epilog has it.
func (w *waiting) endsWith(r *job.Run) bool {
	return !r.End.Before(w.epilogTime().Add(-slack)) || w.Start != 0 && r.Start.Sub(time.Unix(w.Start, 0)).Abs() <= skew
}

// judgeLate deals with an epilog that ran long after the last run of its job that slurmdbd
// has, which was sent.
func (d *draft) judgeLate(w *waiting, r *job.Run) {
	if w.Start == 0 {
		d.log.Warn("an epilog ran long after the end of its job's last run, which is what slurmdbd has", "job", w.JobID(),
			"ended", r.End.UTC().Format(time.RFC3339), "epilog", w.epilogTime().UTC().Format(time.RFC3339), "on", w.Host)
		return
	}
	line, _ := w.Line() // as it was read from one
	w.news = w.JobID()
	d.refuseRow(d.nameOf(w), fmt.Errorf("slurmdbd has only an earlier run of this job, which ended at %s; the epilog's began at %s",
		r.End.UTC().Format(time.RFC3339), time.Unix(w.Start, 0).UTC().Format(time.RFC3339)), line)
}

// giveUp reports whether slurmdbd is not waited for any longer, of a run that was told
// without it.
func (d *draft) giveUp(w *waiting) bool {
	if d.now().Sub(time.UnixMicro(w.Since)) < watched {
		return false
	}
	d.log.Warn("slurmdbd never reported a run that its epilog reported", "job", w.Told, "epilog", w.epilogTime().UTC().Format(time.RFC3339))
	return true
}

// takesOver says what becomes of a run when something was told of it without slurmdbd's
// word: whether it is sent again, and the job id under which it was told, where that is
// not its own, nor that of another run. A run of which it was told by mistake is sent
// again too.
func (w *waiting) takesOver(r *job.Run, runs []*job.Run) (again bool, told string) {
	own := func(r *job.Run) bool {
		return r.Started() && r.Ended() && !r.Start.After(w.epilogTime().Add(w.clockSkew())) && w.endsWith(r)
	}
	if w.Told == "" || !slices.ContainsFunc(runs, own) {
		return false, ""
	}
	taken := slices.ContainsFunc(runs, func(other *job.Run) bool { return other.Name() == w.Told })
	if !own(r) || taken {
		return own(r) || r.Name() == w.Told, ""
	}
	return true, w.Told
}

// countNeverRan counts a run that had no resources.
func (d *draft) countNeverRan(r *job.Run) {
	if _, in := d.in[r.Key]; !r.Started() && !in && d.window == nil {
		d.in[r.Key] = -1
		d.batch.Skipped++
	}
}

// addRun puts a run into the batch, unless the daemon has it and nothing else was told of
// it. What was told under another job id is taken back.
func (d *draft) addRun(r *job.Run, filter setting.Filter, again bool, told string) {
	if d.window != nil && !d.window.Holds(r.End) {
		return
	}
	if at, in := d.in[r.Key]; in {
		d.addFormerID(at, r, told)
		return
	}
	if end, sent := d.pass.sent[r.Key]; sent && end == r.End.Unix() && d.window == nil && !again {
		return
	}
	values, unread := d.plan.Values(r)
	wanted := filter.Wants(r) && !r.End.Before(d.config.Earliest.Time)
	d.in[r.Key] = len(d.batch.Jobs)
	d.batch.Jobs = append(d.batch.Jobs, sdk.Job{Run: r.RunName(), Values: values, Unread: unread, Ended: true, Excluded: !wanted})
	d.addFormerID(d.in[r.Key], r, told)
	d.sent = append(d.sent, r)
}

// addFormerID adds the job id under which a job of the batch was told before.
func (d *draft) addFormerID(at int, r *job.Run, told string) {
	if told == "" || at < 0 || told == r.Name() {
		return
	}
	old, err := r.Named(told)
	if err != nil {
		return // nothing was told under that
	}
	j := &d.batch.Jobs[at]
	if slices.ContainsFunc(j.Formerly, func(f sdk.Job) bool { return f.Run == old.RunName() }) || len(j.Formerly) == sdk.MaxFormerly {
		return
	}
	values, _ := d.plan.Values(old)
	j.Formerly = append(j.Formerly, sdk.Job{Run: old.RunName(), Values: values, Ended: true})
}

// refuseRow hands on what is no job, once.
func (d *draft) refuseRow(name string, err error, raw []byte) {
	mark := refusal{name[:min(len(name), 256)], err.Error()}
	if d.pass.refused[mark] && d.window == nil {
		return
	}
	if slices.Contains(d.refused, mark) {
		return
	}
	d.refused = append(d.refused, mark)
	d.batch.Refused = append(d.batch.Refused, sdk.Refused{Run: mark.run, Message: mark.message, Raw: raw})
}

// clockSkew is by how much the event's clock may differ from that of slurmctld, whose times
// slurmdbd has.
func (w *waiting) clockSkew() time.Duration {
	if w.Context == event.OfController {
		return 0
	}
	return skew
}

// doubtRun deals with a run that slurmdbd says goes on. Slurmctld's epilog is believed;
// of slurmd's only an operator can tell.
func (d *draft) doubtRun(w *waiting, r *job.Run) {
	w.news = r.Name()
	if w.Context != event.OfController {
		d.refuseRow(r.RunName(), fmt.Errorf("slurmdbd says that it still runs, %s after its epilog on %s; \"sacctmgr show runawayjobs\" mends what is lost there, and then the run comes by itself, or with bursar-agent recollect",
			d.now().Sub(w.epilogTime()).Round(time.Second), w.Host), r.Show())
		return
	}
	closed, err := d.plan.Run(r.With(map[string]string{"State": unknown, "End": formatSeconds(endTime(w)), "ExitCode": w.Exit}))
	if err == nil && closed.End.Before(closed.Start) {
		err = fmt.Errorf("it began at %s, after its epilog", closed.Start.Format(time.RFC3339))
	}
	if err != nil {
		d.refuseRow(r.RunName(), err, r.Show())
		return
	}
	closed.Later, closed.Qualified = r.Later, r.Qualified
	d.tellOfRun(w, closed, "slurmdbd does not say that the run has ended; its epilog's word is taken")
}

// unknown is the state of a run of which only an epilog speaks: its exit code does
// not say whether it was cancelled or ran out of time.
const unknown = "UNKNOWN"

// believeEpilog makes a run of what an epilog alone says, where that is enough.
func (d *draft) believeEpilog(w *waiting) {
	w.news = w.JobID()
	line, _ := w.Line() // as it was read from one
	if start := w.Unread["start"]; start != "" {
		d.refuseRow(d.nameOf(w), fmt.Errorf("%w, and of what the epilog says the start %q cannot be read", errNotKnown, start), line)
		return
	}
	if w.Start == 0 || w.Restarts != nil && *w.Restarts > 0 {
		d.refuseRow(d.nameOf(w), fmt.Errorf("%w, and the epilog does not tell enough: it needs the start, which newer Slurms tell (24.11 does, 22.05 does not), of a job that was not requeued", errNotKnown), line)
		return
	}
	r, err := d.plan.Told(epilogColumns(w))
	if err == nil && r.End.Before(r.Start) {
		err = fmt.Errorf("it began at %s, after its epilog", r.Start.Format(time.RFC3339))
	}
	if err != nil {
		d.refuseRow(d.nameOf(w), fmt.Errorf("%w, and of what the epilog says: %w", errNotKnown, err), line)
		return
	}
	r.Qualified = d.config.SeveralClusters()
	d.tellOfRun(w, r, "slurmdbd does not have the run; what its epilog said is taken")
}

// nameOf names the run of an event as far as the epilog knew it, as [job.Run.RunName]
// does.
func (d *draft) nameOf(w *waiting) string {
	if d.config.SeveralClusters() {
		return w.Cluster + "/" + w.JobID()
	}
	return w.JobID()
}

func (d *draft) tellOfRun(w *waiting, r *job.Run, why string) {
	d.log.Warn(why, "job", r.RunName(), "epilog", w.epilogTime().UTC().Format(time.RFC3339), "on", w.Host)
	filter := d.config.Filter
	filter.States = nil // which one it was no one knows
	d.addRun(r, filter, false, "")
}

// epilogColumns are what an epilog says, by sacct's columns.
func epilogColumns(w *waiting) map[string]string {
	raw := strconv.FormatInt(w.Job, 10)
	number := func(field string, n *int64) string {
		if n == nil {
			return w.Unread[field] // which the attribute names as unreadable
		}
		return strconv.FormatInt(*n, 10)
	}
	return map[string]string{
		"JobIDRaw": raw, "JobID": w.JobID(), "Cluster": w.Cluster, "State": unknown,
		"Start": formatSeconds(w.Start), "End": formatSeconds(endTime(w)), "ExitCode": cmp.Or(w.Exit, w.Unread["exit"]),
		"JobName": w.Name, "User": w.User, "UID": number("uid", w.UID), "Group": w.Group, "GID": number("gid", w.GID),
		"Account": w.Account, "Partition": w.Partition, "QOS": w.QOS, "NodeList": w.Nodes,
		"AllocNodes": number("node_count", w.NodeCount), "NNodes": number("node_count", w.NodeCount), "AllocCPUS": number("cpus", w.CPUs), "NCPUS": number("cpus", w.CPUs),
		"Restarts": number("restarts", w.Restarts), "ElapsedRaw": strconv.FormatInt(max(0, endTime(w)-w.Start), 10),
	}
}

// endTime is when the run ended, as the epilog knows it.
func endTime(w *waiting) int64 {
	if at := w.epilogTime().Unix(); w.End == 0 || w.End > at {
		return at // an end in the future is the time limit's
	}
	return w.End
}

func formatSeconds(n int64) string { return strconv.FormatInt(n, 10) }
