package daemon

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

var update = flag.Bool("update", false, "rewrite the table of METRICS.md")

const (
	metricsFile = "../../METRICS.md"
	tableBegins = "<!-- the table begins; go test ./aggregator/internal/daemon -run Metric -update rewrites it -->\n"
	tableEnds   = "<!-- the table ends -->\n"
)

// exposed is a metric of a node.
type exposed struct{ kind, labels, help string }

// nodeMetrics are the metrics of a node, whether it has values for them or not,
// and the page that a running node answers.
func nodeMetrics(t *testing.T) (all map[string]exposed, page string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(Settings{
		Access: access.Rules{Plain: identity.Admin}, Name: "agg1", DataDir: t.TempDir(), MinFree: 1 << 20, Plain: []net.Listener{l}, Log: slog.New(slog.DiscardHandler),
		Keys:   identitytest.New(t).Keys(identity.Aggregator, "agg1"),
		Gauges: api.GaugeOptions{Site: "site_id", Group: "group_id", User: "user_id"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	all = described(a.registry)
	for _, path := range []string{"/v1/status", "/metrics"} {
		resp, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(path, resp.Status, err)
		}
		page = string(text)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return all, page
}

// described are the metrics that a registry knows of, without those of the Go
// runtime and of the process.
func described(registry *prometheus.Registry) map[string]exposed {
	descs := make(chan *prometheus.Desc, 1000)
	registry.Describe(descs)
	close(descs)
	all := map[string]exposed{}
	form := regexp.MustCompile(`fqName: "([^"]+)", help: "((?:[^"\\]|\\.)*)".*variableLabels: \{([^}]*)\}`)
	for d := range descs {
		m := form.FindStringSubmatch(d.String())
		if m == nil || strings.HasPrefix(m[1], "go_") || strings.HasPrefix(m[1], "process_") {
			continue
		}
		kind := "gauge"
		if strings.HasSuffix(m[1], "_total") {
			kind = "counter"
		}
		all[m[1]] = exposed{kind, m[3], m[2]}
	}
	return all
}

// unit is what a metric counts, by the end of its name.
func unit(name string) string {
	for _, u := range []struct{ end, unit string }{
		{"_timestamp_seconds", "seconds since 1970"}, {"_seconds", "seconds"}, {"_bytes_total", "bytes"}, {"_bytes", "bytes"}, {"_ratio", "0 to 1"}, {"_info", "1"},
	} {
		if strings.HasSuffix(name, u.end) {
			return u.unit
		}
	}
	return "–"
}

// table is the table of METRICS.md.
func table(all map[string]exposed) string {
	var b strings.Builder
	b.WriteString("| metric | labels | kind | unit | meaning |\n|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := all[name]
		labels := "–"
		if e.labels != "" {
			labels = strings.ReplaceAll(e.labels, ",", ", ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", name, labels, e.kind, unit(name), strings.ReplaceAll(e.help, "|", "\\|"))
	}
	return b.String()
}

func TestMetricsDocHasEveryMetricOfANode(t *testing.T) {
	all, page := nodeMetrics(t)
	for line := range strings.Lines(page) {
		words := strings.Fields(line)
		if len(words) != 4 || words[1] != "TYPE" || strings.HasPrefix(words[2], "go_") || strings.HasPrefix(words[2], "process_") || strings.HasPrefix(words[2], "promhttp_") {
			continue
		}
		e, ok := all[words[2]]
		if !ok {
			t.Errorf("a running node has %s, which is not described before", words[2])
		}
		e.kind = words[3]
		all[words[2]] = e
	}
	text, err := os.ReadFile(metricsFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegins)
	has, after, ends := strings.Cut(rest, tableEnds)
	if !ok || !ends {
		t.Fatal("METRICS.md has no table")
	}
	want := table(all)
	if *update {
		if err := os.WriteFile(metricsFile, []byte(before+tableBegins+want+tableEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	lines := strings.Split(has, "\n")
	for line := range strings.Lines(want) {
		if !slices.Contains(lines, strings.TrimSuffix(line, "\n")) {
			t.Errorf("METRICS.md has no line %s", line)
		}
	}
	if len(lines) != strings.Count(want, "\n")+1 {
		t.Error("METRICS.md has other metrics too; -update rewrites it")
	}
}
