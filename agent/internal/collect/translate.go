package collect

import (
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// Counts are what became of jobs. A job is counted in one of the first six.
type Counts struct {
	Records     int64 // sent as records; of a source that hands on pushes, records and stops
	Unchanged   int64 // sent before, and the same
	Filtered    int64 // left out by the mapping or the source's filters
	Withdrawn   int64 // left out now, and taken back because they were sent before
	Quarantined int64 // failed
	Refused     int64 // input that was no job
	Skipped     int64 // rows that are no runs
}

func (c *Counts) addCounts(o Counts) {
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
	pushed     bool // the source hands on records and stops instead of jobs
	reuses     bool // the scheduler gives an id to other runs, too
	attributes []*bursarv1.Attribute
	mapper     translate.Mapper
	observe    func() int64

	memory *memory
	open   map[string]buffer.OpenRun
	// amnesia: clusters may hold runs that memory and open do not know of.
	amnesia bool
	// again: send also what was sent before and is the same.
	again bool
}

// translateBatch translates one message of a source. The error is a checkpoint that
// cannot be kept.
func (t *translator) translateBatch(resp *bursarv1.CollectResponse) (*draft, error) {
	d := newDraft(t.source)
	if n := len(resp.GetCheckpoint()); n > translate.MaxExtra {
		return nil, fmt.Errorf("the plugin's checkpoint has %d bytes; at most %d are allowed", n, translate.MaxExtra)
	}
	if t.amnesia && !t.again {
		t.markQuarantine(d)
	}
	if t.pushed {
		t.translatePushes(d, resp)
	} else {
		t.translateJobs(d, resp)
	}
	for _, r := range resp.GetRefused() {
		t.addRefusal(d, r)
	}
	d.counts.Skipped = max(resp.GetSkipped(), 0)
	for _, f := range resp.GetFrames() {
		t.addExtra(d, f)
	}
	if w := resp.GetWatermark(); w != 0 {
		t.addFrame(d, &wire.Frame{Kind: wire.KindWatermark, Watermark: record.Time(w), Begin: record.Time(resp.GetCompleteFrom())})
	}
	if c := resp.GetCheckpoint(); len(c) > 0 {
		d.append.Checkpoint = c
		t.addFrame(d, &wire.Frame{Kind: wire.KindCheckpoint, Checkpoint: c})
	}
	return d, nil
}

// addFrame stamps f and adds it.
func (t *translator) addFrame(d *draft, f *wire.Frame) {
	f.SourceType, f.SourceLabel, f.Rank = t.source.Type, t.source.Label, t.rank
	f.Version.Observed = t.observe()
	f.IDReused = t.reuses
	d.append.Frames = append(d.append.Frames, wire.AppendFrame(nil, f))
}

// translateJob translates one job; settles is the quarantined job that it settles.
func (t *translator) translateJob(d *draft, job *bursarv1.Job, settles string) {
	if refused := translate.RefusedRun(job, t.attributes); refused != nil {
		t.addRefusal(d, refused)
		return
	}
	print := t.mapper.Fingerprint(job)
	before, known := t.lastSent(d, job.GetRun())
	note, open := t.runNote(d, job.GetRun())
	same := known && before.hasFingerprint(print) || !known && open && note.Digest == print
	if same && !t.again && !t.amnesia && settles == "" {
		d.counts.Unchanged++
		return
	}
	held := known && !before.withdrawn || open || t.amnesia || settles != ""
	if settles == "" && (before.quarantined || t.again || !known && t.mayBeQuarantined(d)) {
		settles = translate.QuarantineID(job.GetRun())
	}
	r, keep, err := translate.Map(t.mapper, job)
	switch {
	case err != nil:
		t.addQuarantine(d, job, err)
		d.found = append(d.found, func(f *translate.Findings) { f.Resolve(job) })
		if open && job.GetEnded() { // else it would go on and count for ever
			t.addWithdrawal(d, job, note.Record, true, "")
			t.dropNote(d, job.GetRun())
		}
		t.noteQuarantined(d, job.GetRun(), sent{fingerprint: print, quarantined: true})
		return
	case !keep && !held:
		d.counts.Filtered++
		d.sent[job.GetRun()] = sent{fingerprint: print, withdrawn: true, quarantined: settles != ""}
		return
	}
	if open && !keep && record.ValidateID(r.ID) != nil {
		r.ID = note.Record // what has no id now was sent under that one
	}
	if open && note.Record != r.ID {
		t.addWithdrawal(d, job, note.Record, isEnded(job, r, keep), "")
	}
	if !keep {
		t.leaveOut(d, job, r.ID, settles)
		d.found = append(d.found, func(f *translate.Findings) { f.Resolve(job) })
		d.sent[job.GetRun()] = sent{fingerprint: print, withdrawn: true}
		t.supersedeFormer(d, job, r.ID)
		return
	}
	t.addRecord(d, job.GetRun(), r, print, settles)
	d.found = append(d.found, func(f *translate.Findings) { f.Note(t.mapper, job, &r, time.Now()) })
	d.sent[job.GetRun()] = sent{fingerprint: print}
	t.supersedeFormer(d, job, r.ID)
}

// supersedeFormer takes back what the run of a job was sent as under its other names, and
// settles what of them is in quarantine. It needs no memory of that: the run may
// have been sent before a restart. An id that is the job's own stays.
func (t *translator) supersedeFormer(d *draft, job *bursarv1.Job, id string) {
	for _, old := range job.GetFormerly() {
		run := old.GetRun()
		before, known := t.lastSent(d, run)
		if translate.Nameless(run) != "" || run == job.GetRun() || known && before.withdrawn && !t.again {
			continue
		}
		oldID, err := t.mapper.ID(old)
		if err != nil || oldID == id || record.ValidateID(oldID) != nil {
			continue // nothing was sent under it
		}
		t.dropNote(d, run)
		t.addWithdrawal(d, old, oldID, true, translate.QuarantineID(run))
		d.sent[run] = sent{fingerprint: t.mapper.Fingerprint(old), withdrawn: true}
	}
}

// isEnded says whether the job is over: by its record's stop where it has one.
func isEnded(job *bursarv1.Job, r record.Record, keep bool) bool {
	if keep {
		return !r.Open()
	}
	return job.GetEnded()
}

func (t *translator) addRecord(d *draft, run string, r record.Record, print uint64, settles string) {
	d.counts.Records++
	t.addFrame(d, translate.RecordFrame(r, settles))
	if !r.Open() {
		d.days[dayOf(r.Stop)] = true
	}
	if r.Open() {
		d.addNote(buffer.OpenRun{Run: run, Record: r.ID, Digest: print})
		return
	}
	t.dropNote(d, run)
}

// leaveOut takes back a job that is left out, which a cluster may hold.
func (t *translator) leaveOut(d *draft, job *bursarv1.Job, id, settles string) {
	t.dropNote(d, job.GetRun())
	if record.ValidateID(id) != nil {
		d.counts.Filtered++
		return
	}
	d.counts.Withdrawn++
	t.addWithdrawal(d, job, id, job.GetEnded(), settles)
}

func (t *translator) addWithdrawal(d *draft, job *bursarv1.Job, id string, ended bool, settles string) {
	t.addFrame(d, translate.WithdrawFrame(t.mapper, job, id, settles, ended))
}

func (t *translator) addQuarantine(d *draft, job *bursarv1.Job, err error) {
	d.counts.Quarantined++
	t.addFrame(d, &wire.Frame{Kind: wire.KindQuarantine, Quarantine: translate.QuarantineFailed(job, t.attributes, err)})
}

func (t *translator) addRefusal(d *draft, r *bursarv1.Refused) {
	d.counts.Refused++
	if run := r.GetRun(); run != "" {
		t.noteQuarantined(d, run, sent{quarantined: true, refused: true})
	}
	t.addFrame(d, &wire.Frame{Kind: wire.KindQuarantine, Quarantine: translate.QuarantineRefused(r)})
}

// addExtra takes the frames that a source may make itself; others are refused.
func (t *translator) addExtra(d *draft, f *bursarv1.Frame) {
	out, refused := translate.Extra(f)
	if refused != nil {
		t.addRefusal(d, refused)
		return
	}
	t.addFrame(d, out)
}
