package config_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/config"
)

func TestDial_AddressesOfAggregators_ListenOnlyIfAsked(t *testing.T) {
	const tls = " tls {\n ca = \"a\"\n cert = \"b\"\n key = \"c\"\n }\n"
	for _, c := range []struct{ agent, listen, want string }{
		{tls, "0.0.0.0:7070", ""},
		{tls + ` dial = ["agg1:8443", "agg2:8443"]`, "", ""},
		{tls + ` dial = ["agg1:8443"]` + "\n listen = \"127.0.0.1:1\"", "127.0.0.1:1", ""},
		{` dial = ["agg1:8443"]`, "", "dial without tls"},
		{tls + ` dial = ["agg1:8443", "agg1:8443"]`, "", "more than once"},
		{tls + ` dial = [":8443"]`, "", "cannot be connected to"},
	} {
		cfg, diags := config.Parse("a.hcl", []byte("agent {\n name = \"a\"\n"+c.agent+"\n}\n"))
		if got := diags.Error(); c.want == "" && diags.HasErrors() || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %q", c.agent, got, c.want)
		}
		if got := cfg.ListenAddress(); got != c.listen {
			t.Errorf("%s: listens on %q, want %q", c.agent, got, c.listen)
		}
	}
}
