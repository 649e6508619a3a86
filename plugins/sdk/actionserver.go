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
	defer s.guardPanic("Describe", &err)
	action, _ := s.currentPlugin()
	d := action.Describe().withDefaults()
	_, probes := action.(Prober)
	return &bursarv1.DescribeActionResponse{
		Type: validText(d.Type), Version: validText(d.Version), Class: bursarv1.EffectClass(d.Class), Probes: probes,
		Schedule: validText(d.Schedule), Deadline: d.Deadline.String(), Commands: validText(d.Commands), Archives: validText(d.Archives),
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
	return s.configurePlugin(ctx, r)
}

// beginCall waits for its turn and returns the configured action and the first
// message of a call.
func (s *actionServer) beginCall(stream actionStream) (Action, *bursarv1.ActionRequest, error) {
	first, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	if err := s.acquirePlugin(stream.Context()); err != nil {
		return nil, nil, err
	}
	action, configured := s.currentPlugin()
	if !configured {
		s.releasePlugin()
		return nil, nil, status.Error(codes.FailedPrecondition, "a call before Configure")
	}
	return action, first, nil
}

// Plan implements the service.
func (s *actionServer) Plan(stream grpc.BidiStreamingServer[bursarv1.ActionRequest, bursarv1.ActionResponse]) (err error) {
	action, first, err := s.beginCall(stream)
	if err != nil {
		return err
	}
	defer s.releasePlugin()
	defer s.guardPanic("Plan", &err)
	if first.GetPlan() == nil {
		return status.Error(codes.InvalidArgument, "the first message of Plan must be its start")
	}
	plan, err := action.Plan(stream.Context(), decodePlanStart(first.GetPlan()), &Data{&requester{stream: stream}})
	switch {
	case err == nil:
		return plan.sendPlan(stream)
	case stream.Context().Err() != nil:
		return status.Error(codes.Canceled, "the daemon closed the stream")
	}
	return status.Error(codes.Unknown, validText(cutText(err.Error())))
}

func decodePlanStart(p *bursarv1.PlanStart) PlanStart {
	start := PlanStart{Now: timeOfMicros(p.GetNow()), Since: timeOfMicros(p.GetSince()), Index: p.GetIndex(), Arguments: p.GetArguments()}
	if len(p.GetState()) > 0 {
		start.State = p.GetState()
	}
	return start
}

// timeOfMicros is the time of microseconds; none for zero.
func timeOfMicros(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// sendPlan sends the effects one by one, and at last the plan.
func (p *Plan) sendPlan(stream actionStream) error {
	for i := range p.Effects {
		e := &p.Effects[i]
		if len(e.Payload) > MaxPayload {
			return status.Errorf(codes.Unknown, "the payload of the effect %q has %d bytes; at most %d are allowed", validText(cutText(e.Name)), len(e.Payload), MaxPayload)
		}
		if err := stream.Send(&bursarv1.ActionResponse{Message: &bursarv1.ActionResponse_Effect{Effect: e.encodeEffect()}}); err != nil {
			return err
		}
	}
	out := &bursarv1.Plan{State: p.State, Partial: p.Partial}
	for _, n := range p.Notes {
		out.Notes = append(out.Notes, validText(cutText(n)))
	}
	for _, g := range p.Gauges {
		labels := make(map[string]string, len(g.Labels))
		for name, value := range g.Labels {
			labels[validText(name)] = validText(value)
		}
		out.Gauges = append(out.Gauges, &bursarv1.Gauge{Name: validText(g.Name), Labels: labels, Value: g.Value})
	}
	return stream.Send(&bursarv1.ActionResponse{Message: &bursarv1.ActionResponse_Plan{Plan: out}})
}

const maxShow = 64 << 10

func (e *Effect) encodeEffect() *bursarv1.Effect {
	show := e.Show
	if len(show) > maxShow {
		show = show[:maxShow]
	}
	return &bursarv1.Effect{Name: validText(e.Name), Summary: validText(cutText(e.Summary)), Payload: e.Payload, Show: validText(show)}
}

// Execute implements the service.
func (s *actionServer) Execute(stream grpc.BidiStreamingServer[bursarv1.ActionRequest, bursarv1.ActionResponse]) error {
	return s.runEffect(stream, "Execute", func(action Action) func(context.Context, Attempt, *World) Result { return action.Execute })
}

// Probe implements the service.
func (s *actionServer) Probe(stream grpc.BidiStreamingServer[bursarv1.ActionRequest, bursarv1.ActionResponse]) error {
	return s.runEffect(stream, "Probe", func(action Action) func(context.Context, Attempt, *World) Result {
		if p, ok := action.(Prober); ok {
			return p.Probe
		}
		return func(context.Context, Attempt, *World) Result {
			return Result{Outcome: Unknown, Message: "this action cannot tell"}
		}
	})
}

func (s *actionServer) runEffect(stream actionStream, where string, what func(Action) func(context.Context, Attempt, *World) Result) error {
	action, first, err := s.beginCall(stream)
	if err != nil {
		return err
	}
	defer s.releasePlugin()
	if first.GetEffect() == nil {
		return status.Errorf(codes.InvalidArgument, "the first message of %s must be the effect", where)
	}
	result := s.attemptEffect(stream, where, what(action), decodeAttempt(first.GetEffect()))
	return stream.Send(&bursarv1.ActionResponse{Message: &bursarv1.ActionResponse_Result{Result: result.encodeResult()}})
}

// attemptEffect makes of a panic an outcome that is not known.
func (s *actionServer) attemptEffect(stream actionStream, where string, do func(context.Context, Attempt, *World) Result, a Attempt) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r = Result{Outcome: Unknown, Message: s.logPanic(where, p)}
		}
	}()
	return do(stream.Context(), a, &World{&requester{stream: stream}})
}

func decodeAttempt(p *bursarv1.EffectStart) Attempt {
	e := p.GetEffect()
	return Attempt{
		Effect: Effect{Name: e.GetName(), Summary: e.GetSummary(), Payload: e.GetPayload(), Show: e.GetShow()},
		Fence:  p.GetFence(), Number: int(p.GetAttempt()), Key: p.GetKey(),
	}
}

func (r Result) encodeResult() *bursarv1.Result {
	if r.Outcome < Done || r.Outcome > Unknown {
		r.Outcome, r.Message = Unknown, fmt.Sprintf("the action gave no outcome; %s", r.Message)
	}
	out := &bursarv1.Result{Outcome: bursarv1.Outcome(r.Outcome), Message: validText(cutText(r.Message)), Reference: validText(cutText(r.Reference))}
	if r.RetryAfter > 0 {
		out.RetryAfter = r.RetryAfter.String()
	}
	return out
}
