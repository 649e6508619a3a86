package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/job"
)

// verdict is what became of an ad.
type verdict int

const (
	taken     verdict = iota
	nextBatch         // it must come behind what the batch has refused
	nextPass          // its epoch may not have been read yet
	unended           // it is being written
)

// errCut is why a part of an ad is refused.
var errCut = errors.New("the ad has no end: the file was cut here")

// addEntry puts an entry of a file, which begins at an offset in it, into the batch.
func (p *pass) addEntry(text string, offset int64, r *reading) verdict {
	e := classad.ReadEntry(text)
	if e.Kind != "" && e.Kind != "EPOCH" {
		p.Skip(job.ErrOtherEpoch)
		return taken
	}
	// Where lines were removed by hand, the offset is too large, and no ad begins there.
	if n := e.Offset - offset; n > 0 && n < int64(len(e.Text)) && classad.BeginsAt(e.Text, int(n)) {
		p.Refuse("", errCut, []byte(e.Text[:n]), &r.Reading)
		e.Text = e.Text[n:]
	}
	if err := p.ad.Read(e.Text); err != nil {
		if errors.Is(err, classad.ErrEmpty) {
			p.Skip(err)
		} else {
			p.Refuse(p.runName(), err, []byte(e.Text), &r.Reading)
		}
		return taken
	}
	if p.ad.Cut != "" {
		p.Refuse("", errCut, []byte(p.ad.Cut), &r.Reading)
	}
	if whole := strings.HasSuffix(e.Text, "\n"); e.Missing && !(r.bare && !r.epoch && whole) {
		if !whole {
			p.ad.Attributes = p.ad.Attributes[:len(p.ad.Attributes)-1] // its value may be cut
		}
		p.Refuse(p.runName(), errCut, []byte(e.Text), &r.Reading)
		return taken
	}
	return p.addAd(e.Kind != "" || r.bare && r.epoch, e.Text, r)
}

// runName names the run that the ad tells of; "" where the part that was read does not say which.
func (p *pass) runName() string {
	_ = p.run.Load(&p.ad, false) // the error: a part may not be a run
	if !p.run.IsIdentified() {
		return ""
	}
	return p.run.ID()
}

// addAd puts the ad into the batch. It refuses to when the batch has an ad of the same
// run that could not be read: within a batch, jobs come before those, and the run would
// stay in quarantine.
func (p *pass) addAd(epoch bool, text string, r *reading) verdict {
	j := p.run
	err := j.Load(&p.ad, epoch)
	for _, why := range []error{job.ErrNeverRan, job.ErrNotJob} {
		if errors.Is(err, why) {
			p.Skip(why)
			return taken
		}
	}
	run := j.ID()
	if epoch && j.GlobalID != "" && p.config.hasEpochsApart(j.Schedd(), r.schedd) {
		return taken // it comes with the epochs of its own schedd, before the history of that
	}
	if err == nil && j.End.IsZero() {
		err = errors.New("the job has not ended: JobStatus is neither 3 nor 4")
	}
	switch {
	case !epoch && !r.until.IsZero() && !j.Finished.Before(r.until) && j.Finished.Before(r.until.Add(edge)):
		return nextPass
	case run != "" && slices.ContainsFunc(p.Batch.Refused, func(x sdk.Refused) bool { return x.Run == run }):
		return nextBatch
	case err != nil:
		p.Refuse(run, err, []byte(text), &r.Reading)
		return taken
	}
	p.Reach(j.End, &r.Reading)
	if r.wantsRun(epoch, run, j.End) {
		if r.Seen != nil {
			r.Seen(j.End)
		}
		p.addAs(run, text, r, true)
	}
	return taken
}

// wantsRun reports whether a run is to be sent.
func (r *reading) wantsRun(epoch bool, run string, end time.Time) bool {
	if r.Keep == nil {
		return true
	}
	if r.said != nil && epoch && r.said.hasRun(run) {
		return false
	}
	if r.said != nil && !epoch && (r.Keep(end) || r.Keep(end.Add(edge)) || r.Keep(end.Add(-edge))) {
		r.said.addRun(run)
	}
	return r.Keep(end)
}

// addAs puts the run into the batch, as ended or going on.
func (p *pass) addAs(run, text string, r *reading, ended bool) {
	j := p.run
	wanted := false
	if err := j.Sure(func() { wanted = p.config.wantsJob(j) }); err != nil {
		p.Refuse(run, fmt.Errorf("the filters of the source depend on it: %w", err), []byte(text), &r.Reading)
		return
	}
	values, unread := p.values.Values(j)
	wanted = wanted && (p.config.Earliest.Time.IsZero() || !ended || !j.End.Before(p.config.Earliest.Time))
	p.Batch.Jobs = append(p.Batch.Jobs, sdk.Job{Run: run, Values: values, Unread: unread, Ended: ended, Excluded: !wanted})
}

func (p *pass) refuseLong(line follow.Line, r *reading) {
	p.Refuse("", fmt.Errorf("an ad of %d bytes; at most %d are read", line.Size, follow.MaxLine), line.Text, &r.Reading)
}

// tellSkipped says what was not a run, and why.
func (p *pass) tellSkipped() {
	for why, n := range p.Skipped {
		if errors.Is(why, job.ErrNeverRan) {
			p.log.Info("ads of jobs that never ran were skipped", "reason", why.Error(), "ads", n)
		} else {
			p.log.Debug("ads were skipped", "reason", why.Error(), "ads", n)
		}
	}
}

// quoteString is a text as a ClassAd expression has it.
func quoteString(s string) string {
	return fmt.Sprintf(`"%s"`, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s))
}
