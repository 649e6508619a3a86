//go:build e2e

package packages

import "strings"

// checkOperated does as root, while the node is stopped, what runbooks ask for:
// the daemon, which is another user, goes on with what is there.
func checkOperated(m *machine, records int) {
	m.t.Helper()
	m.mustRun("systemctl", "stop", "bursar")
	m.mustRun("bursar", "operator", "check")
	m.mustRun("bursar", "operator", "raft", "inspect", "/var/lib/bursar")
	m.mustRun("bursar", "operator", "recover", "-yes")
	if out := m.mustRun("find", "/var/lib/bursar", "!", "-user", "bursar"); strings.TrimSpace(out) != "" {
		m.t.Errorf("these are not the daemon's any more:\n%s", out)
	}
	m.mustRun("systemctl", "start", "bursar")
	awaitRecords(m, records)
}
