package sdk

import (
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Batch is what Stream.Send hands to the daemon at once. All of it is on the
// daemon's disk before the checkpoint counts.
type Batch struct {
	Jobs []Job

	// Records and Stops are what clients of AUDITOR pushed, of a source with
	// Description.Pushed, which has no jobs. Those of one batch are kept together:
	// all, or none.
	Records []record.Record
	Stops   []Stop

	// Checkpoint is how far the source has come with all jobs up to and with
	// this batch. Empty: unchanged.
	Checkpoint []byte

	// Progress of a back-fill, for people. Nil: nothing to say.
	Progress *Progress

	// Watermark says that no run that ended before it will come any more. Zero:
	// not said.
	Watermark time.Time

	// CompleteFrom goes with Watermark: runs that ended before it may be missing, since
	// the source was told to leave them out or had no way to see them. Zero: the source
	// has all that its scheduler has.
	CompleteFrom time.Time

	// Refused is input that was no job. It is kept with the reason, and shown
	// to the operator.
	Refused []Refused

	// Skipped counts rows that are no runs, for example never started.
	Skipped int64

	Gaps      []Gap     // stretches of history that cannot be had
	Census    *Census   // running and pending jobs now; nil: not said
	Capacity  *Capacity // what the cluster has; nil: not said
	Directory []Person  // names of people and groups
}

// Job is one run.
type Job struct {
	// Run names the run within the source: two runs of the same job differ.
	// The daemon remembers by it what it has sent.
	Run string

	// Values are in the order of Description.Attributes, as many.
	Values []Value

	Ended bool // the run is over and its values are final

	// Excluded: the configuration of the source leaves the job out. It is
	// counted, and taken back if it was sent before.
	Excluded bool

	// Unread are the attributes whose values cannot be read. Their values are null, as
	// those of attributes that the scheduler does not have; these are shown and counted.
	// What cannot be read of a run's name, start or stop makes it Refused instead.
	Unread []Unread

	// Formerly is the same run as it is, or may have been, known under other names:
	// each has its Run and the Values from which the mapping makes that id. The
	// daemon takes back what it sent under them, and settles what of them is in
	// quarantine, also after a restart. An import asks the cluster first: where
	// another source has the run under one of the names, that one is used, and
	// nothing else is taken back than what the same import brought. Their own
	// Formerly does not count, and at most [MaxFormerly] are allowed.
	Formerly []Job

	// Findings are what people should know of the job although it is counted, for example
	// that a part of the input was not read. They are shown until the job comes without
	// them. Beyond [MaxFindings], one finding stands for all others.
	Findings []Finding
}

// Unread is an attribute of a job whose value cannot be read: it is not a number, or one
// that ran over.
type Unread struct {
	Attribute string // as in Description.Attributes
	Problem   string // for people, with the value
}

// Finding says what is wrong with a job that is counted. Findings of the same Kind and
// About are counted as one.
type Finding struct {
	Kind  string // a name that stays, for example "column-unread"
	About string // for example the column
	What  string // a sentence without full stop
	Do    string // what to do first
}

// MaxFindings is how many findings of a job are sent.
const MaxFindings = 8

// MaxFormerly is how many other names a run may have.
const MaxFormerly = 8

// Stop says when a record stopped that may have been pushed elsewhere, or later.
type Stop struct {
	ID string // of the record
	At record.Time
}

// Refused is input that could not be read as a job.
type Refused struct {
	Run     string // as far as it is known
	Message string // what is wrong, for people
	Raw     []byte // the input; the daemon keeps the first 64 KiB
}

// Progress of a back-fill.
type Progress struct {
	Done, Total int64  // Total 0: unknown
	Unit        string // for example "days"
	At          string // where it is, for people
}

// Gap is a stretch of history that cannot be had or was lost.
type Gap struct {
	From, To time.Time
	Reason   string
}

// Census counts jobs per user and queue.
type Census struct {
	At   time.Time
	Rows []CensusRow
}

// CensusRow counts one user's jobs in one queue.
type CensusRow struct {
	User, Queue      string
	Running, Pending int64
}

// Capacity is what the source's cluster has from a time on.
type Capacity struct {
	From       time.Time
	Components []Amount
}

// Amount is a number of something, for example of Cores.
type Amount struct {
	Name   string
	Amount int64
}

// Person names a user.
type Person struct {
	User    string
	Groups  []string
	Name    string
	Address string
}
