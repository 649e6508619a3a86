package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/payload"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// action runs a program.
type action struct {
	settings

	input *payload.Question
}

// settings are those of the config block.
type settings struct {
	Command hcl.Strings `hcl:"command" doc:"the program's absolute path and its arguments"`
	Input   string      `hcl:"input,optional" default:"none" allowed:"usage changes none" doc:"what the program gets on standard input"`
	payload.Settings
	Timeout time.Duration     `hcl:"timeout,optional" default:"10m" min:"1s" max:"1h" doc:"after which the program is killed with all that it has started"`
	Env     map[string]string `hcl:"env,optional" doc:"beside PATH, HOME, LANG, LC_ALL and TZ of the daemon"`
}

// Describe implements sdk.Action. What a program does is not known: it is not
// repeated by itself unless it says how it ended.
func (a *action) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{
		Type: "exec", Version: "1.0.0", Class: sdk.ClassAtMostOnce, Schedule: "@hourly", Deadline: time.Hour,
		Commands: "the command of its config block", Settings: new(settings),
	}
}

// Configure implements sdk.Action.
func (a *action) Configure(_ context.Context, cfg *sdk.Config) error {
	_ = cfg.Decode(&a.settings) // it is in what Err returns
	a.input = a.Question(cfg, a.Input)
	if len(a.Command) > 0 && !filepath.IsAbs(a.Command[0]) {
		cfg.Errorf("command", "%q is not an absolute path; there is no shell and no search for programs", a.Command[0])
	}
	if cfg.Has("command") && len(a.Command) == 0 {
		cfg.Errorf("command", "it is empty; the first element is the path of the program")
	}
	return cfg.Err()
}

// Plan implements sdk.Action.
func (a *action) Plan(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	h, err := a.input.Make(ctx, start, data)
	if err != nil {
		return sdk.Plan{}, err
	}
	return h.Plan("run", strings.Join(a.Command, " "), func(what string) string {
		if what == "" {
			return "run the program"
		}
		return "run the program with " + what
	}), nil
}

// Execute implements sdk.Action.
func (a *action) Execute(ctx context.Context, t sdk.Attempt, world *sdk.World) sdk.Result {
	env := map[string]string{}
	maps.Copy(env, a.Env)
	env["BURSAR_KEY"], env["BURSAR_FENCE"], env["BURSAR_ATTEMPT"] = t.Key, strconv.FormatUint(t.Fence, 10), strconv.Itoa(t.Number)
	out, err := world.Run(ctx, sdk.Program{Arguments: a.Command, Environment: env, Input: t.Effect.Payload, Timeout: a.Timeout})
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
		return sdk.Result{Outcome: sdk.Retry, Message: describeFailure(out)}
	case exitRejected:
		return sdk.Result{Outcome: sdk.Rejected, Message: describeFailure(out)}
	}
	return sdk.Result{Outcome: sdk.Unknown, Message: describeFailure(out)}
}

// The exit codes by which a program says that it has done nothing, as sysexits.h
// has them: EX_TEMPFAIL and EX_DATAERR.
const (
	exitRetry    = 75
	exitRejected = 65
)

func describeFailure(out sdk.Output) string {
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
