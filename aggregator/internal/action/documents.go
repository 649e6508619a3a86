package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// The spaces of the documents.
const (
	actionSpace  = "action"
	runSpace     = "action-run"
	effectSpace  = "action-effect"
	payloadSpace = "action-payload"
	stateSpace   = "action-state"
	lifeSpace    = "action-life"
)

// Format is the version of all documents.
const Format = 1

// version is the part of a document that says which format it has.
type version struct {
	Format int `json:"format"`
}

func (v version) formatVersion() int { return v.Format }

// ErrFormat is wrapped by the errors of documents that do not read.
var ErrFormat = errors.New("not a document of an action")

// Name is TYPE/LABEL.
type Name struct{ Type, Label string }

// ParseName reads TYPE/LABEL.
func ParseName(s string) (Name, error) {
	typ, label, ok := strings.Cut(s, "/")
	if !ok || typ == "" || label == "" || strings.Contains(label, "/") {
		return Name{}, fmt.Errorf("%q is not the name of an action; want TYPE/LABEL", cutText(s, maxWord))
	}
	return Name{typ, label}, nil
}

// String is TYPE/LABEL.
func (n Name) String() string { return n.Type + "/" + n.Label }

// State is what is kept of an action beside its runs.
type State struct {
	version

	// Began is when the action was first seen, in microseconds, as all times here.
	Began int64 `json:"began"`
	// Next is the number of the next run, Oldest that of the oldest that is kept.
	Next   uint64 `json:"next"`
	Oldest uint64 `json:"oldest"`
	// Current is the run that is under way; 0: none.
	Current uint64 `json:"current,omitempty"`
	// Last is when the last run was planned, Seq the last change that it could see.
	Last int64  `json:"last,omitempty"`
	Seq  uint64 `json:"seq,omitempty"`
	// Kept is the run whose state counts, Since when it was planned; 0: none.
	Kept  uint64 `json:"kept,omitempty"`
	Since int64  `json:"since,omitempty"`
	// LastSuccess is when the newest run was planned of which nothing was left undone; 0:
	// there was none.
	LastSuccess int64 `json:"well,omitempty"`
	// Requests are orders that wait.
	Requests []Order `json:"asked,omitempty"`
	// Paused and Disabled say that nothing is begun; nil: it is not so.
	Paused   *Mark `json:"paused,omitempty"`
	Disabled *Mark `json:"disabled,omitempty"`
	// Problem is why no plan can be made; nil: none is known.
	Problem *Mark `json:"problem,omitempty"`
	// Doubtful are the runs with effects that are unknown, the newest ones.
	Doubtful []uint64 `json:"doubtful,omitempty"`
	// Claim is of who writes a plan that takes several commands.
	Claim string `json:"claim,omitempty"`
}

// maxDoubtful is how many doubtful runs are kept in mind.
const maxDoubtful = 50

// noteDoubt notes whether a run has effects that are unknown.
func (c *State) noteDoubt(run *Run) {
	c.Doubtful = slices.DeleteFunc(slices.Clone(c.Doubtful), func(n uint64) bool { return n == run.Number })
	if run.Counts.Unknown > 0 {
		c.Doubtful = append(c.Doubtful, run.Number)
		slices.Sort(c.Doubtful)
		c.Doubtful = c.Doubtful[max(0, len(c.Doubtful)-maxDoubtful):]
	}
}

// Mark says who did something, when and why.
type Mark struct {
	By  string `json:"by,omitempty"`
	At  int64  `json:"at"`
	Why string `json:"why,omitempty"`
	// Of names the configuration and the binary that are disabled.
	Of string `json:"of,omitempty"`
}

// Order is something that a person wants: a run, or another try at an effect.
type Order struct {
	By        string            `json:"by"`
	At        int64             `json:"at"`
	Arguments map[string]string `json:"arguments,omitempty"`
	// Run and Effect are of the effect that is to be tried again; Run 0: a new run.
	Run    uint64 `json:"run,omitempty"`
	Effect int    `json:"effect,omitempty"`
}

// The reasons of runs.
const (
	WhySchedule = "schedule"
	WhyChange   = "change"
	WhyOrder    = "order"
)

// Run is a run of an action.
type Run struct {
	version

	Number    uint64            `json:"number"`
	Why       string            `json:"why"`
	By        string            `json:"by,omitempty"`
	Ordered   int64             `json:"ordered,omitempty"` // when it was ordered; 0: it was not
	Arguments map[string]string `json:"arguments,omitempty"`
	Class     uint8             `json:"class"` // sdk.EffectClass
	Version   string            `json:"version"`
	RunOn     string            `json:"run_on,omitempty"` // the agent on which its programs were to run then; "": the leader
	// Planned is the time that it was planned for, Index the state of the log.
	Planned int64  `json:"planned"`
	Index   uint64 `json:"index"`
	Ended   int64  `json:"ended,omitempty"` // 0: it is under way
	// Failure is why the run could not be planned: it has ended and has no effects.
	Failure string   `json:"failure,omitempty"`
	Effects int      `json:"effects"`
	State   bool     `json:"state,omitempty"` // the plan left one
	Partial bool     `json:"partial,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Gauges  []Gauge  `json:"gauges,omitempty"`
	Counts  Counts   `json:"counts"`
}

// Counts says how the effects of a run stand; it is right when the run has ended.
type Counts struct {
	Done       int `json:"done,omitempty"`
	Rejected   int `json:"rejected,omitempty"`
	Unknown    int `json:"unknown,omitempty"`
	Skipped    int `json:"skipped,omitempty"`
	Superseded int `json:"superseded,omitempty"`
}

// Gauge is shown as a metric.
type Gauge struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Value  float64           `json:"value"`
}

// The states of an effect.
const (
	Planned    = "planned"    // it waits
	Dispatched = "dispatched" // it has begun, or is about to
	Done       = "done"
	Rejected   = "rejected"   // it did not happen, and trying again is of no use
	Unknown    = "unknown"    // it may have happened; a person decides
	Skipped    = "skipped"    // a person decided that it is not done
	Superseded = "superseded" // a newer plan takes its place
)

// Effect is an effect of a run, as the ledger has it.
type Effect struct {
	version

	Name    string `json:"name"`
	Summary string `json:"summary,omitempty"`
	Digest  string `json:"digest"` // sha256 of the payload
	Size    int    `json:"size"`   // of the payload
	Parts   int    `json:"parts"`  // of what is kept of it
	State   string `json:"state"`
	Key     string `json:"key"` // of idempotency
	// Tries counts the attempts, of which the last ones are here.
	Tries    int       `json:"tries,omitempty"`
	Attempts []Attempt `json:"attempts,omitempty"`
	// NotBefore is when it may be tried again.
	NotBefore int64 `json:"not_before,omitempty"`
	// First is when it was first tried, since a person wanted it where one did.
	First int64 `json:"first,omitempty"`
	// By is who ordered the last retry, or skipped it.
	By string `json:"by,omitempty"`
}

// Attempt is one try at an effect.
type Attempt struct {
	Number    int    `json:"number"`
	Node      string `json:"node"`
	Term      uint64 `json:"term"`
	Begun     int64  `json:"begun"`
	Fence     uint64 `json:"fence,omitempty"` // known when it has ended
	Ended     int64  `json:"ended,omitempty"`
	Outcome   string `json:"outcome,omitempty"` // done, retry, rejected, unknown
	Message   string `json:"message,omitempty"`
	Reference string `json:"reference,omitempty"`
}

// maxAttempts is how many attempts at an effect are kept.
const maxAttempts = 20

// lastAttempt is the last attempt; nil when there was none.
func (e *Effect) lastAttempt() *Attempt {
	if len(e.Attempts) == 0 {
		return nil
	}
	return &e.Attempts[len(e.Attempts)-1]
}

// life says up to which restore of the cluster actions have been paused.
type life struct {
	version

	Life string `json:"life"`
}

// content is what is kept of an effect's bytes.
type content struct {
	version

	Payload []byte `json:"payload"`
	Show    string `json:"show"`
}

func encodeDocument(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("action: encode %T: %v", v, err)) // texts, numbers and finite floats only
	}
	return b
}

// decodeDocument reads a document strictly: what is unknown was written by a newer program.
func decodeDocument[T interface{ formatVersion() int }](raw []byte) (*T, error) {
	v := new(T)
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	if err := in.Decode(v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if in.More() {
		return nil, fmt.Errorf("%w: something stands behind it", ErrFormat)
	}
	if f := (*v).formatVersion(); f != Format {
		return nil, fmt.Errorf("%w: format version %d, this program knows %d", ErrFormat, f, Format)
	}
	return v, nil
}

// Numbers in keys have a fixed width, so that keys are in the order of numbers.
func (n Name) runKey(run uint64) string { return fmt.Sprintf("%s/%012d", n, run) }

func (n Name) effectKey(run uint64, effect int) string {
	return fmt.Sprintf("%s/%06d", n.runKey(run), effect)
}

func (n Name) partKey(run uint64, effect, part int) string {
	return fmt.Sprintf("%s/%03d", n.effectKey(run, effect), part)
}

func newDocument(space, key string, value []byte) store.Document {
	return store.Document{Space: space, Key: key, Value: value}
}

func unixMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Instant is the time of microseconds; zero for none.
func Instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

const (
	maxWord = 64
	maxText = 4 << 10
)

// cutText bounds a text for people.
func cutText(s string, most int) string {
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
