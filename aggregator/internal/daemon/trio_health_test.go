package daemon_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// verdict is what a test looks at in /v1/status.
type verdict struct {
	State     string
	Confirmed bool
	Findings  []struct{ ID, About, Do string }
	Nodes     []struct {
		Name, Role, Version string
		Heard, Voter        bool
		DiskSize            uint64 `json:"disk_size_bytes"`
	}
}

// judges waits until a node gives a verdict that is right.
func (s *site) judges(name, what string, right func(v verdict) bool) {
	s.t.Helper()
	s.until(name+" says that "+what, func() error {
		status, _, answer, err := s.request(name, "GET", "/v1/status", "")
		if err != nil || status != 200 {
			return fmt.Errorf("%d %s %w", status, answer, err)
		}
		var v verdict
		if err := json.Unmarshal([]byte(answer), &v); err != nil {
			return err
		}
		if !right(v) {
			return fmt.Errorf("%s", answer)
		}
		return nil
	})
}

// well reports whether nothing is wrong but the disk of the machine that tests.
func (v verdict) well() bool {
	return v.Confirmed && !slices.ContainsFunc(v.Findings, func(f struct{ ID, About, Do string }) bool { return !strings.HasPrefix(f.ID, "disk-") })
}

// finds reports whether a verdict has a finding.
func (v verdict) finds(id, about string) bool {
	return slices.ContainsFunc(v.Findings, func(f struct{ ID, About, Do string }) bool { return f.ID == id && f.About == about && f.Do != "" })
}

func TestEveryNodeSaysHowTheClusterIs(t *testing.T) {
	t.Parallel()
	names := []string{"agg1", "agg2", "agg3"}
	s := newSite(t, names...)
	s.start(names...)
	for _, name := range names {
		s.judges(name, "all is well", func(v verdict) bool {
			leaders := 0
			for _, n := range v.Nodes {
				if n.Role == "leader" {
					leaders++
				}
				if !n.Heard || !n.Voter || n.DiskSize == 0 || !slices.Contains(names, n.Name) {
					return false
				}
			}
			return v.well() && len(v.Nodes) == 3 && leaders == 1
		})
	}
	s.stop("agg3")
	for _, name := range names[:2] {
		s.judges(name, "agg3 is not heard", func(v verdict) bool { return v.State == "failing" && v.finds("node-silent", "agg3") })
	}
	s.stop("agg2")
	s.judges("agg1", "no leader", func(v verdict) bool { return !v.Confirmed && v.finds("no-leader", "") })
}
