//go:build e2e

package packages

import "strings"

// checkOperated does as root, while the node is stopped, what runbooks ask for:
// the daemon, which is another user, goes on with what is there.
func checkOperated(m *machine, records int) {
	m.t.Helper()
	m.must("systemctl", "stop", "bursar")
	m.must("bursar", "operator", "check")
	m.must("bursar", "operator", "raft", "inspect", "/var/lib/bursar")
	m.must("bursar", "operator", "recover", "-yes")
	if out := m.must("find", "/var/lib/bursar", "!", "-user", "bursar"); strings.TrimSpace(out) != "" {
		m.t.Errorf("these are not the daemon's any more:\n%s", out)
	}
	m.must("systemctl", "start", "bursar")
	awaitRecords(m, records)
}
