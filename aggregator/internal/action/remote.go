package action

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Remote runs programs on an agent, which decides whether it allows them.
type Remote struct {
	Agent string // its name
	// Dial prepares a connection to it.
	Dial func() (*grpc.ClientConn, error)
	// Cluster is this cluster's id, and Incarnation is another one after each restore of
	// it: fences may be lesser then.
	Cluster, Incarnation string
	Action               Name
}

// Run implements Programs. Nothing is run before the agent has permitted it and this
// node has said go, so that every failure until then leaves nothing behind.
func (r *Remote) Run(ctx context.Context, e ProgramRun, p sdk.Program) (sdk.Output, error) {
	conn, err := r.Dial()
	if err != nil {
		return sdk.Output{}, sdk.NotStarted(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := bursarv1.NewAgentClient(conn).RunProgram(ctx)
	if err != nil {
		return sdk.Output{}, sdk.NotStarted(r.explainError(err))
	}
	if ended, err := r.askAgent(stream, r.programRequest(e, p)); err != nil || ended != nil {
		return r.readResult(ended, err, true)
	}
	err = stream.Send(&bursarv1.RunProgramRequest{Message: &bursarv1.RunProgramRequest_Go_{Go: &bursarv1.RunProgramRequest_Go{}}})
	if err != nil && !errors.Is(err, io.EOF) {
		return r.readResult(nil, err, false)
	}
	m, err := stream.Recv()
	return r.readResult(m.GetEnded(), err, false)
}

func (r *Remote) programRequest(e ProgramRun, p sdk.Program) *bursarv1.RunProgramRequest {
	return &bursarv1.RunProgramRequest{Message: &bursarv1.RunProgramRequest_Errand{Errand: &bursarv1.Errand{
		Cluster: r.Cluster, Incarnation: r.Incarnation, Action: r.Action.String(),
		Effect: e.Effect, Key: e.Key, Attempt: uint32(e.Attempt), Fence: e.Fence,
		Arguments: p.Arguments, Environment: p.Environment, Input: p.Input, TimeoutMs: uint64(max(0, p.Timeout.Milliseconds())),
	}}}
}

// askAgent asks whether the agent would run the program; nil and nil: it would.
func (r *Remote) askAgent(stream bursarv1.Agent_RunProgramClient, errand *bursarv1.RunProgramRequest) (*bursarv1.RunProgramResponse_Ended, error) {
	if err := stream.Send(errand); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	m, err := stream.Recv() // which also says why the message could not be sent
	switch {
	case err != nil:
		return nil, err
	case m.GetReady() == nil && m.GetEnded() == nil:
		return nil, errors.New("it answers with a message that this program does not know")
	}
	return m.GetEnded(), nil
}

// readResult is how it ended. early: go has not been said.
func (r *Remote) readResult(e *bursarv1.RunProgramResponse_Ended, err error, early bool) (sdk.Output, error) {
	if err == nil && e == nil {
		err = errors.New("it did not say how the program ended")
	}
	switch {
	case err != nil && early:
		return sdk.Output{}, sdk.NotStarted(r.explainError(err))
	case err != nil:
		return sdk.Output{}, fmt.Errorf("%w; how the program ended is not known", r.explainError(err))
	}
	out := sdk.Output{Status: int(e.GetStatus()), Stdout: e.GetOutput(), Error: e.GetErrors()}
	switch {
	case e.GetNotRun():
		return out, sdk.NotStarted(fmt.Errorf("agent %s: %s", r.Agent, cutText(e.GetFailure(), maxText)))
	case e.GetFailure() != "":
		return out, fmt.Errorf("agent %s: %s", r.Agent, cutText(e.GetFailure(), maxText))
	}
	return out, nil
}

func (r *Remote) explainError(err error) error {
	return fmt.Errorf("agent %s: %w", r.Agent, err)
}
