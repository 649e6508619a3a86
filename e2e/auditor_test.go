//go:build e2e

package e2e_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestAuditorClient_Unmodified_Works(t *testing.T) {
	t.Parallel()
	python := rig.Python(t)
	s := site.New(t)
	agg := s.Aggregator()
	agg.Start()
	agg.AwaitReady()
	cert := s.Issue(identity.Identity{Role: identity.Client, Name: "tardis", Rights: identity.Read | identity.Write})
	for _, link := range []struct {
		name, url string
		tls       []string
	}{
		{"plain", agg.URL, nil},
		{"tls", agg.TLSURL, []string{cert.Cert, cert.Key, cert.CA}},
	} {
		for _, mode := range []string{"async", "blocking", "queued"} {
			t.Run(mode+" "+link.name, func(t *testing.T) {
				args := append([]string{"-W", "ignore", "testdata/auditor_client.py", mode, link.url, mode + "-" + link.name + "-", t.TempDir()}, link.tls...)
				out, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				t.Log(strings.TrimSpace(string(out)))
			})
		}
	}
	agg.Stop()
}
