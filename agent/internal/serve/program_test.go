package serve_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/bursar-accounting/bursar/agent/internal/serve"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// office permits what it is told to.
type office struct {
	refuse error
	run    func(context.Context) (sdk.Output, error)
	by     chan string
}

func (o *office) Admit(_ *bursarv1.Errand, by string) (serve.Permit, error) {
	o.by <- by
	if o.refuse != nil {
		return nil, o.refuse
	}
	return o, nil
}

func (o *office) Run(ctx context.Context) (sdk.Output, error) { return o.run(ctx) }

// ask begins a call to a server with the office.
func ask(t *testing.T, o *office, as identity.Role) (bursarv1.Agent_RunProgramClient, context.CancelFunc, error) {
	t.Helper()
	o.by = make(chan string, 10)
	keys := pki(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &serve.Server{Programs: o, Keys: keys[identity.Agent], Log: slog.New(slog.DiscardHandler)}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(keys[as].Client(identity.Agent, "agent1"))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	call, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	stream, err := bursarv1.NewAgentClient(conn).RunProgram(call)
	if err != nil {
		return nil, cancel, err
	}
	_ = stream.Send(&bursarv1.RunProgramRequest{Message: &bursarv1.RunProgramRequest_Errand{Errand: &bursarv1.Errand{Action: "exec/a"}}}) // Recv tells
	return stream, cancel, nil
}

func sayGo(t *testing.T, s bursarv1.Agent_RunProgramClient) {
	t.Helper()
	m, err := s.Recv()
	if err != nil || m.GetReady() == nil {
		t.Fatal(m, err)
	}
	if err := s.Send(&bursarv1.RunProgramRequest{Message: &bursarv1.RunProgramRequest_Go_{Go: &bursarv1.RunProgramRequest_Go{}}}); err != nil {
		t.Fatal(err)
	}
}

func TestAProgramIsRunWhenTheAggregatorSaysGo(t *testing.T) {
	o := &office{run: func(context.Context) (sdk.Output, error) {
		return sdk.Output{Status: 3, Stdout: []byte("out"), Error: []byte("err")}, nil
	}}
	s, _, err := ask(t, o, identity.Aggregator)
	if err != nil {
		t.Fatal(err)
	}
	sayGo(t, s)
	m, err := s.Recv()
	if e := m.GetEnded(); err != nil || e.GetStatus() != 3 || string(e.GetOutput()) != "out" || string(e.GetErrors()) != "err" || e.GetFailure() != "" {
		t.Error(m, err)
	}
	if by := <-o.by; by != "aggregator1" {
		t.Errorf("asked by %q", by)
	}
}

func TestARefusedProgramIsSaidNotToHaveRun(t *testing.T) {
	s, _, err := ask(t, &office{refuse: errors.New("not allowed")}, identity.Aggregator)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Recv()
	if e := m.GetEnded(); err != nil || !e.GetNotRun() || e.GetFailure() != "not allowed" {
		t.Error(m, err)
	}
}

func TestAProgramEndsWithTheCallThatAskedForIt(t *testing.T) {
	ran, ended := make(chan struct{}), make(chan struct{})
	s, cancel, err := ask(t, &office{run: func(ctx context.Context) (sdk.Output, error) {
		close(ran)
		<-ctx.Done()
		close(ended)
		return sdk.Output{}, ctx.Err()
	}}, identity.Aggregator)
	if err != nil {
		t.Fatal(err)
	}
	sayGo(t, s)
	waitFor(t, "it runs", ran)
	cancel()
	waitFor(t, "it has ended", ended)
}

func waitFor(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatal("not within a minute: ", what)
	}
}

func TestOnlyAggregatorsHaveProgramsRun(t *testing.T) {
	for _, role := range []identity.Role{identity.Agent, identity.Client} {
		o := &office{}
		s, _, err := ask(t, o, role)
		if err == nil {
			_, err = s.Recv()
		}
		if err == nil || !strings.Contains(err.Error(), "Unavailable") {
			t.Errorf("%s: %v", role, err)
		}
		select {
		case by := <-o.by:
			t.Errorf("%s was heard", by)
		default:
		}
	}
}
