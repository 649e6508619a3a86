package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// action runs a program.
type action struct {
	command []string
	env     map[string]string
	timeout time.Duration
	usage   url.Values // of /v1/usage; nil: none is handed over
	changes bool       // the records that have changed are handed over
	batch   int        // of them at most, in one run of the program
	quiet   bool       // the program is not run when there is nothing
}

// Describe implements sdk.Action. What a program does is not known: it is not
// repeated by itself unless it says how it ended.
func (a *action) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{
		Type: "exec", Version: "1.0.0", Class: sdk.ClassAtMostOnce, Schedule: "@hourly", Deadline: time.Hour,
		Commands: "the command of its config block",
	}
}

const (
	maxBatch   = 10_000
	maxTimeout = time.Hour
)

// Configure implements sdk.Action.
func (a *action) Configure(_ context.Context, cfg *sdk.Config) error {
	cfg.Require("command")
	a.command = cfg.Strings("command", nil)
	a.env = cfg.StringMap("env", nil)
	a.timeout = cfg.Duration("timeout", 10*time.Minute)
	a.quiet = cfg.Bool("skip_empty", true)
	a.batch = int(cfg.Int("batch", 1000))
	hand := cfg.Enum("input", "none", "none", "usage", "changes")
	a.changes = hand == "changes"
	if a.batch < 1 || a.batch > maxBatch {
		cfg.Errorf("batch", "%d is not between 1 and %d", a.batch, maxBatch)
	}
	if a.timeout < time.Second || a.timeout > maxTimeout {
		cfg.Errorf("timeout", "%s is not between 1s and %s", a.timeout, maxTimeout)
	}
	if len(a.command) > 0 && !filepath.IsAbs(a.command[0]) {
		cfg.Errorf("command", "%q is not an absolute path; there is no shell and no search for programs", a.command[0])
	}
	if cfg.Has("command") && len(a.command) == 0 {
		cfg.Errorf("command", "it is empty; the first element is the path of the program")
	}
	a.question(cfg, hand)
	return cfg.Err()
}

// question reads the block usage { … }: attributes as in a query of /v1/usage.
func (a *action) question(cfg *sdk.Config, hand string) {
	a.usage = nil
	b := cfg.Block("usage")
	switch {
	case hand == "usage" && b == nil:
		cfg.Errorf("input", `usage needs a block such as usage { window = "last-month"; by = ["group_id"] }`)
		return
	case hand != "usage" && b != nil:
		cfg.Errorf("input", `the block usage is for input = "usage"`)
	case b == nil:
		return
	}
	a.usage = url.Values{}
	for _, name := range []string{"window", "from", "to", "zone", "bucket", "credit", "unit", "top", "order"} {
		if s := b.String(name, ""); s != "" {
			a.usage.Set(name, s)
		}
	}
	for _, name := range []string{"by", "measure"} {
		if list := b.Strings(name, nil); len(list) > 0 {
			a.usage.Set(name, strings.Join(list, ","))
		}
	}
	for key, value := range b.StringMap("where", nil) {
		a.usage.Set("where["+key+"]", value)
	}
	if !a.usage.Has("window") && !a.usage.Has("from") {
		cfg.Errorf("input", "the block usage says no time; expected window, or from and to")
	}
}

// input is what the program reads.
type input struct {
	Now     string            `json:"now"`
	Since   *string           `json:"since"`
	Args    map[string]string `json:"arguments,omitempty"`
	Usage   []json.RawMessage `json:"usage,omitempty"`
	Changes []json.RawMessage `json:"changes,omitempty"`
}

func newInput(start sdk.PlanStart) *input {
	in := &input{Now: start.Now.UTC().Format(time.RFC3339Nano), Args: start.Arguments}
	if !start.Since.IsZero() {
		since := start.Since.UTC().Format(time.RFC3339Nano)
		in.Since = &since
	}
	return in
}

// Plan implements sdk.Action.
func (a *action) Plan(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	switch {
	case a.changes:
		return a.planChanges(ctx, start, data)
	case a.usage != nil:
		return a.planUsage(ctx, start, data)
	}
	return a.plan(newInput(start), "run the program", 0)
}

// plan is one run of the program.
func (a *action) plan(in *input, summary string, rows int) (sdk.Plan, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return sdk.Plan{}, err
	}
	if len(text) > sdk.MaxPayload {
		return sdk.Plan{}, fmt.Errorf("the input of %d rows has %d bytes; at most %d are allowed: ask for fewer groups or buckets", rows, len(text), sdk.MaxPayload)
	}
	show := strings.Join(a.command, " ") + "\n" + string(text[:min(len(text), 16<<10)])
	return sdk.Plan{Effects: []sdk.Effect{{Name: "run", Summary: summary, Payload: text, Show: show}}}, nil
}

func (a *action) planUsage(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	in := newInput(start)
	for row, err := range data.Usage(ctx, a.usage) {
		if err != nil {
			return sdk.Plan{}, err
		}
		text, err := json.Marshal(usageRow{
			Group: row.Group, Others: row.Others, Bucket: row.Bucket, From: row.From.UTC().Format(time.RFC3339Nano), To: row.To.UTC().Format(time.RFC3339Nano), Measures: row.Measures,
		})
		if err != nil {
			return sdk.Plan{}, err
		}
		in.Usage = append(in.Usage, text)
	}
	if len(in.Usage) == 0 && a.quiet {
		return sdk.Plan{Notes: []string{"nothing was used, so the program is not run"}}, nil
	}
	return a.plan(in, fmt.Sprintf("run the program with %d rows of usage", len(in.Usage)), len(in.Usage))
}

// usageRow is a row as the program reads it.
type usageRow struct {
	Group    map[string]string      `json:"group"`
	Others   int                    `json:"others,omitempty"`
	Bucket   string                 `json:"bucket,omitempty"`
	From     string                 `json:"from"`
	To       string                 `json:"to"`
	Measures map[string]json.Number `json:"measures"`
}

// changesPage is an answer of /v1/changes.
type changesPage struct {
	Changes []json.RawMessage `json:"changes"`
	Last    uint64            `json:"last"`
}

// planChanges hands over the changes behind the last position, one batch in a run.
// The first run begins with the first change; the argument after of a manual run
// begins elsewhere.
func (a *action) planChanges(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	after, err := position(start)
	if err != nil {
		return sdk.Plan{}, err
	}
	page, err := changesAfter(ctx, data, after, a.batch)
	if err != nil {
		return sdk.Plan{}, err
	}
	state := []byte(strconv.FormatUint(page.Last, 10))
	if len(page.Changes) == 0 && a.quiet {
		return sdk.Plan{State: state, Notes: []string{"no record has changed, so the program is not run"}}, nil
	}
	in := newInput(start)
	in.Changes = page.Changes
	plan, err := a.plan(in, fmt.Sprintf("run the program with %d changes, up to number %d", len(page.Changes), page.Last), len(page.Changes))
	plan.State = state
	return plan, err
}

// position is the number of the last change that was handed over.
func position(start sdk.PlanStart) (uint64, error) {
	text := string(start.State)
	if given, ok := start.Arguments["after"]; ok {
		text = given
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not the number of a change", text)
	}
	return n, nil
}

// changesAfter reads a page of the feed. One that is too large for a payload is read
// again with half as many.
func changesAfter(ctx context.Context, data *sdk.Data, after uint64, limit int) (*changesPage, error) {
	for {
		page, err := readChanges(ctx, data, after, limit)
		if !errors.Is(err, errLarge) || limit == 1 {
			return page, err
		}
		limit /= 2
	}
}

// errLarge says that a page does not fit into a payload.
var errLarge = errors.New("the changes do not fit into the input of a program")

func readChanges(ctx context.Context, data *sdk.Data, after uint64, limit int) (*changesPage, error) {
	body, err := data.Get(ctx, fmt.Sprintf("/v1/changes?after=%d&limit=%d", after, limit), "application/json")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(&bounded{body, sdk.MaxPayload - 64<<10}); err != nil {
		return nil, err
	}
	page := &changesPage{}
	if err := json.Unmarshal(text.Bytes(), page); err != nil {
		return nil, fmt.Errorf("the changes: %w", err)
	}
	return page, nil
}

// Execute implements sdk.Action.
func (a *action) Execute(ctx context.Context, t sdk.Attempt, world *sdk.World) sdk.Result {
	env := map[string]string{}
	maps.Copy(env, a.env)
	env["BURSAR_KEY"], env["BURSAR_FENCE"], env["BURSAR_ATTEMPT"] = t.Key, strconv.FormatUint(t.Fence, 10), strconv.Itoa(t.Number)
	out, err := world.Run(ctx, sdk.Program{Arguments: a.command, Environment: env, Input: t.Effect.Payload, Timeout: a.timeout})
	switch {
	case sdk.NotRun(err):
		return sdk.Result{Outcome: sdk.Retry, Message: err.Error()}
	case err != nil:
		return sdk.Result{Outcome: sdk.Unknown, Message: err.Error()}
	}
	message := firstLine(out.Stdout)
	switch out.Status {
	case 0:
		return sdk.Result{Outcome: sdk.Done, Message: message, Reference: message}
	case exitRetry:
		return sdk.Result{Outcome: sdk.Retry, Message: trouble(out)}
	case exitRejected:
		return sdk.Result{Outcome: sdk.Rejected, Message: trouble(out)}
	}
	return sdk.Result{Outcome: sdk.Unknown, Message: trouble(out)}
}

// The exit codes by which a program says that it has done nothing, as sysexits.h
// has them: EX_TEMPFAIL and EX_DATAERR.
const (
	exitRetry    = 75
	exitRejected = 65
)

func trouble(out sdk.Output) string {
	text := firstLine(out.Error)
	if text == "" {
		text = firstLine(out.Stdout)
	}
	return fmt.Sprintf("the program ended with %d: %s", out.Status, text)
}

// firstLine is for people.
func firstLine(b []byte) string {
	const most = 500
	line, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte("\n"))
	return string(line[:min(len(line), most)])
}
