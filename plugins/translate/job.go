package translate

import (
	"fmt"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// Mapper turns a job into a record.
type Mapper interface {
	Map(job *bursarv1.Job) (r record.Record, keep bool, err error)
	ID(job *bursarv1.Job) (string, error)
	Start(job *bursarv1.Job) record.Time
	Submit(job *bursarv1.Job) record.Time
	Fingerprint(job *bursarv1.Job) uint64
	Wanted() []string
	WantedKeys() []string
	Changes() mapping.Changes
	FromBlock(job *bursarv1.Job) map[string]bool
	Lacking(job *bursarv1.Job, r *record.Record) []string
	Unread(job *bursarv1.Job, r *record.Record) []mapping.Unread
}

// Map maps the job. What its source leaves out only gets its id, and is not kept.
func Map(m Mapper, job *bursarv1.Job) (r record.Record, keep bool, err error) {
	if !job.GetExcluded() {
		return m.Map(job)
	}
	r.ID, err = m.ID(job)
	return r, false, err
}

// RecordFrame is the frame of a job's record; settles is the quarantined job that it settles.
func RecordFrame(r record.Record, settles string) *wire.Frame {
	return &wire.Frame{Kind: wire.KindRecord, ID: r.ID, Record: r, Settles: settles, Version: record.Version{Ended: !r.Open()}}
}

// WithdrawFrame is the frame that takes back what a job was sent as; ended says that the job is
// over. Settles is the quarantined job that it settles.
func WithdrawFrame(m Mapper, job *bursarv1.Job, id, settles string, ended bool) *wire.Frame {
	run := wire.RunOf(m.Start(job), m.Submit(job))
	return &wire.Frame{Kind: wire.KindWithdraw, ID: id, Run: run, Settles: settles, Version: record.Version{Ended: ended}}
}

// Bounds of what a source sends: the name of a run, and a frame other
// than a record, which has to fit into one entry of the aggregators' log.
const (
	MaxRun   = 1 << 10
	MaxExtra = 256 << 10
)

// RefusedRun is a job whose run cannot be told from others; nil when it can.
func RefusedRun(job *bursarv1.Job, attributes []*bursarv1.Attribute) *bursarv1.Refused {
	problem := Nameless(job.GetRun())
	if problem == "" {
		return nil
	}
	raw, _ := Raw(job, attributes)
	return &bursarv1.Refused{Message: problem, Raw: raw}
}

// Nameless says why a job's run cannot be told from others; "" when it can.
func Nameless(run string) string {
	switch {
	case run == "":
		return "the plugin sent a job without a run"
	case len(run) > MaxRun:
		return fmt.Sprintf("the plugin sent a job whose run has a name of %d bytes; at most %d are allowed", len(run), MaxRun)
	}
	return ""
}
