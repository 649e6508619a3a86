package serve

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpccreds "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Permit is the leave to run a program. An error of Run says by sdk.NotRun whether it
// was started.
type Permit interface {
	Run(ctx context.Context) (sdk.Output, error)
}

// ProgramAdmitter permits programs of actions. An error says why one is not run.
type ProgramAdmitter interface {
	Admit(e *bursarv1.Errand, by string) (Permit, error)
}

// decideTime is how long a caller may take to say go.
const decideTime = 30 * time.Second

type programStream = grpc.BidiStreamingServer[bursarv1.RunProgramRequest, bursarv1.RunProgramResponse]

// RunProgram implements bursar.v1.Agent.
func (s *Server) RunProgram(stream programStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if first.GetErrand() == nil || s.Programs == nil {
		return status.Error(codes.FailedPrecondition, "this agent runs no programs, or the call does not begin with one")
	}
	permit, err := s.Programs.Admit(first.GetErrand(), callerName(stream.Context()))
	if err != nil {
		return sendEnded(stream, sdk.Output{}, sdk.NotStarted(err))
	}
	if err := stream.Send(&bursarv1.RunProgramResponse{Message: &bursarv1.RunProgramResponse_Ready_{Ready: &bursarv1.RunProgramResponse_Ready{}}}); err != nil {
		return err
	}
	if err := awaitDecision(stream); err != nil {
		return err
	}
	out, err := permit.Run(stream.Context())
	return sendEnded(stream, out, err)
}

// awaitDecision waits until the caller says go.
func awaitDecision(stream programStream) error {
	answer := make(chan error, 1)
	go func() { // ends with the call
		m, err := stream.Recv()
		if err == nil && m.GetGo() == nil {
			err = status.Error(codes.InvalidArgument, "the caller said something else than go")
		}
		answer <- err
	}()
	timer := time.NewTimer(decideTime)
	defer timer.Stop()
	select {
	case err := <-answer:
		return err
	case <-timer.C:
		return status.Error(codes.DeadlineExceeded, "the caller has not said go; nothing was run")
	}
}

func sendEnded(stream programStream, out sdk.Output, err error) error {
	e := &bursarv1.RunProgramResponse_Ended{Status: int32(out.Status), Output: out.Stdout, Errors: out.Error}
	if err != nil {
		e.Failure, e.NotRun = err.Error(), sdk.NotRun(err)
	}
	return stream.Send(&bursarv1.RunProgramResponse{Message: &bursarv1.RunProgramResponse_Ended_{Ended: e}})
}

// callerName is the aggregator that calls, by its certificate.
func callerName(ctx context.Context) string {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	info, ok := from.AuthInfo.(grpccreds.TLSInfo)
	if !ok {
		return from.Addr.String()
	}
	id, err := identity.Peer(info.State)
	if err != nil {
		return from.Addr.String()
	}
	return id.Name
}
