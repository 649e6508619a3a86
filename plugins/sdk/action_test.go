package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// actor is an action whose methods are functions.
type actor struct {
	plan    func(context.Context, sdk.PlanStart, *sdk.Data) (sdk.Plan, error)
	execute func(context.Context, sdk.Attempt, *sdk.World) sdk.Result
}

func (*actor) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{Type: "test", Version: "1", Class: sdk.ClassSet}
}

func (*actor) Configure(_ context.Context, cfg *sdk.Config) error { return cfg.Err() }

func (a *actor) Plan(ctx context.Context, s sdk.PlanStart, d *sdk.Data) (sdk.Plan, error) {
	return a.plan(ctx, s, d)
}

func (a *actor) Execute(ctx context.Context, t sdk.Attempt, w *sdk.World) sdk.Result {
	return a.execute(ctx, t, w)
}

// serveAction serves an action, which is configured.
func serveAction(t *testing.T, a sdk.Action) bursarv1.ActionPluginClient {
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
	if _, err := client.Configure(t.Context(), &bursarv1.ConfigureRequest{Config: &bursarv1.Node{Block: true}}); err != nil {
		t.Fatal(err)
	}
	return client
}

type actionStream = grpc.BidiStreamingClient[bursarv1.ActionRequest, bursarv1.ActionResponse]

// plan asks for a plan and answers each question with parts.
func plan(t *testing.T, client bursarv1.ActionPluginClient, answers func(*bursarv1.Ask) []*bursarv1.Answer) (effects []*bursarv1.Effect, p *bursarv1.Plan, err error) {
	t.Helper()
	stream, err := client.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return talk(t, stream, &bursarv1.ActionRequest{Message: &bursarv1.ActionRequest_Plan{Plan: &bursarv1.PlanStart{Now: 1_700_000_000_000_000, Arguments: map[string]string{"a": "b"}}}}, answers)
}

func talk(t *testing.T, stream actionStream, first *bursarv1.ActionRequest, answers func(*bursarv1.Ask) []*bursarv1.Answer) (effects []*bursarv1.Effect, p *bursarv1.Plan, err error) {
	t.Helper()
	if err := stream.Send(first); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := stream.Recv()
		switch {
		case err != nil:
			return effects, nil, err
		case m.GetPlan() != nil:
			return effects, m.GetPlan(), nil
		case m.GetEffect() != nil:
			effects = append(effects, m.GetEffect())
			continue
		}
		for _, a := range answers(m.GetAsk()) {
			a.Id = m.GetAsk().GetId()
			if err := stream.Send(&bursarv1.ActionRequest{Message: &bursarv1.ActionRequest_Answer{Answer: a}}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// body is an answer in parts of a few bytes.
func body(status int32, text string) (parts []*bursarv1.Answer) {
	for len(text) > 7 {
		parts = append(parts, &bursarv1.Answer{Status: status, Data: []byte(text[:7])})
		text, status = text[7:], 0
	}
	return append(parts, &bursarv1.Answer{Status: status, Data: []byte(text), Last: true})
}

func TestAPlanReadsUsageAndRecordsAndSendsItsEffects(t *testing.T) {
	const usage = `{"about":{}}
{"group":{"site_id":"a","vo":null},"others":0,"bucket":null,"from":"2026-01-01T00:00:00Z","to":"2026-02-01T00:00:00Z","measures":{"Cores":12.5,"cost":null}}
`
	const records = `{"record_id":"r1","meta":{},"components":[],"start_time":"2026-01-01T00:00:00.000000Z","stop_time":null,"runtime":null}
{"record_id":"r2","meta":{},"components":[],"start_time":"2026-01-01T00:00:00.000000Z","stop_time":null,"runtime":null}
`
	var asked []string
	answers := func(q *bursarv1.Ask) []*bursarv1.Answer {
		asked = append(asked, q.GetGet().GetTarget())
		switch {
		case strings.HasPrefix(q.GetGet().GetTarget(), "/v1/usage?"):
			return body(200, usage)
		case strings.HasPrefix(q.GetGet().GetTarget(), "/v1/records"):
			return body(200, records)
		}
		return body(403, `{"detail":"it takes the role admin"}`)
	}
	client := serveAction(t, &actor{plan: func(ctx context.Context, s sdk.PlanStart, d *sdk.Data) (sdk.Plan, error) {
		var out sdk.Plan
		for row, err := range d.Usage(ctx, &v1.UsageQuery{Window: "2026-01"}) {
			if err != nil {
				return out, err
			}
			if _, ok := row.Group["vo"]; ok || len(row.Measures) != 1 {
				return out, fmt.Errorf("what has no value is there: %+v", row)
			}
			out.Effects = append(out.Effects, sdk.Effect{Name: row.Group["site_id"], Payload: []byte(row.Measures["Cores"])})
		}
		for r, err := range d.Records(ctx, nil) {
			if err != nil {
				return out, err
			}
			out.Notes = append(out.Notes, r.ID)
		}
		_, err := d.Get(ctx, "/v1/config", "")
		if e, ok := errors.AsType[*sdk.ResponseError](err); !ok || e.Status != 403 || e.Detail != "it takes the role admin" {
			return out, fmt.Errorf("a refusal is %w", err)
		}
		out.State = []byte(s.Arguments["a"])
		return out, nil
	}})
	effects, p, err := plan(t, client, answers)
	if err != nil {
		t.Fatal(err)
	}
	if len(effects) != 1 || effects[0].GetName() != "a" || string(effects[0].GetPayload()) != "12.5" || string(p.GetState()) != "b" || strings.Join(p.GetNotes(), " ") != "r1 r2" {
		t.Errorf("%v, %v", effects, p)
	}
	if got := strings.Join(asked, " "); got != "/v1/usage?window=2026-01 /v1/records /v1/config" {
		t.Errorf("asked was %s", got)
	}
}

func TestAnAnswerThatIsBrokenOffIsNeverAShortOne(t *testing.T) {
	client := serveAction(t, &actor{plan: func(ctx context.Context, _ sdk.PlanStart, d *sdk.Data) (sdk.Plan, error) {
		b, err := d.Get(ctx, "/x", "")
		if err != nil {
			return sdk.Plan{}, err
		}
		_, err = io.ReadAll(b)
		return sdk.Plan{}, err
	}})
	_, _, err := plan(t, client, func(*bursarv1.Ask) []*bursarv1.Answer {
		return []*bursarv1.Answer{{Status: 200, Data: []byte("half")}, {Last: true, Failure: "the answer was broken off"}}
	})
	if err == nil || !strings.Contains(err.Error(), "the answer was broken off") {
		t.Error(err)
	}
}

func TestAnAnswerCanBeLeftAndTheNextQuestionAsked(t *testing.T) {
	client := serveAction(t, &actor{plan: func(ctx context.Context, _ sdk.PlanStart, d *sdk.Data) (sdk.Plan, error) {
		b, err := d.Get(ctx, "/first", "")
		if err != nil {
			return sdk.Plan{}, err
		}
		if _, err := d.Get(ctx, "/second", ""); !errors.Is(err, sdk.ErrOpen) {
			return sdk.Plan{}, fmt.Errorf("two answers at once: %w", err)
		}
		if err := b.Close(); err != nil {
			return sdk.Plan{}, err
		}
		b, err = d.Get(ctx, "/second", "")
		if err != nil {
			return sdk.Plan{}, err
		}
		text, err := io.ReadAll(b)
		return sdk.Plan{Notes: []string{string(text)}}, err
	}})
	_, p, err := plan(t, client, func(q *bursarv1.Ask) []*bursarv1.Answer {
		switch {
		case q.GetStop() != nil:
			return []*bursarv1.Answer{{Last: true, Failure: "stopped"}}
		case q.GetGet().GetTarget() == "/first":
			return []*bursarv1.Answer{{Status: 200, Data: []byte("much more would come")}}
		}
		return body(200, "the second")
	})
	if err != nil || len(p.GetNotes()) != 1 || p.GetNotes()[0] != "the second" {
		t.Error(p, err)
	}
}

// execute has an action do an effect, whose programs have the answers.
func execute(t *testing.T, do func(context.Context, sdk.Attempt, *sdk.World) sdk.Result, answers []*bursarv1.Answer) *bursarv1.Result {
	t.Helper()
	client := serveAction(t, &actor{execute: do})
	stream, err := client.Execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	start := &bursarv1.EffectStart{Effect: &bursarv1.Effect{Name: "e", Payload: []byte("p")}, Fence: 7, Attempt: 2, Key: "k"}
	if err := stream.Send(&bursarv1.ActionRequest{Message: &bursarv1.ActionRequest_Effect{Effect: start}}); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.GetResult() != nil {
			return m.GetResult()
		}
		for _, a := range answers {
			a.Id = m.GetAsk().GetId()
			if err := stream.Send(&bursarv1.ActionRequest{Message: &bursarv1.ActionRequest_Answer{Answer: a}}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAPanicLeavesAnEffectInDoubt(t *testing.T) {
	r := execute(t, func(context.Context, sdk.Attempt, *sdk.World) sdk.Result { panic("oh") }, nil)
	if r.GetOutcome() != bursarv1.Outcome_OUTCOME_UNKNOWN || !strings.Contains(r.GetMessage(), "oh") {
		t.Error(r)
	}
	r = execute(t, func(context.Context, sdk.Attempt, *sdk.World) sdk.Result { return sdk.Result{} }, nil)
	if r.GetOutcome() != bursarv1.Outcome_OUTCOME_UNKNOWN {
		t.Error(r)
	}
}

func TestAnEffectRunsAProgram(t *testing.T) {
	do := func(ctx context.Context, a sdk.Attempt, w *sdk.World) sdk.Result {
		if a.Fence != 7 || a.Number != 2 || a.Key != "k" || string(a.Effect.Payload) != "p" {
			return sdk.Result{Outcome: sdk.Rejected, Message: fmt.Sprintf("%+v", a)}
		}
		out, err := w.Run(ctx, sdk.Program{Arguments: []string{"/bin/x"}})
		switch {
		case sdk.NotRun(err):
			return sdk.Result{Outcome: sdk.Retry, Message: err.Error()}
		case err != nil:
			return sdk.Result{Outcome: sdk.Unknown, Message: err.Error()}
		}
		return sdk.Result{Outcome: sdk.Done, Message: fmt.Sprintf("%d %s %s", out.Status, out.Stdout, bytes.ToUpper(out.Error))}
	}
	for _, x := range []struct {
		answers []*bursarv1.Answer
		outcome bursarv1.Outcome
		message string
	}{
		{[]*bursarv1.Answer{{Status: 3, Data: []byte("out")}, {Errors: []byte("err"), Last: true}}, bursarv1.Outcome_OUTCOME_DONE, "3 out ERR"},
		{[]*bursarv1.Answer{{Failure: "no such file", Kind: sdk.NotRunKind, Last: true}}, bursarv1.Outcome_OUTCOME_RETRY, "no such file"},
		{[]*bursarv1.Answer{{Failure: "killed", Last: true}}, bursarv1.Outcome_OUTCOME_UNKNOWN, "killed"},
	} {
		if r := execute(t, do, x.answers); r.GetOutcome() != x.outcome || !strings.Contains(r.GetMessage(), x.message) {
			t.Errorf("%v, want %s %q", r, x.outcome, x.message)
		}
	}
}
