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

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

const acting = `
aggregator {
  name     = "agg1"
  data_dir = "data"
}
action "exec" "mark" {
  schedule = "@manual"
  config {
    command = ["/bin/sh", %q]
    input   = "usage"
    env     = { TARGET = %q }
    usage {
      window  = "2023"
      by      = ["site_id"]
      measure = ["Cores"]
      unit    = "hour"
    }
  }
}
`

// acts are the settings of a node with a configuration whose plugins, of these types, are
// built.
func acts(t *testing.T, text string, types ...string) daemon.Settings {
	t.Helper()
	bin, programs := t.TempDir(), map[string]string{}
	for _, typ := range types {
		programs["bursar-action-"+typ] = "plugins/action/" + typ
	}
	if err := programtest.Build(bin, programs); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "aggregator.hcl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	conf, _, diags := config.Load(file)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return daemon.Settings{
		Name: "agg1", DataDir: t.TempDir(), MinFree: 1 << 20, Plain: []net.Listener{listen(t)}, Files: conf.Shared(), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Actions: daemon.Actions{Local: conf.LocalActions(), Plugins: conf.ActionPlugins(), Dirs: []string{bin}, Dev: true},
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

type jsonActions struct {
	Actions []struct {
		State   string `json:"state"`
		Problem *struct {
			Why string `json:"why"`
		} `json:"problem"`
		Last *struct {
			Run     int     `json:"run"`
			Ended   *string `json:"ended"`
			Effects int     `json:"effects"`
			Done    int     `json:"done"`
		} `json:"last"`
	} `json:"actions"`
}

// await asks until what is wanted is there.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within a minute: ", what)
		}
	}
}

func TestAnActionIsPlannedCarriedOutOnceAndListed(t *testing.T) {
	dir := t.TempDir()
	script, target := filepath.Join(dir, "mark.sh"), filepath.Join(dir, "target")
	if err := programtest.WriteProgram(script, "cat >> $TARGET; echo \" $BURSAR_KEY\" >> $TARGET; echo fine\n"); err != nil {
		t.Fatal(err)
	}
	addr, stop := startWith(t, acts(t, fmt.Sprintf(acting, script, target), "exec"))
	defer stop()
	const rec = `{"record_id":"r1","meta":{"site_id":["a"]},"components":[{"name":"Cores","amount":8,"scores":[]}],"start_time":"2023-02-24T00:00:00Z","stop_time":"2023-02-24T02:00:00Z"}`
	if status, got := call(t, "POST", addr+"/record", rec); status != 200 {
		t.Fatal(status, got)
	}
	var status int
	var got string
	await(t, "the configuration is obeyed", func() bool {
		status, got = call(t, "POST", addr+"/v1/actions/exec/mark:plan", "")
		return status != 404
	})
	if status != 200 || !strings.Contains(got, `run the program with 1 rows of usage`) {
		t.Fatal("the plan: ", status, got)
	}
	if _, err := os.Stat(target); err == nil {
		t.Fatal("a plan did something")
	}
	if status, got := call(t, "POST", addr+"/v1/actions/exec/mark:run", `{"arguments":{"why":"test"}}`); status != 202 {
		t.Fatal("the order: ", status, got)
	}
	var list jsonActions
	await(t, "the run has ended", func() bool {
		status, got := call(t, "GET", addr+"/v1/actions", "")
		list = jsonActions{}
		if err := json.Unmarshal([]byte(got), &list); err != nil || status != 200 || len(list.Actions) != 1 {
			t.Fatal(status, got, err)
		}
		if p := list.Actions[0].Problem; p != nil {
			t.Fatal(p.Why)
		}
		return list.Actions[0].Last != nil && list.Actions[0].Last.Ended != nil
	})
	if a := list.Actions[0]; a.State != "healthy" || a.Last.Done != 1 || a.Last.Effects != 1 {
		t.Errorf("listed as %+v, last %+v", a, a.Last)
	}
	text, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); strings.Count(s, "\n") != 1 || !strings.Contains(s, `"group":{"site_id":"a"}`) || !strings.Contains(s, `"Cores":16`) {
		t.Errorf("the program got %q", text)
	}
	status, got = call(t, "GET", addr+"/v1/actions/exec/mark/runs/1", "")
	if status != 200 || !strings.Contains(got, `"outcome":"done","message":"fine"`) || !strings.Contains(got, `"fence":`) {
		t.Errorf("the ledger: %d %s", status, got)
	}
}
