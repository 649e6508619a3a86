//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// testdata/earlier is what a node of November 2026 left when it was killed: the log with 61
// posted records and a configuration that was committed as blocks, its files, and what it
// answered to bursar usage.
func TestFolder_OfAnEarlierReleaseThatWasKilled_AnswersTheSameAndGoesOn(t *testing.T) {
	s := site.New(t)
	if out, err := exec.CommandContext(t.Context(), "tar", "xzf", "testdata/earlier/agg1.tar.gz", "-C", s.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	shared := read(t, "testdata/earlier/shared.hcl")
	g := s.Node(site.NodeSpec{DataDir: s.Dir + "/agg1", Blocks: shared})
	g.Start()
	g.AwaitReady()
	g.AwaitRecords(61)
	usage := func() string {
		out, err := g.Bursar("usage", "-window", "2026", "-by", "project,host_class", "-measure", "Cores,cost,su,records", "-format", "csv")
		if err != nil {
			t.Fatal(out, err)
		}
		return out
	}
	if got, want := usage(), read(t, "testdata/earlier/usage.csv"); got != want {
		t.Errorf("usage\n%swant\n%s", got, want)
	}
	// An edit is committed in the form of today, and the folder stays whole when this
	// release is killed in its turn.
	g.Blocks = strings.Replace(shared, `hour = "0.010"`, `hour = "0.020"`, 1)
	g.Configure()
	if out, err := g.Bursar("config", "commit", "-config", g.Config); err != nil {
		t.Fatal(out, err)
	}
	s.Eventually("twice the price", func() (bool, string) {
		out := usage()
		return strings.Contains(out, ",13.78,") && strings.Contains(out, ",4.88,"), out
	})
	g.Post("/record", `{"record_id":"new","meta":{},"components":[],"start_time":"2026-01-01T00:00:00Z","stop_time":"2026-01-01T01:00:00Z"}`)
	g.Kill()
	g.Start()
	g.AwaitReady()
	g.AwaitRecords(62)
	resp, err := site.Local(g.DataDir).Get("http://localhost/v1/config")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var config struct{ Document struct{ Format int } }
	if err := json.NewDecoder(resp.Body).Decode(&config); err != nil || config.Document.Format != 3 {
		t.Errorf("the configuration has format %d, want 3: %v", config.Document.Format, err)
	}
	if out, err := g.Bursar("status"); err != nil {
		t.Error(out, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
