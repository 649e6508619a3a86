package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
)

func TestAgent_AddressOrDialsIn_ExactlyOneIsAccepted(t *testing.T) {
	for agent, want := range map[string]string{
		`address = "head1:7070"`: "",
		`dials_in = true`:        "",
		`dials_in = false`:       "no address",
		``:                       "no address",
		"address = \"head1:7070\"\n dials_in = true": "both address and dials_in",
		`address = ":7070"`:                          "cannot be connected to",
	} {
		for _, listen := range []string{`tls_listen = ["127.0.0.1:8443"]`, ``} {
			name := t.TempDir() + "/a.hcl"
			err := os.WriteFile(name, []byte("aggregator {\n name = \"agg1\"\n data_dir = \"d\"\n tls {\n ca = \"a\"\n cert = \"b\"\n key = \"c\"\n }\n api {\n "+listen+"\n }\n}\nagent \"head1\" {\n "+agent+"\n}\n"), 0o600)
			if err != nil {
				t.Fatal(err)
			}
			_, _, diags := config.LoadOffline(name)
			expect := want
			if strings.Contains(agent, "dials_in = true") && listen == "" && want == "" {
				expect = "agents cannot dial in"
			}
			if got := diags.Error(); expect == "" && diags.HasErrors() || !strings.Contains(got, expect) {
				t.Errorf("%q with %q: %s, want %q", agent, listen, got, expect)
			}
		}
	}
}
