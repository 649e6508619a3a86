package sdk

import (
	"context"
	"time"
)

// Source reads one scheduler's jobs. The daemon calls Describe, Configure once,
// and then Collect again and again; never two calls at the same time.
type Source interface {
	// Describe says what the source is. It needs no configuration, touches
	// nothing and always gives the same answer.
	Describe() Description

	// Configure takes the configuration of one source block. It decodes the block into
	// its settings with cfg.Decode and returns what that does, or, after checks of its
	// own, cfg.Err(): what is wrong or unknown, with the places in the user's file.
	// Any other error is reported at the head of the config block.
	Configure(ctx context.Context, cfg *Config) error

	// Collect sends the jobs that come after from to out. It returns nil when
	// all that there is now has been sent; a source with Description.Push
	// returns only when ctx ends. When ctx ends it returns soon, with any
	// error. Every other error is shown to the operator and the daemon calls
	// again later, from the last checkpoint that was acknowledged. A panic
	// counts as an error. A Collect that neither sends nor calls [Alive] or [Idle]
	// for two minutes counts as hung, and the plugin is killed; the same holds for
	// Count.
	Collect(ctx context.Context, from Start, out *Stream) error
}

// Counter is implemented by a source that can find out by a second route what it
// should have collected. The daemon compares the two, day by day.
type Counter interface {
	// Count returns how many runs ended in w, by another way than that of Collect
	// and before any filter of the configuration. Rows that are no runs, such as
	// jobs that never started, are not counted. It is never called while Collect
	// is at work, but in a source with Description.Push. When ctx ends it returns
	// soon, with any error. An error that wraps [errors.ErrUnsupported] says that the
	// configuration leaves no second route; the daemon does not ask again.
	Count(ctx context.Context, w Window) (int64, error)
}

// Description is what a source says of itself.
type Description struct {
	Type    string // as in the configuration, for example "slurm"
	Version string
	Rank    Rank // how well the source knows; RankScheduler when zero
	Push    bool // Collect streams jobs as they come, instead of once an interval

	// Pushed: what it sends are no jobs, but records and stops that clients of
	// AUDITOR pushed. It has no Attributes and no Mapping.
	Pushed bool

	// ReusesIDs: the scheduler reuses job numbers, after its greatest one or with a new
	// database, and an id may be a number alone. Aggregators then distinguish runs with the
	// same id by submit time, which the mapping must set: no run replaces another, even if
	// the scheduler has forgotten the first.
	ReusesIDs bool

	// Interval is the default pause between two Collects; one minute when zero.
	Interval time.Duration

	// Attributes are the columns of a job, in the order of Job.Values.
	Attributes []Attribute

	// Mapping is the default mapping: an HCL body as inside record { … }.
	Mapping string

	// Settings is a pointer to the struct that Configure decodes its block into; nil: its
	// block is empty. -h lists what its tags say.
	Settings any
}

// Attribute is one column of a job, which a mapping names as job.<Name>.
type Attribute struct {
	Name string // an identifier
	Type Type
	Doc  string // meaning and unit, for people
}

// Rank says how well a source knows: where two sources speak of the same run,
// the greater rank is shown. The numbers are those of record.Rank.
type Rank uint8

// The ranks that a source may have.
const (
	RankImport    Rank = 1 // loaded from another system's files
	RankPush      Rank = 2 // said by clients
	RankEpilog    Rank = 3 // said by the scheduler as the job ended
	RankScheduler Rank = 4 // read from the scheduler's own accounting
)

// Start says where a Collect begins.
type Start struct {
	// Checkpoint is the last one that was acknowledged, or nil: from the
	// beginning. Only the source understands it. The daemon keeps it safely,
	// but a checkpoint of an older version of the plugin may come.
	Checkpoint []byte

	// Rewind asks to step back that far behind Checkpoint and to send again
	// what is found there; the daemon knows repeated jobs. Zero: do not.
	Rewind time.Duration

	// Window asks for the jobs of one window only, again. Collect then sends no
	// checkpoint and returns after the window, also in a push source. Nil:
	// collect as usual.
	Window *Window
}

// Window is a stretch of time: From is in it, To is not.
type Window struct{ From, To time.Time }

// Holds reports whether t is in the window.
func (w *Window) Holds(t time.Time) bool { return !t.Before(w.From) && t.Before(w.To) }
