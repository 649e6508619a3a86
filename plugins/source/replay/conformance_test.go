package main

import (
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

func TestFileConforms(t *testing.T) {
	l := newLog(t)
	for i := range 20 {
		l.append(lineOf(strings.Repeat("x", i+1), i) + "garbage\n")
	}
	plugintest.Run(t, plugintest.Options{
		Source: func() sdk.Source { return newSource(time.Now) },
		Config: plugintest.Block("config", plugintest.Attr("path", l.path), plugintest.Attr("batch", 6)),
	})
}

func TestRecordedClusterConforms(t *testing.T) {
	plugintest.Run(t, plugintest.Options{
		Source: func() sdk.Source { return newSource(func() time.Time { return noon }) },
		Config: plugintest.Block("config", plugintest.Attr("recorded", true), plugintest.Attr("jobs", 5000)),
	})
}

func TestTheReadmeHasTheTableOfTheSettings(t *testing.T) {
	plugintest.Settings(t, new(settings))
}

func TestConfigurationProblemsNameTheirPlace(t *testing.T) {
	cases := []struct {
		name, want string
		attributes map[string]any
	}{
		{"no path", `"path" must be set`, nil},
		{"relative", "is not an absolute path", map[string]any{"path": "jobs"}},
		{"batch", "must be between 1 and 10000", map[string]any{"path": "/x", "batch": 0}},
		{"speed of a file", "set recorded = true", map[string]any{"path": "/x", "speed": 2}},
		{"path of the cluster", "has no file", map[string]any{"recorded": true, "path": "/x"}},
		{"speed", "must be between 0.01 and 100", map[string]any{"recorded": true, "speed": 1e9}},
		{"history", "must be at least 1h", map[string]any{"recorded": true, "history": "1m"}},
		{"slip", `did you mean "recorded"?`, map[string]any{"path": "/x", "recoded": true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := sdk.Node{Name: "config", IsBlock: true}
			for name, v := range c.attributes {
				root.Children = append(root.Children, sdk.Node{Name: name, Value: valueOf(v)})
			}
			err := newSource(time.Now).Configure(t.Context(), sdk.NewConfig("test", root))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not say %q", err, c.want)
			}
		})
	}
}

func valueOf(v any) sdk.Value {
	switch v := v.(type) {
	case string:
		return sdk.String(v)
	case int:
		return sdk.Int(int64(v))
	case float64:
		return sdk.Float(v)
	case bool:
		return sdk.Bool(v)
	}
	return sdk.Null()
}

// BenchmarkHistory is the back-fill of the recorded cluster over gRPC, with both
// sides in one process.
func BenchmarkHistory(b *testing.B) {
	client := plugintest.Serve(b, func() sdk.Source { return newSource(func() time.Time { return noon }) })
	config := plugintest.Block("config", plugintest.Attr("recorded", true))
	if _, err := client.Configure(b.Context(), &bursarv1.ConfigureRequest{Config: config}); err != nil {
		b.Fatal(err)
	}
	jobs := 0
	for b.Loop() {
		got, err := (&plugintest.Daemon{Client: client}).Collect(b.Context(), sdk.Start{})
		if err != nil {
			b.Fatal(err)
		}
		jobs += len(got.Jobs())
	}
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}
