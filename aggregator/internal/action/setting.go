package action

import (
	"context"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Setting is an action of the configuration.
type Setting struct {
	Name     Name
	Schedule string // "": the plugin's
	Zone     string // of the schedule; "": UTC
	// RunOn is the agent on which its programs run; "": they run on the leader.
	RunOn string
	// Config is the evaluated config block.
	Config *bursarv1.Node
	// Lacks says why this node cannot run the action; "": it can.
	Lacks string
	// Digest names all of it.
	Digest string
}

// Description is what a plugin says of itself.
type Description struct {
	sdk.ActionDescription

	Probes bool
}

// scheduleOf is when the action runs.
func (s *Setting) scheduleOf(d *Description) (Schedule, error) {
	zone, err := calendar.Zone(s.Zone)
	if err != nil {
		return Schedule{}, err
	}
	text := s.Schedule
	if text == "" {
		text = d.Schedule
	}
	return ParseSchedule(text, zone)
}

// Plugin is a plugin that runs and has taken its configuration. One call is made at
// a time. An error of a call says nothing about what the plugin has done.
type Plugin interface {
	Description() *Description
	Plan(ctx context.Context, start sdk.PlanStart) (*sdk.Plan, error)
	Execute(ctx context.Context, a sdk.Attempt) (sdk.Result, error)
	Probe(ctx context.Context, a sdk.Attempt) (sdk.Result, error)
	// Gone reports whether its process has ended.
	Gone() bool
	// Stale reports whether its binary has been replaced.
	Stale() bool
	// Close ends the process and waits until nothing of it is left.
	Close() error
	// Hang is Kill because a call did not end in time, which why says, with the
	// goroutines of the plugin in the log.
	Hang(why error)
	// Kill is Close without giving the process time to end by itself.
	Kill() error
}

// Plugins starts plugins.
type Plugins interface {
	// Open starts the plugin of an action and configures it. The error says what is
	// wrong with the plugin or with the configuration; it is a host.ErrCrash when the
	// plugin crashed or hung.
	Open(ctx context.Context, s *Setting) (Plugin, error)
	// Identity names the binary that would be started; "" while there is none.
	Identity(s *Setting) string
}

// Leader is the leadership of this node.
type Leader interface {
	// Term is the present term.
	Term() uint64
	// Verify asks a majority whether this node leads in the term.
	Verify(ctx context.Context, term uint64) error
}

// Quiet is how long an old leader may have an effect happen after another one has
// begun to lead: for a lease it may believe that it leads, then what has begun has its
// grace, and then it is killed. One that does not run meanwhile is not bound by it.
func Quiet(lease time.Duration) time.Duration { return lease + grace + killing }

// How long a run of an action is kept, with its effects and their payloads.
const (
	// KeepFor is how long at most, beyond the last runs.
	KeepFor = 400 * 24 * time.Hour
	// KeepLeast is how many runs of an action are kept whatever their age.
	KeepLeast = 100
)

// The pace of actions.
const (
	look         = time.Second      // between two looks at the documents
	planTime     = 15 * time.Minute // for a plan
	planSilence  = 2 * time.Minute  // without a word of the plugin, and without an answer that it waits for
	openTime     = 30 * time.Second // for the start of a plugin
	maxDeadline  = time.Hour
	giveUp       = 24 * time.Hour // an effect is tried for so long
	minBackoff   = time.Second
	maxBackoff   = 5 * time.Minute
	crashes      = 5 // within crashTime, and the action is disabled
	crashTime    = 10 * time.Minute
	idle         = time.Minute     // a plugin is kept for a run that comes sooner
	grace        = 2 * time.Second // for what has begun when the leadership ends
	killing      = time.Second     // for the end of what is killed then
	writeTime    = 10 * time.Second
	keepSet      = 30 * 24 * time.Hour // of runs that set values
	keepMost     = 20_000
	maxOrders    = 16
	commandBytes = 200 << 10 // of documents in one command
	partBytes    = 192 << 10
)
