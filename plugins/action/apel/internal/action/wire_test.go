package action

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// served is the action as the daemon sees it.
func served(t *testing.T) bursarv1.ActionPluginClient {
	t.Helper()
	listener, server := bufconn.Listen(1<<20), grpc.NewServer()
	sdk.RegisterAction(server, func() sdk.Action { return New() }, slog.New(slog.DiscardHandler))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return bursarv1.NewActionPluginClient(conn)
}

// wireNodes are a tree as it is handed over.
func wireNodes(in []hcl.Node) []*bursarv1.Node {
	var out []*bursarv1.Node
	for _, n := range in {
		one := &bursarv1.Node{Name: n.Name, Labels: n.Labels, Block: n.Block, Children: wireNodes(n.Children)}
		switch {
		case n.Expression != "":
			one.Labels = []string{n.Expression}
		case n.Value.Kind == hcl.KindString:
			one.Value = &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: n.Value.Str}}
		}
		out = append(out, one)
	}
	return out
}

func TestTheDaemonGetsAPlanOverTheWire(t *testing.T) {
	client := served(t)
	file, _ := hcl.Parse("a.hcl", []byte(strings.Replace(oneSite, "ids = [\"nemo\"]", "ids = \"nemo\"", 1)+"from = \"2026-08\"\ndirectory {\n  path = \""+t.TempDir()+"\"\n}\n"))
	tree, diags := hcl.EvaluateLater(file.Body, file.Context(), file.Sources, Record)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	r, err := client.Configure(t.Context(), &bursarv1.ConfigureRequest{Label: "egi", Config: &bursarv1.Node{Name: "config", Block: true, Children: wireNodes(tree.Nodes)}})
	if err != nil || len(r.GetDiagnostics()) > 0 {
		t.Fatal(r, err)
	}
	data := memory{records: []record.Record{job("1", "nemo", "2026-08-10T00:00:00Z", 60), job("2", "other", "2026-08-10T00:00:00Z", 60)}}
	stream, err := client.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	start := &bursarv1.PlanStart{Now: at("2026-08-20T00:00:00Z").UnixMicro()}
	if err := stream.Send(&bursarv1.ActionRequest{Message: &bursarv1.ActionRequest_Plan{Plan: start}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e := m.GetEffect(); e != nil {
			got = append(got, e.GetName())
		}
		if m.GetAsk() != nil {
			answer(t, stream, m.GetAsk(), &data)
		}
	}
	if !slices.Equal(got, []string{"site=UNI-EXAMPLE month=2026-08 sync", "site=UNI-EXAMPLE month=2026-08 summary"}) {
		t.Error(got)
	}
}

// answer answers a question about records, in one part.
func answer(t *testing.T, stream grpc.BidiStreamingClient[bursarv1.ActionRequest, bursarv1.ActionResponse], ask *bursarv1.Ask, data *memory) {
	t.Helper()
	target, err := url.Parse(ask.GetGet().GetTarget())
	if err != nil || target.Path != "/v1/records" {
		t.Fatal(ask, err)
	}
	var body []byte
	for r, err := range data.find(target.Query()) {
		if err != nil {
			t.Fatal(err)
		}
		body = append(wire.AppendV1JSON(body, &r, wire.V1Extra{}), '\n')
	}
	a := &bursarv1.Answer{Id: ask.GetId(), Data: body, Status: 200, Last: true}
	if err := stream.Send(&bursarv1.ActionRequest{Message: &bursarv1.ActionRequest_Answer{Answer: a}}); err != nil {
		t.Fatal(err)
	}
}
