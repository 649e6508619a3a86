package sdk

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// MaxPayload is how much the payload of an effect may be, in bytes.
const MaxPayload = 8 << 20

// RegisterAction serves an action on a gRPC server: what ServeAction does inside
// a plugin's process, for tests and for programs that hold an action themselves.
// Every Configure starts with a new action from newAction.
func RegisterAction(s grpc.ServiceRegistrar, newAction func() Action, log *slog.Logger) {
	bursarv1.RegisterActionPluginServer(s, &actionServer{worker: newWorker(newAction, log)})
}

// actionServer turns gRPC calls into calls of an Action.
type actionServer struct {
	bursarv1.UnimplementedActionPluginServer
	*worker[Action]
}

// Describe implements the service.
func (s *actionServer) Describe(context.Context, *bursarv1.DescribeActionRequest) (r *bursarv1.DescribeActionResponse, err error) {
	defer s.guard("Describe", &err)
	action, _ := s.current()
	d := action.Describe().withDefaults()
	_, probes := action.(Prober)
	return &bursarv1.DescribeActionResponse{
		Type: valid(d.Type), Version: valid(d.Version), Class: bursarv1.EffectClass(d.Class), Probes: probes,
		Schedule: valid(d.Schedule), Deadline: d.Deadline.String(), Commands: valid(d.Commands), Archives: valid(d.Archives),
	}, nil
}

func (d ActionDescription) withDefaults() ActionDescription {
	if d.Deadline == 0 {
		d.Deadline = time.Minute
	}
	return d
}

// Configure implements the service.
func (s *actionServer) Configure(ctx context.Context, r *bursarv1.ConfigureRequest) (*bursarv1.ConfigureResponse, error) {
	return s.configure(ctx, r)
}

// begin waits for its turn and returns the configured action and the first
// message of a call.
func (s *actionServer) begin(stream actionStream) (Action, *bursarv1.ActionRequest, error) {
	first, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	if err := s.acquire(stream.Context()); err != nil {
		return nil, nil, err
	}
	action, configured := s.current()
	if !configured {
		s.release()
		return nil, nil, status.Error(codes.FailedPrecondition, "a call before Configure")
	}
	return action, first, nil
}

// Plan implements the service.
func (s *actionServer) Plan(stream grpc.BidiStreamingServer[bursarv1.ActionRequest, bursarv1.ActionResponse]) (err error) {
	action, first, err := s.begin(stream)
	if err != nil {
		return err
	}
	defer s.release()
	defer s.guard("Plan", &err)
	if first.GetPlan() == nil {
		return status.Error(codes.InvalidArgument, "the first message of Plan must be its start")
	}
	plan, err := action.Plan(stream.Context(), decodePlanStart(first.GetPlan()), &Data{&desk{stream: stream}})
	switch {
	case err == nil:
		return plan.send(stream)
	case stream.Context().Err() != nil:
		return status.Error(codes.Canceled, "the daemon closed the stream")
	}
	return status.Error(codes.Unknown, valid(cut(err.Error())))
}

func decodePlanStart(p *bursarv1.PlanStart) PlanStart {
	start := PlanStart{Now: instant(p.GetNow()), Since: instant(p.GetSince()), Index: p.GetIndex(), Arguments: p.GetArguments()}
	if len(p.GetState()) > 0 {
		start.State = p.GetState()
	}
	return start
}

// instant is the time of microseconds; none for zero.
func instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// send sends the effects one by one, and at last the plan.
func (p *Plan) send(stream actionStream) error {
	for i := range p.Effects {
		e := &p.Effects[i]
		if len(e.Payload) > MaxPayload {
			return status.Errorf(codes.Unknown, "the payload of the effect %q has %d bytes; at most %d are allowed", valid(cut(e.Name)), len(e.Payload), MaxPayload)
		}
		if err := stream.Send(&bursarv1.ActionResponse{Message: &bursarv1.ActionResponse_Effect{Effect: e.encode()}}); err != nil {
			return err
		}
	}
	out := &bursarv1.Plan{State: p.State, Partial: p.Partial}
	for _, n := range p.Notes {
		out.Notes = append(out.Notes, valid(cut(n)))
	}
	for _, g := range p.Gauges {
		labels := make(map[string]string, len(g.Labels))
		for name, value := range g.Labels {
			labels[valid(name)] = valid(value)
		}
		out.Gauges = append(out.Gauges, &bursarv1.Gauge{Name: valid(g.Name), Labels: labels, Value: g.Value})
	}
	return stream.Send(&bursarv1.ActionResponse{Message: &bursarv1.ActionResponse_Plan{Plan: out}})
}

const maxShow = 64 << 10

func (e *Effect) encode() *bursarv1.Effect {
	show := e.Show
	if len(show) > maxShow {
		show = show[:maxShow]
	}
	return &bursarv1.Effect{Name: valid(e.Name), Summary: valid(cut(e.Summary)), Payload: e.Payload, Show: valid(show)}
}

// Execute implements the service.
func (s *actionServer) Execute(stream grpc.BidiStreamingServer[bursarv1.ActionRequest, bursarv1.ActionResponse]) error {
	return s.effect(stream, "Execute", func(action Action) func(context.Context, Attempt, *World) Result { return action.Execute })
}

// Probe implements the service.
func (s *actionServer) Probe(stream grpc.BidiStreamingServer[bursarv1.ActionRequest, bursarv1.ActionResponse]) error {
	return s.effect(stream, "Probe", func(action Action) func(context.Context, Attempt, *World) Result {
		if p, ok := action.(Prober); ok {
			return p.Probe
		}
		return func(context.Context, Attempt, *World) Result {
			return Result{Outcome: Unknown, Message: "this action cannot tell"}
		}
	})
}

func (s *actionServer) effect(stream actionStream, where string, what func(Action) func(context.Context, Attempt, *World) Result) error {
	action, first, err := s.begin(stream)
	if err != nil {
		return err
	}
	defer s.release()
	if first.GetEffect() == nil {
		return status.Errorf(codes.InvalidArgument, "the first message of %s must be the effect", where)
	}
	result := s.attempt(stream, where, what(action), decodeAttempt(first.GetEffect()))
	return stream.Send(&bursarv1.ActionResponse{Message: &bursarv1.ActionResponse_Result{Result: result.encode()}})
}

// attempt makes of a panic an outcome that is not known.
func (s *actionServer) attempt(stream actionStream, where string, do func(context.Context, Attempt, *World) Result, a Attempt) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r = Result{Outcome: Unknown, Message: s.told(where, p)}
		}
	}()
	return do(stream.Context(), a, &World{&desk{stream: stream}})
}

func decodeAttempt(p *bursarv1.EffectStart) Attempt {
	e := p.GetEffect()
	return Attempt{
		Effect: Effect{Name: e.GetName(), Summary: e.GetSummary(), Payload: e.GetPayload(), Show: e.GetShow()},
		Fence:  p.GetFence(), Number: int(p.GetAttempt()), Key: p.GetKey(),
	}
}

func (r Result) encode() *bursarv1.Result {
	if r.Outcome < Done || r.Outcome > Unknown {
		r.Outcome, r.Message = Unknown, fmt.Sprintf("the action gave no outcome; %s", r.Message)
	}
	out := &bursarv1.Result{Outcome: bursarv1.Outcome(r.Outcome), Message: valid(cut(r.Message)), Reference: valid(cut(r.Reference))}
	if r.RetryAfter > 0 {
		out.RetryAfter = r.RetryAfter.String()
	}
	return out
}
