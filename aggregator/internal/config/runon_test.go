package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
)

func TestRunOnNamesAnAgentOfTheConfiguration(t *testing.T) {
	for on, want := range map[string]string{
		`agent.nemo-head1`:    "",
		`agent["nemo-head1"]`: "",
		`"nemo-head1"`:        "",
		`agent.nemo-head2`:    `a.hcl:11:12: invalid value for "run_on"; there is no block agent "nemo-head2" { … }; did you mean "nemo-head1"?`,
		`"other"`:             `there is no block agent "other" { … }; expected nemo-head1`,
		`agent`:               "expected agent.NAME",
		`agent.a.b`:           "expected agent.NAME",
		`""`:                  "leave it out",
		`7`:                   `invalid value for "run_on"`,
		`nemo-head1`:          "a.hcl:11:12",
	} {
		file := filepath.Join(t.TempDir(), "a.hcl")
		text := `aggregator {
  name     = "agg1"
  data_dir = "data"
  tls {
    ca   = "ca.pem"
    cert = "cert.pem"
    key  = "key.pem"
  }
}
action "exec" "mark" {
  run_on = ` + on + `
  config { command = ["/bin/x"] }
}
agent "nemo-head1" { address = "head1.example.org:7070" }
`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, diags := config.Load(file)
		if want != "" {
			if err := diags.Err(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", on, err)
			}
			continue
		}
		if err := diags.Err(); err != nil {
			t.Errorf("%s: %v", on, err)
			continue
		}
		shared, err := config.ReadShared(c.Shared())
		if err != nil || shared.Actions[0].RunOn != "nemo-head1" {
			t.Errorf("%s: %+v, %v", on, shared, err)
		}
	}
}
