package sdk

import (
	"context"
	"time"
)

// Action turns totals into effects. The daemon calls Describe, Configure once,
// and then Plan and Execute as runs demand; never two calls at the same time.
//
// Plan says what a run would do, and Execute does one effect of it. Between the
// two the daemon writes down, on all nodes, what is going to happen; so Plan must
// not touch the world, and Execute gets all that it needs in the effect.
type Action interface {
	// Describe says what the action is. It needs no configuration, touches
	// nothing and always gives the same answer.
	Describe() ActionDescription

	// Configure takes the configuration of one action block, as that of a Source.
	Configure(ctx context.Context, cfg *Config) error

	// Plan reads what it needs from data and returns what there is to do. It is a
	// function of its arguments and of what data tells. No effects: nothing is to
	// be done. An error, and a panic, are shown to the operator and the run is
	// tried again. A Plan that neither asks nor returns for two minutes counts as hung,
	// and the plugin is killed. What is planned is kept on all nodes and can be shown: a secret
	// has no place in an effect.
	Plan(ctx context.Context, start PlanStart, data *Data) (Plan, error)

	// Execute does one effect and says how it ended. A panic, and the end of the
	// process, leave the effect in doubt, as the Outcome Unknown does. When ctx
	// ends it returns soon.
	Execute(ctx context.Context, a Attempt, world *World) Result
}

// Prober is an Action that can find out whether an effect has happened, by a
// look at the receiver. It is asked after a failover, before an effect that was
// begun is repeated. Outcome Done: it has happened; Retry: it has not; Rejected: it
// is not to be repeated, since a later plan makes it good; every other one: that cannot
// be known. An effect of ClassAtMostOnce that has not
// happened is not repeated by itself after a failover: a leader that was stopped
// for a while may do it yet.
type Prober interface {
	Probe(ctx context.Context, a Attempt, world *World) Result
}

// ActionDescription is what an action says of itself.
type ActionDescription struct {
	Type    string // as in the configuration, for example "priority"
	Version string
	Class   EffectClass

	// Schedule is the default one: "@hourly", "15m", "@change 5m", or a cron line of
	// five fields. Empty: it runs only when it is told to.
	Schedule string

	// Deadline is how long Execute may take for one effect; one minute when zero,
	// at most an hour.
	Deadline time.Duration

	// Commands says for what the action runs programs; empty: it runs none.
	Commands string

	// Archives says for what the action removes records from the store and restores them;
	// empty: it does not, and [World.Archive] and [World.Restore] are denied.
	Archives string

	// Settings is as that of a Description.
	Settings any
}

// EffectClass says what happens when an effect is done twice. There is no class
// for effects that add: after a failover no one could repeat them. An effect of
// ClassSet or ClassKeyed that is in doubt is done again, with the same bytes.
type EffectClass uint8

// The classes.
const (
	ClassSet        EffectClass = 1 // an absolute value is set: a priority, a limit
	ClassKeyed      EffectClass = 2 // the receiver replaces what has the same key: an APEL summary
	ClassAtMostOnce EffectClass = 3 // it must not be done twice and may be left undone: a mail
)

// PlanStart is what a plan begins with.
type PlanStart struct {
	// Now is the time to plan for. A plan uses no other clock, so that a plan
	// that is made again is the same.
	Now time.Time

	// Since is the Now of the last run whose Plan.State was kept; zero: never.
	Since time.Time

	// State is what was kept of Plan.State last, or nil.
	State []byte

	// Index of the replicated log. Every answer of the Data is of this state of the
	// cluster or of a later one.
	Index uint64

	// Arguments are those of a manual run, for example month=2026-10; nil for a
	// scheduled one.
	Arguments map[string]string
}

// Plan is what a run will do.
type Plan struct {
	Effects []Effect

	// State is kept for the next plan; at most 64 KiB. Nil: unchanged. It is kept
	// when all effects are done, so that the next plan makes good what failed. That
	// of an action of ClassAtMostOnce is kept as soon as the run is planned: what was
	// planned once is never planned again.
	State []byte

	// Notes tell people what they should know. Partial says that something is
	// missing from the plan and that the notes name it; the rest goes its way.
	Notes   []string
	Partial bool

	// Gauges are shown among the daemon's metrics until the next plan.
	Gauges []Gauge
}

// Effect is one thing that a run does to the world.
type Effect struct {
	Name    string // unique in the plan: "partition=atlas", "site=UNI month=2026-10"
	Summary string // one line: what will be other afterwards
	Payload []byte // what Execute needs; at most MaxPayload, and all attempts get the same
	Show    string // the payload for people; at most 64 KiB are kept
}

// Gauge is a number that is shown as a metric bursar_action_<type>_<name>, with
// the labels and the action's label as action.
type Gauge struct {
	Name   string // of letters, digits and underscores
	Labels map[string]string
	Value  float64
}

// Attempt is one try at an effect.
type Attempt struct {
	Effect Effect
	Fence  uint64 // grows with every attempt of this action, whoever leads
	Number int    // of the attempt at this effect, counted from 1
	Key    string // the same for all attempts at this effect and for no other effect: an idempotency key
}

// Result says how an attempt ended.
type Result struct {
	Outcome    Outcome
	Message    string        // for people
	Reference  string        // what the receiver called it
	RetryAfter time.Duration // with Retry: not before; zero: the daemon's backoff
}

// Outcome of an attempt.
type Outcome uint8

// The outcomes.
const (
	Done     Outcome = 1
	Retry    Outcome = 2 // it did not happen, and may be tried again
	Rejected Outcome = 3 // it did not happen, and trying again is of no use
	Unknown  Outcome = 4 // it may have happened
)
