//go:build e2e

package faults_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/faults"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// Of three nodes two are killed: the last one has no figures, and says what it knows.
func TestCluster_MajorityKilled_OverviewSaysWhatToDo(t *testing.T) {
	s := faults.NewSite(t, faults.Plan{Nodes: 3, Agents: 1, Seed: *seed})
	faults.NewCampaign(t, s, *seed).Begin()
	s.Leader()
	left, dead := s.Nodes[0], s.Nodes[1:]
	for _, node := range dead {
		node.Kill()
	}
	client := site.Local(left.Data)
	s.Eventually("the overview of an outage", func() (bool, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/ui/overview", nil)
		if err != nil {
			return false, err.Error()
		}
		resp, err := client.Do(req)
		if err != nil {
			return false, err.Error()
		}
		defer func() { _ = resp.Body.Close() }() // it was read
		page, err := io.ReadAll(resp.Body)
		ok := err == nil && resp.StatusCode == http.StatusServiceUnavailable
		for _, want := range []string{"no leader", "unreachable", dead[0].Name, dead[1].Name, `href="/ui/cluster"`, "since "} {
			ok = ok && strings.Contains(string(page), want)
		}
		return ok, fmt.Sprint(resp.StatusCode, err, string(page))
	})
	for _, node := range dead {
		node.Start()
	}
	s.Eventually("the figures", func() (bool, string) {
		resp, err := client.Get("http://localhost/ui/overview")
		if err != nil {
			return false, err.Error()
		}
		defer func() { _ = resp.Body.Close() }() // only its status counts
		return resp.StatusCode == http.StatusOK, resp.Status
	})
}
