package action

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// actor is an action whose methods are functions.
type actor struct {
	plan    func(context.Context, *sdk.Data) (sdk.Plan, error)
	execute func(context.Context, *sdk.World) sdk.Result
}

func (*actor) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{Type: "test", Version: "1", Class: sdk.ClassSet, Commands: "for this test"}
}

func (*actor) Configure(_ context.Context, cfg *sdk.Config) error {
	var settings struct {
		Number int `hcl:"number,optional"`
	}
	return cfg.Decode(&settings)
}

func (a *actor) Plan(ctx context.Context, _ sdk.PlanStart, d *sdk.Data) (sdk.Plan, error) {
	return a.plan(ctx, d)
}

func (a *actor) Execute(ctx context.Context, _ sdk.Attempt, w *sdk.World) sdk.Result {
	return a.execute(ctx, w)
}

// here is the process of a plugin that is none.
type here struct{}

func (here) Done() <-chan struct{} { return nil }
func (here) Err() error            { return nil }
func (here) Stale() bool           { return false }
func (here) Close() error          { return nil }
func (here) Hang(error)            {}
func (here) Kill() error           { return nil }

// connected is a session with an action over gRPC, whose data come from a handler.
func connected(t *testing.T, a sdk.Action, config *bursarv1.Node, data http.HandlerFunc) (*Session, error) {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(sdk.MaxMessage))
	sdk.RegisterAction(server, func() sdk.Action { return a }, slog.New(slog.DiscardHandler))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	conn, err := grpc.NewClient("passthrough:action",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(sdk.MaxMessage)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		<-served
	})
	client := bursarv1.NewActionPluginClient(conn)
	about, err := client.Describe(t.Context(), &bursarv1.DescribeActionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return NewSession(t.Context(), here{}, client, about, Spec{Config: config, Data: data, Programs: Local{Dev: true}})
}

func noConfig() *bursarv1.Node { return &bursarv1.Node{Name: "config", Block: true} }

func TestAPlanReadsAnswersOfAnySize(t *testing.T) {
	const size = 20 << 20 // more than a message may have
	s, err := connected(t, &actor{plan: func(ctx context.Context, d *sdk.Data) (sdk.Plan, error) {
		body, err := d.Get(ctx, "/large?x=1", "text/plain")
		if err != nil {
			return sdk.Plan{}, err
		}
		n, err := io.Copy(io.Discard, body)
		return sdk.Plan{Effects: []sdk.Effect{{Name: fmt.Sprint(n)}}, State: []byte("s"), Gauges: []sdk.Gauge{{Name: "g", Value: 1}}}, err
	}}, noConfig(), func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/large" || r.URL.RawQuery != "x=1" || r.Header.Get("Accept") != "text/plain" {
			http.Error(w, "another question was asked: "+r.URL.String(), http.StatusBadRequest)
			return
		}
		piece := []byte(strings.Repeat("x", 64<<10))
		for range size / len(piece) {
			_, _ = w.Write(piece)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan(t.Context(), sdk.PlanStart{Now: time.Now()})
	if err != nil || len(p.Effects) != 1 || p.Effects[0].Name != fmt.Sprint(size) || string(p.State) != "s" || len(p.Gauges) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAnAnswerThatBreaksIsAnErrorOfThePlan(t *testing.T) {
	s, err := connected(t, &actor{plan: func(ctx context.Context, d *sdk.Data) (sdk.Plan, error) {
		body, err := d.Get(ctx, "/x", "")
		if err != nil {
			return sdk.Plan{}, err
		}
		_, err = io.ReadAll(body)
		return sdk.Plan{}, err
	}}, noConfig(), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half"))
		panic(http.ErrAbortHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Plan(t.Context(), sdk.PlanStart{}); err == nil || !strings.Contains(err.Error(), "broken off") {
		t.Error(err)
	}
}

func TestAnAnswerThatIsLeftEndsItsHandler(t *testing.T) {
	ended := make(chan error, 1)
	s, err := connected(t, &actor{plan: func(ctx context.Context, d *sdk.Data) (sdk.Plan, error) {
		body, err := d.Get(ctx, "/endless", "")
		if err != nil {
			return sdk.Plan{}, err
		}
		return sdk.Plan{}, body.Close()
	}}, noConfig(), func(w http.ResponseWriter, r *http.Request) {
		piece := make([]byte, 64<<10)
		for r.Context().Err() == nil {
			_, _ = w.Write(piece)
		}
		ended <- r.Context().Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Plan(t.Context(), sdk.PlanStart{}); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestProgramsRunWithoutAShellAndAreKilledInTime(t *testing.T) {
	for _, x := range []struct {
		program sdk.Program
		want    string
	}{
		{sdk.Program{Arguments: []string{"/bin/sh", "-c", `read x; echo "$x $A"; echo no >&2; exit 3`}, Input: []byte("in\n"), Environment: map[string]string{"A": "b c"}}, `3 "in b c\n" "no\n" <nil>`},
		{sdk.Program{Arguments: []string{"/bin/sh", "-c", `kill -9 $$`}}, `137 "" "" <nil>`},
		{sdk.Program{Arguments: []string{"sh"}}, "not run"},
		{sdk.Program{Arguments: []string{"/no/such/program"}}, "not run"},
		{sdk.Program{}, "not run"},
		{sdk.Program{Arguments: []string{"/bin/sh", "-c", "sleep 1000 & wait"}, Timeout: 50 * time.Millisecond}, "killed"},
		{sdk.Program{Arguments: []string{"/bin/sh", "-c", "head -c 3000000 /dev/zero"}}, "1048576 bytes"},
	} {
		s, err := connected(t, &actor{execute: func(ctx context.Context, w *sdk.World) sdk.Result {
			out, err := w.Run(ctx, x.program)
			switch {
			case sdk.NotRun(err):
				return sdk.Result{Outcome: sdk.Retry, Message: "not run"}
			case len(out.Stdout) > 1000:
				return sdk.Result{Outcome: sdk.Done, Message: fmt.Sprint(len(out.Stdout), " bytes")}
			}
			return sdk.Result{Outcome: sdk.Done, Message: fmt.Sprintf("%d %q %q %v", out.Status, out.Stdout, out.Error, err)}
		}}, noConfig(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := s.Execute(t.Context(), sdk.Attempt{}); err != nil || !strings.Contains(r.Message, x.want) {
			t.Errorf("%q: %+v, %v; want %s", x.program.Arguments, r, err, x.want)
		}
	}
}

func TestAPlanMayNotRunPrograms(t *testing.T) {
	out := &parts{send: func(*bursarv1.ActionRequest) error { return nil }}
	var last *bursarv1.Answer
	out.send = func(m *bursarv1.ActionRequest) error {
		last = m.GetAnswer()
		return nil
	}
	(&call{}).answerRun(t.Context(), &bursarv1.Ask_Run{Arguments: []string{"/bin/true"}}, out)
	if last.GetKind() != sdk.NotRunKind || !strings.Contains(last.GetFailure(), "only Execute and Probe") {
		t.Error(last)
	}
}

func TestABadConfigurationIsToldWithItsPlace(t *testing.T) {
	config := noConfig()
	config.Children = []*bursarv1.Node{{Name: "numbr", Value: &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: 1}}, Range: &bursarv1.Range{File: "a.hcl", StartLine: 7, EndLine: 7}}}
	_, err := connected(t, &actor{}, config, nil)
	if err == nil || !strings.Contains(err.Error(), "a.hcl:7") || !strings.Contains(err.Error(), `did you mean "number"?`) {
		t.Error(err)
	}
}
