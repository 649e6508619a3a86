package wire

import (
	"github.com/bursar-accounting/bursar/proto/record"
)

// Kind says what a [Frame] carries. Its numbers are those of the bodies of
// bursarv1.Frame.
type Kind uint8

// The kinds of frames.
const (
	KindRecord     Kind = 10
	KindStop       Kind = 11
	KindWithdraw   Kind = 12
	KindQuarantine Kind = 13
	KindGap        Kind = 14
	KindWatermark  Kind = 15
	KindCensus     Kind = 16
	KindCapacity   Kind = 17
	KindDirectory  Kind = 18
	KindCheckpoint Kind = 19
	KindCount      Kind = 20
)

// CountVersion is the protocol version that a cluster must have agreed on before
// it is sent a frame of KindCount. All other kinds are of the first version.
const CountVersion = 2

// String returns the kind's name.
func (k Kind) String() string {
	names := [...]string{"record", "stop", "withdraw", "quarantine", "gap", "watermark", "census", "capacity", "directory", "checkpoint", "count"}
	if k < KindRecord || k > KindCount {
		return "unknown"
	}
	return names[k-KindRecord]
}

// Frame is a bursarv1.Frame: what an agent's buffer keeps and the aggregator
// pulls. Which of the fields behind Kind count depends on Kind.
type Frame struct {
	SourceType  string // both empty: pushed
	SourceLabel string
	Rank        record.Rank
	Version     record.Version
	Settles     string // id of the quarantined job that this frame settles
	IDReused    bool   // the source's scheduler may give a record id to other runs

	Kind       Kind
	ID         string        // record id of KindStop and KindWithdraw; of KindRecord too, set when decoded
	Record     record.Record // KindRecord
	Stop       record.Time   // KindStop
	Run        Run           // KindWithdraw
	Quarantine Quarantine    // KindQuarantine
	Gap        Gap           // KindGap
	Watermark  record.Time   // KindWatermark: the source is complete up to then
	Begin      record.Time   // KindWatermark: runs that ended before it may be missing; 0: not said
	Census     Census        // KindCensus
	Capacity   Capacity      // KindCapacity
	Directory  Directory     // KindDirectory
	Checkpoint []byte        // KindCheckpoint: in words that only the source understands
	Count      Count         // KindCount
}

// Run distinguishes runs with the same id. A time that is not known is zero.
type Run struct{ Start, Submit record.Time }

// RunOf returns the Run with these times; [record.None] is not known.
func RunOf(start, submit record.Time) Run { return Run{timeOrZero(start), timeOrZero(submit)} }

// timeOrZero returns a time as [Run] has it: no run began in the first microsecond of 1970.
func timeOrZero(t record.Time) record.Time {
	if t == record.None {
		return 0
	}
	return t
}

// recordOfRun returns what is known of a run as a record; nil for nothing.
func (r Run) recordOfRun(id string) *record.Record {
	if r == (Run{}) {
		return nil
	}
	out := &record.Record{ID: id, Start: record.None, Stop: record.None, Submit: record.None}
	if r.Start != 0 {
		out.Start = r.Start
	}
	if r.Submit != 0 {
		out.Submit = r.Submit
	}
	return out
}

// Quarantine is a job that gave no valid record.
type Quarantine struct {
	ID        string // unique and stable: a repeated failure of the same job replaces it
	Reason    string // one of few words: mapping, validation, input, size
	Message   string // for people
	RecordID  string // as far as it is known
	Raw       []byte // the job's attributes as JSON, or the raw input
	Truncated bool   // Raw was cut
}

// Gap is a part of a source's history that cannot be had or was lost.
type Gap struct {
	From, To record.Time
	Reason   string
}

// Census counts the jobs of a source at one moment.
type Census struct {
	At   record.Time
	Rows []CensusRow
}

// CensusRow counts the jobs of one user in one queue.
type CensusRow struct {
	User, Queue      string
	Running, Pending int64
}

// Capacity is what a source's cluster has from a time on.
type Capacity struct {
	From       record.Time
	Components []record.Component
}

// Directory names people and their groups.
type Directory struct{ Rows []DirectoryRow }

// DirectoryRow is one person.
type DirectoryRow struct {
	User    string
	Groups  []string
	Name    string
	Address string
}

// Count is what the runs of a source that ended in [From, To) come to.
type Count struct {
	From, To    record.Time
	At          record.Time // when they were counted
	Counted     int64       // by the source's second route
	Records     int64       // that the mapping keeps, by record id
	Filtered    int64       // that the configuration or the mapping leaves out
	Quarantined int64       // that fail the mapping, and input that is no job
	Shared      int64       // runs with the record id of another run
	Skipped     int64       // rows that are no runs
}

// Write returns the statement of a frame that came from that agent; false for
// the kinds that say nothing about a run. The write shares f's slices and keeps
// nothing else of f.
func (f *Frame) Write(agent string) (record.Write, bool) {
	w := record.Write{ID: f.ID, Rank: f.Rank, Version: f.Version, Stop: record.None, IDReused: f.IDReused}
	if f.SourceType != "" || f.SourceLabel != "" {
		w.Origin = record.Origin{Agent: agent, Type: f.SourceType, Label: f.SourceLabel}
	}
	switch f.Kind {
	case KindRecord:
		r := f.Record
		w.Op, w.ID, w.Record = record.OpPut, r.ID, &r
	case KindStop:
		w.Op, w.Stop = record.OpStop, f.Stop
	case KindWithdraw:
		w.Op, w.Record = record.OpWithdraw, f.Run.recordOfRun(f.ID)
	default:
		return record.Write{}, false
	}
	return w, true
}
