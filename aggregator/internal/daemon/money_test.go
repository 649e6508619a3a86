package daemon_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
)

const priced = `
aggregator {
  name     = "agg1"
  data_dir = "data"
}
host_class "gpu" {
  pattern   = "^gpu"
  su_factor = 3
}
project "atlas" {
  groups = ["atlas", "aatlas"]
}
price "standard" {
  currency = "EUR"
  from     = "2026"
  per "Cores" { hour = "0.01" }
  per "Cores" {
    hour  = "0.04"
    class = "gpu"
  }
}
price "standard" {
  currency = "EUR"
  from     = "2026-03-01T12:00"
  per "Cores" { hour = "0.02" }
  per "Cores" {
    hour  = "0.04"
    class = "gpu"
  }
}
budget "atlas" {
  project = "atlas"
  from    = "2026"
  to      = "2126"
  amount  = %d
  unit    = "EUR"
}
budget "hours" {
  group  = "atlas"
  from   = "2026"
  to     = "2126"
  amount = 1000
  unit   = "core-hours"
}
`

// files are what a configuration says to the cluster.
func files(t *testing.T, text string) *clusterconfig.Document {
	t.Helper()
	name := filepath.Join(t.TempDir(), "aggregator.hcl")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, diags := config.Load(name)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return c.Shared()
}

func TestBudgetsOfTheConfigurationAreServedAndFollowIt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a, addr, stop := startOpen(t, daemon.Settings{Name: "agg1", DataDir: t.TempDir(), Plain: []net.Listener{l}, Log: slog.New(slog.DiscardHandler), Files: files(t, fmt.Sprintf(priced, 100))})
	defer stop()
	job := func(id, group, host, start, stop string) string {
		return fmt.Sprintf(`{"record_id":"%s","meta":{"group_id":["%s"],"host":["%s"],"user_id":["u"]},"components":[{"name":"Cores","amount":10,"scores":[]}],"start_time":"%s"%s}`, id, group, host, start, stop)
	}
	bulk := "[" + job("1", "atlas", "n1", "2026-03-01T00:00:00Z", `,"stop_time":"2026-03-02T00:00:00Z"`) + // 12 h × 0.1 + 12 h × 0.2
		"," + job("2", "aatlas", "gpu7", "2026-03-01T00:00:00Z", `,"stop_time":"2026-03-02T00:00:00Z"`) + // 24 h × 0.4
		"," + job("3", "cms", "gpu7", "2026-03-01T00:00:00Z", `,"stop_time":"2026-03-02T00:00:00Z"`) + "]"
	if status, got := call(t, "POST", addr+"/records", bulk); status != 200 {
		t.Fatal(status, got)
	}
	// A run that began an hour from now and may go on for an hour has reserved that hour.
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	open := fmt.Sprintf(`{"record_id":"4","meta":{"group_id":["atlas"],"host":["gpu1"],"user_id":["u"],"time_limit":["3600"]},"components":[{"name":"Cores","amount":10,"scores":[]}],"start_time":%q}`, soon)
	if status, got := call(t, "POST", addr+"/record", open); status != 200 {
		t.Fatal(status, got)
	}
	want := func(amount string) []string {
		return []string{
			"atlas " + amount + " EUR: used 13.2", "hours 1000 core-hours: used 240",
		}
	}
	served(t, addr, want("100"))
	a.SetFiles(files(t, fmt.Sprintf(priced, 200)))
	served(t, addr, want("200"))
	list := budgets(t, addr+"/v1/budgets")
	if list[0].Reserved != "0.4" || list[1].Reserved != "10" || list[0].Running != 1 {
		t.Errorf("%+v", list)
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, page := call(t, "GET", addr+"/metrics", "")
		if strings.Contains(page, `bursar_budget_used_ratio{budget="atlas"} 0.066`) && strings.Contains(page, `bursar_budget_left{budget="hours",unit="core-hours"} 7`) {
			break
		}
		if time.Now().After(end) {
			t.Fatal(page)
		}
	}
	status, got := call(t, "GET", addr+"/v1/usage?window=2026&by=project&measure=cost", "")
	if status != 200 {
		t.Error(status, got)
	}
}

type standing struct {
	Name, Unit             string
	Amount, Used, Reserved json.Number
	Running                int
}

// budgets asks for budgets.
func budgets(t *testing.T, url string) []standing {
	t.Helper()
	status, text := call(t, "GET", url, "")
	if status != 200 {
		t.Fatal(status, text)
	}
	var out struct{ Budgets []standing }
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out.Budgets
}

// served waits until the budgets are these.
func served(t *testing.T, addr string, want []string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var got []string
		for _, b := range budgets(t, addr+"/v1/budgets") {
			got = append(got, fmt.Sprintf("%s %s %s: used %s", b.Name, b.Amount, b.Unit, b.Used))
		}
		d := cmp.Diff(want, got)
		if d == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(d)
		}
	}
}
