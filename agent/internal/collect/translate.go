package collect

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/agent/internal/mapping"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// Mapper turns a job into a record.
type Mapper interface {
	Map(job *bursarv1.Job) (r record.Record, keep bool, err error)
	ID(job *bursarv1.Job) (string, error)
	Fingerprint(job *bursarv1.Job) uint64
}

// Counts are what became of jobs. A job is counted in one of the first six.
type Counts struct {
	Records     int64 // sent as records
	Unchanged   int64 // sent before, and the same
	Filtered    int64 // left out by the mapping or the source's filters
	Withdrawn   int64 // left out now, and taken back because they were sent before
	Quarantined int64 // failed
	Refused     int64 // input that was no job
	Skipped     int64 // rows that are no runs
}

func (c *Counts) add(o Counts) {
	c.Records += o.Records
	c.Unchanged += o.Unchanged
	c.Filtered += o.Filtered
	c.Withdrawn += o.Withdrawn
	c.Quarantined += o.Quarantined
	c.Refused += o.Refused
	c.Skipped += o.Skipped
}

// translator makes frames of what a source sends.
type translator struct {
	source     buffer.Source
	rank       record.Rank
	attributes []*bursarv1.Attribute
	mapper     Mapper
	observe    func() int64

	memory *memory
	open   map[string]buffer.OpenRun
	// amnesia: clusters may hold runs that memory and open do not know of.
	amnesia bool
	// again: send also what was sent before and is the same.
	again bool
}

// draft is an append in the making, and what to remember once it is on disk.
type draft struct {
	append buffer.Append
	counts Counts
	sent   map[string]sent
}

// batch translates one message of a source.
func (t *translator) batch(resp *bursarv1.CollectResponse) (*draft, error) {
	d := &draft{append: buffer.Append{Source: t.source}, sent: map[string]sent{}}
	for _, job := range resp.GetJobs() {
		if err := t.job(d, job, ""); err != nil {
			return nil, err
		}
	}
	for _, r := range resp.GetRefused() {
		t.refused(d, r)
	}
	d.counts.Skipped = resp.GetSkipped()
	for _, f := range resp.GetFrames() {
		if err := t.extra(d, f); err != nil {
			return nil, err
		}
	}
	if w := resp.GetWatermark(); w != 0 {
		t.frame(d, &wire.Frame{Kind: wire.KindWatermark, Watermark: record.Time(w)})
	}
	if c := resp.GetCheckpoint(); len(c) > 0 {
		d.append.Checkpoint = c
		t.frame(d, &wire.Frame{Kind: wire.KindCheckpoint, Checkpoint: c})
	}
	return d, nil
}

// frame stamps f and adds it.
func (t *translator) frame(d *draft, f *wire.Frame) {
	f.SourceType, f.SourceLabel, f.Rank = t.source.Type, t.source.Label, t.rank
	f.Version.Observed = t.observe()
	d.append.Frames = append(d.append.Frames, wire.AppendFrame(nil, f))
}

// job translates one job; settles is the quarantined job that it settles.
func (t *translator) job(d *draft, job *bursarv1.Job, settles string) error {
	if job.GetRun() == "" {
		return errors.New("the plugin sent a job without a run")
	}
	print := t.mapper.Fingerprint(job)
	before, known := d.sent[job.GetRun()]
	if !known {
		before, known = t.memory.get(job.GetRun())
	}
	note, open := t.open[job.GetRun()]
	same := known && before.fingerprint == print || open && note.Digest == print
	if same && !t.again && settles == "" {
		d.counts.Unchanged++
		return nil
	}
	r, keep, err := t.apply(job)
	switch {
	case err != nil:
		t.quarantine(d, job, err)
		d.sent[job.GetRun()] = sent{fingerprint: print, quarantined: true}
		return nil
	case !keep:
		t.leaveOut(d, job, r.ID, known && !before.withdrawn && !before.quarantined || open, settles)
		d.sent[job.GetRun()] = sent{fingerprint: print, withdrawn: true}
		return nil
	}
	if before.quarantined && settles == "" {
		settles = t.quarantineID(job.GetRun())
	}
	if open && note.Record != r.ID {
		t.withdraw(d, note.Record, !r.Open(), "")
	}
	t.record(d, job.GetRun(), r, print, open, settles)
	d.sent[job.GetRun()] = sent{fingerprint: print}
	return nil
}

// apply maps the job; what the source leaves out only gets its id.
func (t *translator) apply(job *bursarv1.Job) (r record.Record, keep bool, err error) {
	if !job.GetExcluded() {
		return t.mapper.Map(job)
	}
	r.ID, err = t.mapper.ID(job)
	return r, false, err
}

func (t *translator) record(d *draft, run string, r record.Record, print uint64, open bool, settles string) {
	d.counts.Records++
	t.frame(d, &wire.Frame{Kind: wire.KindRecord, ID: r.ID, Record: r, Settles: settles, Version: record.Version{Ended: !r.Open()}})
	switch {
	case r.Open():
		d.append.Opened = append(d.append.Opened, buffer.OpenRun{Run: run, Record: r.ID, Digest: print})
	case open:
		d.append.Closed = append(d.append.Closed, run)
	}
}

// leaveOut counts a job that is left out, and takes it back when a cluster may
// hold it.
func (t *translator) leaveOut(d *draft, job *bursarv1.Job, id string, wasSent bool, settles string) {
	if !wasSent && !t.amnesia && settles == "" {
		d.counts.Filtered++
		return
	}
	d.counts.Withdrawn++
	t.withdraw(d, id, job.GetEnded(), settles)
	d.append.Closed = append(d.append.Closed, job.GetRun())
}

func (t *translator) withdraw(d *draft, id string, ended bool, settles string) {
	t.frame(d, &wire.Frame{Kind: wire.KindWithdraw, ID: id, Settles: settles, Version: record.Version{Ended: ended}})
}

func (t *translator) quarantine(d *draft, job *bursarv1.Job, err error) {
	d.counts.Quarantined++
	raw, cut := Raw(job, t.attributes)
	q := wire.Quarantine{ID: t.quarantineID(job.GetRun()), Reason: "mapping", Message: trim(err.Error()), Raw: raw, Truncated: cut}
	var e *mapping.Error
	if errors.As(err, &e) {
		q.RecordID = trim(e.RecordID)
	}
	var field *record.FieldError
	if errors.As(err, &field) {
		q.Reason = "validation"
	}
	t.frame(d, &wire.Frame{Kind: wire.KindQuarantine, Quarantine: q})
}

// quarantineID is a function of the run alone: a job that fails again replaces
// its earlier failure.
func (t *translator) quarantineID(run string) string {
	id := t.source.String() + "/" + strings.ToValidUTF8(run, "\uFFFD")
	if len(id) > record.MaxID/2 {
		id = fmt.Sprintf("%s/%x", t.source, runKey(run))
	}
	return id
}

func (t *translator) refused(d *draft, r *bursarv1.Refused) {
	d.counts.Refused++
	raw := r.GetRaw()
	cut := len(raw) > MaxRaw
	if cut {
		raw = raw[:MaxRaw]
	}
	run := r.GetRun()
	if run == "" {
		run = fmt.Sprintf("%x", frame.Digest{}.Next(raw))
	}
	t.frame(d, &wire.Frame{Kind: wire.KindQuarantine, Quarantine: wire.Quarantine{
		ID: t.quarantineID(run), Reason: "input", Message: trim(r.GetMessage()), Raw: raw, Truncated: cut,
	}})
}

// trim bounds texts that come from outside.
func trim(s string) string {
	const most = 4 << 10
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// extra takes the frames that a source may make itself.
func (t *translator) extra(d *draft, f *bursarv1.Frame) error {
	out, err := wireFrame(f)
	if err != nil {
		return err
	}
	if n := len(wire.AppendFrame(nil, out)); n > frame.MaxFrame/2 {
		t.refused(d, &bursarv1.Refused{Run: out.Kind.String(), Message: fmt.Sprintf("the source's %s has %d bytes; at most %d are allowed", out.Kind, n, frame.MaxFrame/2)})
		return nil
	}
	t.frame(d, out)
	return nil
}
