package action

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Process is a plugin's process. *host.Process is one.
type Process interface {
	io.Closer

	Kill() error
	Hang(why error)
	Done() <-chan struct{}
	Err() error
	Stale() bool
}

// Programs runs programs for effects.
type Programs interface {
	// Run returns when the program has ended. The error says that it was not
	// started when sdk.NotRun says so.
	Run(ctx context.Context, e ProgramRun, p sdk.Program) (sdk.Output, error)
}

// ProgramRun is what a program is run for: an attempt at an effect.
type ProgramRun struct {
	Effect  string
	Key     string
	Attempt int
	Fence   uint64
}

// Local runs programs on this machine that only root and the daemon's user can have
// changed: see [host.CheckCommand].
type Local struct {
	Dev bool // accepts programs below folders such as /tmp
}

// Run implements Programs.
func (l Local) Run(ctx context.Context, _ ProgramRun, p sdk.Program) (sdk.Output, error) {
	path, err := host.CheckCommand(p.Arguments, l.Dev)
	if err != nil {
		return sdk.Output{}, sdk.NotStarted(err)
	}
	return host.RunProgram(ctx, path, p)
}

// Spec is what a [Session] is made of.
type Spec struct {
	Node   string // this node's name
	Config *bursarv1.Node
	Label  string
	// Data answers what plans ask, with the rights of the action.
	Data http.Handler
	// Archives removes records from the store and restores them.
	Archives http.Handler
	// Programs run where the action runs.
	Programs Programs
}

// Session is a plugin that runs and has taken its configuration, over gRPC.
type Session struct {
	process Process
	client  bursarv1.ActionPluginClient
	about   *Description
	spec    Spec

	warnings hcl.Diagnostics
}

// NewSession asks a plugin what it is and configures it. The caller closes the
// process after an error. What is wrong with the configuration is an error of type
// hcl.Diagnostics.
func NewSession(ctx context.Context, process Process, client bursarv1.ActionPluginClient, about *bursarv1.DescribeActionResponse, spec Spec) (*Session, error) {
	d := &Description{Probes: about.GetProbes()}
	d.Type, d.Version, d.Schedule, d.Commands = about.GetType(), about.GetVersion(), about.GetSchedule(), about.GetCommands()
	d.Archives = about.GetArchives()
	d.Class = sdk.EffectClass(about.GetClass())
	var err error
	if d.Deadline, err = time.ParseDuration(about.GetDeadline()); err != nil {
		return nil, fmt.Errorf("its deadline: %w", err)
	}
	resp, err := client.Configure(ctx, &bursarv1.ConfigureRequest{Label: spec.Label, Agent: spec.Node, Config: spec.Config})
	if err != nil {
		return nil, fmt.Errorf("configure: %w", err)
	}
	diags := host.Diagnostics(resp.GetDiagnostics())
	if err := diags.Err(); err != nil {
		return nil, err
	}
	return &Session{process: process, client: client, about: d, spec: spec, warnings: diags}, nil
}

// Description implements Plugin.
func (s *Session) Description() *Description { return s.about }

// Warnings returns what the plugin says of its configuration without refusing it.
func (s *Session) Warnings() hcl.Diagnostics { return s.warnings }

// Gone implements Plugin.
func (s *Session) Gone() bool {
	select {
	case <-s.process.Done():
		return true
	default:
		return false
	}
}

// Stale implements Plugin.
func (s *Session) Stale() bool { return s.process.Stale() }

// Close implements Plugin.
func (s *Session) Close() error { return s.process.Close() }

// Hang implements Plugin.
func (s *Session) Hang(why error) { s.process.Hang(why) }

// Kill implements Plugin.
func (s *Session) Kill() error { return s.process.Kill() }

type stream = grpc.BidiStreamingClient[bursarv1.ActionRequest, bursarv1.ActionResponse]

// Plan implements Plugin.
func (s *Session) Plan(ctx context.Context, start sdk.PlanStart) (*sdk.Plan, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := s.client.Plan(ctx)
	if err != nil {
		return nil, s.explainEnd(err)
	}
	first := &bursarv1.PlanStart{Now: unixMicros(start.Now), Since: unixMicros(start.Since), State: start.State, Index: start.Index, Arguments: start.Arguments}
	c := &call{ctx: ctx, stream: st, spec: &s.spec}
	c.quiet = newQuiet(planSilence, func() {
		s.process.Hang(&host.Stall{Call: "Plan", Silent: planSilence})
		cancel()
	})
	defer c.quiet.timer.Stop()
	plan, _, err := c.talkToPlugin(&bursarv1.ActionRequest{Message: &bursarv1.ActionRequest_Plan{Plan: first}})
	switch {
	case err != nil:
		return nil, s.explainEnd(err)
	case plan == nil:
		return nil, errors.New("the plugin answered a plan with a result")
	}
	out := &sdk.Plan{Effects: c.effects, Partial: plan.GetPartial(), Notes: plan.GetNotes()}
	if len(plan.GetState()) > 0 {
		out.State = plan.GetState()
	}
	for _, g := range plan.GetGauges() {
		out.Gauges = append(out.Gauges, sdk.Gauge{Name: g.GetName(), Labels: g.GetLabels(), Value: g.GetValue()})
	}
	return out, nil
}

// Execute implements Plugin.
func (s *Session) Execute(ctx context.Context, a sdk.Attempt) (sdk.Result, error) {
	return s.runEffect(ctx, a, s.client.Execute)
}

// Probe implements Plugin.
func (s *Session) Probe(ctx context.Context, a sdk.Attempt) (sdk.Result, error) {
	return s.runEffect(ctx, a, s.client.Probe)
}

func (s *Session) runEffect(ctx context.Context, a sdk.Attempt, begin func(context.Context, ...grpc.CallOption) (stream, error)) (sdk.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := begin(ctx)
	if err != nil {
		return sdk.Result{}, s.explainEnd(err)
	}
	first := &bursarv1.EffectStart{
		Effect: &bursarv1.Effect{Name: a.Effect.Name, Summary: a.Effect.Summary, Payload: a.Effect.Payload, Show: a.Effect.Show},
		Fence:  a.Fence, Attempt: uint32(a.Number), Key: a.Key,
	}
	c := &call{
		ctx: ctx, stream: st, spec: &s.spec, world: s.about.Commands != "", files: s.about.Archives != "",
		effect: ProgramRun{Effect: a.Effect.Name, Key: a.Key, Attempt: a.Number, Fence: a.Fence},
	}
	_, r, err := c.talkToPlugin(&bursarv1.ActionRequest{Message: &bursarv1.ActionRequest_Effect{Effect: first}})
	switch {
	case err != nil:
		return sdk.Result{}, s.explainEnd(err)
	case r == nil:
		return sdk.Result{}, errors.New("the plugin answered an effect with a plan")
	}
	out := sdk.Result{Outcome: sdk.Outcome(r.GetOutcome()), Message: r.GetMessage(), Reference: r.GetReference()}
	if r.GetRetryAfter() != "" {
		if out.RetryAfter, err = time.ParseDuration(r.GetRetryAfter()); err != nil {
			return sdk.Result{}, fmt.Errorf("the plugin's retry_after: %w", err)
		}
	}
	return out, nil
}

// explainEnd adds how the process ended, where it has. What the plugin itself says goes
// without gRPC's words around it.
func (s *Session) explainEnd(err error) error {
	err = host.Said(err)
	select {
	case <-s.process.Done():
		if end := s.process.Err(); end != nil {
			return fmt.Errorf("%w; %w", end, err)
		}
	default:
	}
	return err
}

var _ Plugin = (*Session)(nil)
