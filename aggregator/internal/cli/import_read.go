package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// ImportSink takes the frames of an import, in order.
type ImportSink interface {
	// Take keeps the frame, whose version it completes.
	Take(f *wire.Frame) error
	// Mark says that all jobs up to the source's checkpoint were taken, with their counts.
	Mark(checkpoint []byte, r *ImportResult) error
	// Settles reports whether a job of that id may be in quarantine, so that what
	// becomes of it now has to settle that.
	Settles(quarantine string) bool
	// Look says what the cluster has under those ids, by id.
	Look(ctx context.Context, ids []string) (map[string]KnownRecord, error)
}

// ImportResult says what became of the files' jobs. A job is counted in one of the
// first five.
type ImportResult struct {
	Records     int64 // became records
	Filtered    int64 // left out by the mapping or the source's filters
	Quarantined int64 // failed
	Refused     int64 // input that was no job; it is in quarantine too
	Skipped     int64 // rows that are no runs
	Open        int64 // of the records, those that have no end
	Withdrawn   int64 // of those left out, what was taken back
	Renamed     int64 // ids of an earlier import that were taken back, as the run has another one
	Frames      int64 // that count as writes
	// Months counts the records by the month in which they end, in UTC.
	Months map[string]int64
	// Sums are those of the records, each once; nil: they are not wanted.
	Sums *ImportSums
	// Problems are the first jobs and inputs that failed.
	Problems []Problem
	// Findings are about the records of this run of the import.
	Findings []translate.Finding
}

// Problem is a job that gave no record.
type Problem struct {
	Run     string `json:"run"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// maxProblems is how many problems a Result names.
const maxProblems = 10

// Failed is how much went to quarantine.
func (r *ImportResult) Failed() int64 { return r.Quarantined + r.Refused }

// MonthNames returns the keys of Months in order.
func (r *ImportResult) MonthNames() []string { return slices.Sorted(maps.Keys(r.Months)) }

// reader makes frames of what the plugin sends.
type reader struct {
	src    *ImportSource
	sink   ImportSink
	back   bool // what is left out is taken back
	result ImportResult
	found  translate.Findings
	known  map[string]KnownRecord // about the runs of the batch that may have several ids
}

// Read reads all files and hands what they become to the sink. With withdraw,
// what the mapping leaves out is taken back, in case an earlier import brought
// it. With sums, those of the records are kept. Before are the counts of an import that broke
// off at the position of s, and nil from the start. Show is called after every batch; its
// Progress may be nil.
func (s *ImportSource) Read(ctx context.Context, sink ImportSink, withdraw, sums bool, before *ImportResult, show func(*ImportResult, *bursarv1.Progress)) (*ImportResult, error) {
	r := &reader{src: s, sink: sink, back: withdraw}
	start := &bursarv1.CollectRequest_Start{Window: s.window}
	if before != nil {
		r.result, start.Checkpoint = *before, s.position.last.At
	} else if r.result.Months = map[string]int64{}; sums {
		r.result.Sums = newImportSums()
	}
	err := s.session.Stream(ctx, start, func(resp *bursarv1.CollectResponse) error {
		if err := r.importBatch(ctx, resp); err != nil {
			return err
		}
		if err := sink.Mark(resp.GetCheckpoint(), &r.result); err != nil {
			return err
		}
		show(&r.result, resp.GetProgress())
		return nil
	})
	r.result.Findings = r.found.List()
	return &r.result, err
}

func (r *reader) importBatch(ctx context.Context, resp *bursarv1.CollectResponse) error {
	if err := r.lookUpIDs(ctx, resp.GetJobs()); err != nil {
		return err
	}
	for _, job := range resp.GetJobs() {
		if err := r.importJob(job); err != nil {
			return err
		}
	}
	for _, refused := range resp.GetRefused() {
		if err := r.refuseInput(refused); err != nil {
			return err
		}
	}
	r.result.Skipped += max(resp.GetSkipped(), 0)
	for _, f := range resp.GetFrames() {
		out, refused := translate.Extra(f)
		if refused != nil {
			if err := r.refuseInput(refused); err != nil {
				return err
			}
			continue
		}
		if err := r.sendFrame(out); err != nil {
			return err
		}
	}
	return nil
}

// sendFrame adds the source to f and gives it to the sink.
func (r *reader) sendFrame(f *wire.Frame) error {
	f.SourceType, f.SourceLabel, f.Rank = r.src.Type, r.src.Label, record.RankImport
	f.IDReused = r.src.session.Description.GetReusesIds()
	return r.sink.Take(f)
}

// writeFrame is sendFrame for what the store counts.
func (r *reader) writeFrame(f *wire.Frame) error {
	r.result.Frames++
	return r.sendFrame(f)
}

func (r *reader) importJob(job *bursarv1.Job) error {
	if refused := translate.RefusedRun(job, r.src.session.Description.GetAttributes()); refused != nil {
		return r.refuseInput(refused)
	}
	rec, keep, err := translate.Map(r.src.session.Mapper, job)
	switch {
	case err != nil:
		r.result.Quarantined++
		return r.writeQuarantine(translate.QuarantineFailed(job, r.src.session.Description.GetAttributes(), err))
	case !keep:
		return r.leaveOut(job, rec.ID)
	}
	r.found.Note(r.src.session.Mapper, job, &rec, time.Now())
	id, brought := chooseID(r.possibleIDs(job, rec.ID), r.known, rec.Start, r.src.originText())
	rec.ID = id
	if r.result.Sums.addRecord(&rec) { // behind a position some come again
		r.countRecord(&rec)
	}
	f := translate.RecordFrame(rec, r.quarantinedID(job))
	if err := r.writeFrame(f); err != nil {
		return err
	}
	for _, other := range job.GetFormerly() { // it may be in quarantine by another name
		if f.Settles = r.quarantinedID(other); f.Settles != "" {
			if err := r.writeFrame(f); err != nil {
				return err
			}
		}
	}
	old := slices.DeleteFunc(brought, func(o string) bool { return o == id })
	r.result.Renamed += int64(len(old))
	return r.withdrawIDs(job, old, "", true)
}

// withdrawIDs withdraws ids; the frame of the first one settles a job in quarantine, if one is
// given.
func (r *reader) withdrawIDs(job *bursarv1.Job, ids []string, settles string, ended bool) error {
	for _, id := range ids {
		if err := r.writeFrame(translate.WithdrawFrame(r.src.session.Mapper, job, id, settles, ended)); err != nil {
			return err
		}
		settles = ""
	}
	return nil
}

func (r *reader) countRecord(rec *record.Record) {
	r.result.Records++
	at := rec.Stop
	if rec.Open() {
		r.result.Open++
		at = rec.Start
	}
	r.result.Months[at.Std().UTC().Format("2006-01")]++
}

// leaveOut counts a job that is left out, and takes it back where that is wanted
// or where it was in quarantine.
func (r *reader) leaveOut(job *bursarv1.Job, id string) error {
	r.result.Filtered++
	settles := r.quarantinedID(job)
	wanted := r.back || settles != ""
	if !wanted || !isValidID(id) {
		return nil
	}
	ids := []string{id}
	if len(job.GetFormerly()) > 0 { // under the ids that an import gave it
		start := r.src.session.Mapper.Start(job)
		chosen, brought := chooseID(r.possibleIDs(job, id), r.known, start, r.src.originText())
		k := r.known[chosen]
		if _, another := k.hasRun(start, matchNoOrigin); another && len(brought) == 0 {
			return nil
		}
		if ids = brought; len(ids) == 0 {
			ids = []string{chosen}
		}
	}
	r.result.Withdrawn++
	return r.withdrawIDs(job, ids, settles, job.GetEnded())
}

func matchNoOrigin(string) bool { return false }

func isValidID(id string) bool { return record.ValidateID(id) == nil }

// quarantinedID is the id in quarantine that the job's frame releases; "" for none.
func (r *reader) quarantinedID(job *bursarv1.Job) string {
	if id := translate.QuarantineID(job.GetRun()); r.sink.Settles(id) {
		return id
	}
	return ""
}

func (r *reader) refuseInput(refused *bursarv1.Refused) error {
	r.result.Refused++
	return r.writeQuarantine(translate.QuarantineRefused(refused))
}

func (r *reader) writeQuarantine(q wire.Quarantine) error {
	if len(r.result.Problems) < maxProblems {
		r.result.Problems = append(r.result.Problems, Problem{q.ID, q.Reason, q.Message})
	}
	return r.writeFrame(&wire.Frame{Kind: wire.KindQuarantine, Quarantine: q})
}
