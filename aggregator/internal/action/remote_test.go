package action

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

type programs = grpc.BidiStreamingServer[bursarv1.RunProgramRequest, bursarv1.RunProgramResponse]

// head is an agent whose RunProgram is a function.
type head struct {
	bursarv1.UnimplementedAgentServer

	run func(programs) error
}

func (h *head) RunProgram(s programs) error { return h.run(s) }

// remote runs programs on the agent.
func remote(t *testing.T, run func(programs) error) *Remote {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	bursarv1.RegisterAgentServer(server, &head{run: run})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	return &Remote{Agent: "head1", Cluster: "c", Incarnation: "i", Action: Name{"exec", "a"}, Dial: func() (*grpc.ClientConn, error) {
		return grpc.NewClient("passthrough:agent", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	}}
}

func ready() *bursarv1.RunProgramResponse {
	return &bursarv1.RunProgramResponse{Message: &bursarv1.RunProgramResponse_Ready_{Ready: &bursarv1.RunProgramResponse_Ready{}}}
}

func over(e *bursarv1.RunProgramResponse_Ended) *bursarv1.RunProgramResponse {
	return &bursarv1.RunProgramResponse{Message: &bursarv1.RunProgramResponse_Ended_{Ended: e}}
}

// permits says ready, waits for go and answers.
func permits(answer *bursarv1.RunProgramResponse) func(programs) error {
	return func(s programs) error {
		if _, err := s.Recv(); err != nil {
			return err
		}
		if err := s.Send(ready()); err != nil {
			return err
		}
		if m, err := s.Recv(); err != nil || m.GetGo() == nil {
			return errors.New("no go")
		}
		if answer == nil {
			return errors.New("the agent dies")
		}
		return s.Send(answer)
	}
}

func TestAnAgentGetsAllThatItNeedsToDecide(t *testing.T) {
	got := make(chan *bursarv1.Errand, 1)
	r := remote(t, func(s programs) error {
		m, err := s.Recv()
		got <- m.GetErrand()
		return errors.Join(err, s.Send(over(&bursarv1.RunProgramResponse_Ended{Status: 3, Output: []byte("o"), Errors: []byte("e")})))
	})
	out, err := r.Run(t.Context(), ProgramRun{Effect: "x", Key: "k", Attempt: 2, Fence: 7}, sdk.Program{
		Arguments: []string{"/bin/x", "y"}, Environment: map[string]string{"A": "b"}, Input: []byte("in"), Timeout: time.Minute,
	})
	if err != nil || out.Status != 3 || string(out.Stdout) != "o" || string(out.Error) != "e" {
		t.Error(out, err)
	}
	e := <-got
	if e.GetCluster() != "c" || e.GetIncarnation() != "i" || e.GetAction() != "exec/a" || e.GetEffect() != "x" || e.GetKey() != "k" || e.GetAttempt() != 2 || e.GetFence() != 7 ||
		strings.Join(e.GetArguments(), " ") != "/bin/x y" || e.GetEnvironment()["A"] != "b" || string(e.GetInput()) != "in" || e.GetTimeoutMs() != 60_000 {
		t.Error(e)
	}
}

func TestWhatFailsBeforeTheLeaderHasSaidGoHasNotRun(t *testing.T) {
	unreachable := &Remote{Agent: "head1", Dial: func() (*grpc.ClientConn, error) {
		return grpc.NewClient("passthrough:agent", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("nobody listens") }))
	}}
	for want, r := range map[string]*Remote{
		"nobody listens": unreachable,
		"no certificate": {Agent: "head1", Dial: func() (*grpc.ClientConn, error) { return nil, errors.New("no certificate") }},
		"agent head1: it is not allowed": remote(t, func(s programs) error {
			return s.Send(over(&bursarv1.RunProgramResponse_Ended{NotRun: true, Failure: "it is not allowed"}))
		}),
		"the agent dies":                remote(t, func(programs) error { return errors.New("the agent dies") }),
		"agent head1: a later one came": remote(t, permits(over(&bursarv1.RunProgramResponse_Ended{NotRun: true, Failure: "a later one came"}))),
		"does not know":                 remote(t, func(s programs) error { return s.Send(&bursarv1.RunProgramResponse{}) }),
	} {
		if _, err := r.Run(t.Context(), ProgramRun{}, sdk.Program{}); !sdk.NotRun(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestWhatFailsAfterTheLeaderHasSaidGoMayHaveRun(t *testing.T) {
	for want, r := range map[string]*Remote{
		"the agent dies": remote(t, permits(nil)),
		"was killed":     remote(t, permits(over(&bursarv1.RunProgramResponse_Ended{Failure: "it was killed"}))),
		"did not say":    remote(t, permits(ready())),
	} {
		if _, err := r.Run(t.Context(), ProgramRun{}, sdk.Program{}); err == nil || sdk.NotRun(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
