package source

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/fakekube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// From the API server's answer to what the daemon gets, with the journal on disk: the
// back-fill of a cluster with ended pods, as a real API server writes them.
func BenchmarkBackfill(b *testing.B) {
	const pods = 5000
	line := bytes.Split(recorded(b, "watch-events.ndjson"), []byte("\n"))[2]
	_, object, found := bytes.Cut(line[:bytes.LastIndexByte(line, '}')], []byte(`"object":`))
	object, _, typed := bytes.Cut(object, []byte(`,"type":`))
	if !found || !typed {
		b.Fatalf("%s", line)
	}
	list := []byte(`{"metadata":{"resourceVersion":"9"},"items":[`)
	for i := range pods {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, bytes.ReplaceAll(object, []byte("caffda3f"), fmt.Appendf(nil, "%08x", i))...)
	}
	list = append(list, "]}"...)
	server := fakekube.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/pods" && !r.URL.Query().Has("watch") {
			_, _ = w.Write(list) // to a client that may be gone
			return
		}
		_, _ = w.Write([]byte(`{"metadata":{"resourceVersion":"9"},"items":[]}`))
	}))
	defer server.Close()
	config := server.Kubeconfig(b, "t")
	b.SetBytes(int64(len(list)))
	for b.Loop() {
		s := New(slog.New(slog.DiscardHandler))
		s.oneLook = true
		cfg := sdk.NewConfig("k8s", sdk.Node{IsBlock: true, Children: []sdk.Node{text("kubeconfig", config)}})
		cfg.DataDir = b.TempDir()
		if err := s.Configure(b.Context(), cfg); err != nil {
			b.Fatal(err)
		}
		n := 0
		if err := s.Collect(b.Context(), sdk.Start{}, sdk.NewStream(run.Attributes(), func(_ context.Context, batch sdk.Batch) error {
			n += len(batch.Jobs)
			return nil
		})); err != nil || n != pods {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.N)*pods/b.Elapsed().Seconds(), "pods/s")
}

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../kube/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
