//go:build e2e

package packages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// TestPackages builds the packages once for all that is tested of them.
func TestPackages(t *testing.T) {
	dir := made(t)
	makeSystemRPM(t, dir)
	t.Run("the same sources give the same bytes in another folder", func(t *testing.T) {
		t.Parallel()
		checkSame(t, dir)
	})
	for _, tool := range []tool{rpm{}, dnf{}, dpkg{}} {
		t.Run(fmt.Sprintf("%T installs, upgrades, downgrades and erases", tool)[len("packages."):], func(t *testing.T) {
			t.Parallel()
			life(t, dir, tool)
		})
	}
	t.Run("a job of a real Slurm is counted", func(t *testing.T) {
		t.Parallel()
		checkSlurm(t, dir)
	})
	for _, tool := range []tool{dnf{}, dpkg{}} {
		t.Run(fmt.Sprintf("%T: three nodes and a head node by the README's lines", tool)[len("packages."):], func(t *testing.T) {
			t.Parallel()
			checkMinutes(t, dir, tool)
		})
	}
}

// made is a folder with the packages in old and new. For work on this test it can be
// made before, and named by BURSAR_E2E_PACKAGES.
func made(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("BURSAR_E2E_PACKAGES"); dir != "" {
		return dir
	}
	dir := t.TempDir()
	place(t, buildPackages(t, site.Top()), filepath.Join(dir, "new")) // first: it makes the tools
	place(t, buildPrevious(t), filepath.Join(dir, "old"))
	return dir
}

func place(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// checkSame builds the packages again, elsewhere, and compares them.
func checkSame(t *testing.T, dir string) {
	name := packageFiles(t, filepath.Join(dir, "new"), "deb")["bursar"]
	version := regexp.MustCompile(`^bursar_(.*)-1_`).FindStringSubmatch(name)
	if version == nil {
		t.Fatal("no version in", name)
	}
	epoch := command(t, site.Top(), nil, "git", "log", "-1", "--format=%ct")
	again := buildPackages(t, copySources(t), "PACKAGE_VERSION="+version[1], "SOURCE_DATE_EPOCH="+epoch, "TZ=Asia/Tokyo", "USER=nobody")
	for _, format := range []string{"rpm", "deb"} {
		for name, file := range packageFiles(t, filepath.Join(dir, "new"), format) {
			first, err := os.ReadFile(filepath.Join(dir, "new", file))
			if err != nil {
				t.Fatal(err)
			}
			second, err := os.ReadFile(filepath.Join(again, file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, second) {
				t.Errorf("%s as %s is another at the second time", name, format)
			}
		}
	}
}

// at are the packages of a machine's /packages/old or new.
func at(t *testing.T, dir, age, format string) []string {
	t.Helper()
	var paths []string
	all := packageFiles(t, filepath.Join(dir, age), format)
	for _, name := range packageNames(t) {
		if file, ok := all[name]; ok {
			paths = append(paths, filepath.Join("/packages", age, file))
		}
	}
	return paths
}

// life is that of the packages on a machine: it begins with the old ones.
func life(t *testing.T, dir string, tool tool) {
	m := startMachine(t, dir, 0)
	older, newer := at(t, dir, "old", tool.format()), at(t, dir, "new", tool.format())
	tool.prepare(m)
	tool.install(m, older)
	checkInstalled(m)
	configure(m, replaySource)
	for _, unit := range []string{"bursar-agent", "bursar"} {
		m.mustRun("systemctl", "enable", "--now", unit)
	}
	awaitRecords(m, 1)

	before := agentVersion(m)
	tool.install(m, newer)
	after := agentVersion(m)
	if before == after {
		t.Errorf("the agent is %s after the upgrade too", after)
	}
	checkKept(m)
	checkUnits(m)
	checkReload(m)
	checkAction(m)
	records := awaitRecords(m, 1)
	checkOperated(m, records)

	tool.downgrade(m, older)
	if now := agentVersion(m); now != before {
		t.Errorf("the agent is %s after the downgrade to %s", now, before)
	}
	checkKept(m)
	awaitRecords(m, records)

	tool.install(m, newer)
	awaitRecords(m, records)
	checkRestarts(m)
	tool.erase(m)
	checkErased(m, tool)
}

// checkInstalled looks at what a new installation is like.
func checkInstalled(m *machine) {
	m.t.Helper()
	for path, want := range map[string]string{
		"/etc/bursar":                                     "755 root root",
		"/etc/bursar/agent.hcl":                           "640 root bursar-agent",
		"/etc/bursar/aggregator.hcl":                      "640 root bursar",
		"/var/lib/bursar":                                 "750 bursar bursar",
		"/var/lib/bursar-progress":                        "750 bursar bursar",
		"/var/backups/bursar":                             "750 bursar bursar",
		"/var/lib/bursar-agent":                           "750 bursar-agent bursar-agent",
		"/usr/bin/bursar":                                 "755 root root",
		"/usr/libexec/bursar/plugins":                     "755 root root",
		"/usr/libexec/bursar/plugins/bursar-source-slurm": "755 root root",
		"/usr/share/man/man8/bursar-agent.8.gz":           "644 root root",
		"/usr/share/man/man8/bursar-source-slurm.8.gz":    "644 root root",
		"/usr/share/man/man1/bursar.1.gz":                 "644 root root",
		"/usr/share/bash-completion/completions/bursar":   "644 root root",
	} {
		if got, err := m.runCommand("stat", "-c", "%a %U %G", path); strings.TrimSpace(got) != want {
			m.t.Errorf("%s is %q, not %q (%v)", path, strings.TrimSpace(got), want, err)
		}
	}
	for _, unit := range []string{"bursar-agent", "bursar"} {
		if state := m.property(unit+".service", "ActiveState"); state != "inactive" {
			m.t.Errorf("%s is %s before it was asked for", unit, state)
		}
	}
	m.mustRun("bursar-agent", "-check")
	m.mustRun("bursar", "aggregator", "-check")
}

const replaySource = `
source "replay" "lab" {
  interval = "1s"
  config {
    recorded = true
    jobs     = 200
  }
}
`

// configure is what an admin does: certificates and settings.
func configure(m *machine, source string) {
	m.t.Helper()
	m.mustRun("bursar", "tls", "ca", "create", "-dir", "/srv/ca")
	for _, d := range []struct{ role, name, group string }{{"agent", "head1", "bursar-agent"}, {"aggregator", "agg1", "bursar"}} {
		m.mustRun("bursar", "tls", "cert", "create", "-ca-dir", "/srv/ca", "-dir", "/srv/ca", "-role", d.role, "-name", d.name, "-host", "127.0.0.1")
		m.mustRun("install", "-o", "root", "-g", d.group, "-m", "0640", "/srv/ca/"+d.name+".key", "/etc/bursar/tls/")
		m.mustRun("install", "-m", "0644", "/srv/ca/ca.pem", "/srv/ca/"+d.name+".pem", "/etc/bursar/tls/")
	}
	tls := func(name string) string {
		return fmt.Sprintf("  tls {\n    ca = \"/etc/bursar/tls/ca.pem\"\n    cert = \"/etc/bursar/tls/%s.pem\"\n    key = \"/etc/bursar/tls/%[1]s.key\"\n  }\n", name)
	}
	m.writeFile("/etc/bursar/agent.hcl", "# the admin's own\nagent {\n  name = \"head1\"\n  listen = \"127.0.0.1:7070\"\n"+tls("head1")+"}\n"+source)
	m.writeFile("/etc/bursar/aggregator.hcl", "# the admin's own\naggregator {\n  name = \"agg1\"\n  data_dir = \"/var/lib/bursar\"\n  min_free = \"32MiB\"\n"+tls("agg1")+"}\nagent \"head1\" { address = \"127.0.0.1:7070\" }\n")
}

// awaitRecords waits until the aggregator has at least so many records, and both
// daemons run; it returns how many there are.
func awaitRecords(m *machine, least int) (count int) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("%d records", least), func() (bool, string) {
		out, err := m.runCommand("bursar", "records", "-limit", "-1", "-format", "csv")
		count = strings.Count(out, "\n") - 1
		return err == nil && count >= least, fmt.Sprint(count, err)
	})
	for _, unit := range []string{"bursar-agent", "bursar"} {
		if state := m.property(unit+".service", "ActiveState"); state != "active" {
			m.t.Errorf("%s is %s", unit, state)
		}
	}
	return count
}

// agentVersion is that of the agent that runs.
func agentVersion(m *machine) string {
	m.t.Helper()
	var status struct{ Version string }
	m.eventually("the agent answers", func() (bool, string) {
		out, err := m.runCommand("bursar-agent", "status", "-format", "json")
		return err == nil && json.Unmarshal([]byte(out), &status) == nil, out
	})
	return status.Version
}

// checkKept looks whether an upgrade has left alone what is the admin's.
func checkKept(m *machine) {
	m.t.Helper()
	for _, path := range []string{"/etc/bursar/agent.hcl", "/etc/bursar/aggregator.hcl"} {
		if text := m.readFile(path); !strings.HasPrefix(text, "# the admin's own\n") {
			m.t.Errorf("%s is not the admin's any more:\n%s", path, text)
		}
	}
	for _, unit := range []string{"bursar-agent", "bursar"} {
		if out, _ := m.runCommand("systemctl", "is-enabled", unit); strings.TrimSpace(out) != "enabled" {
			m.t.Errorf("%s is %s", unit, out)
		}
	}
}

// checkUnits verifies and scores the units on the machine.
func checkUnits(m *machine) {
	m.t.Helper()
	for unit, limit := range map[string]float64{"bursar.service": 1.5, "bursar-agent.service": 2} {
		if out, err := m.runCommand("systemd-analyze", "verify", "--man=no", "/usr/lib/systemd/system/"+unit); err != nil || strings.TrimSpace(out) != "" {
			m.t.Errorf("verify %s: %v %s", unit, err, out)
		}
		out := m.mustRun("systemd-analyze", "security", "--no-pager", unit)
		found := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindStringSubmatch(out)
		if found == nil {
			m.t.Fatalf("no score of %s in %s", unit, out)
		}
		score, err := strconv.ParseFloat(found[1], 64)
		if err != nil || score > limit {
			m.t.Errorf("%s is exposed by %s, more than %.1f\n%s", unit, found[1], limit, out)
		}
		m.t.Logf("systemd-analyze security %s: %s", unit, found[1])
	}
}

// checkReload changes the configuration for the better and for the worse.
func checkReload(m *machine) {
	m.t.Helper()
	for unit, path := range map[string]string{"bursar-agent": "/etc/bursar/agent.hcl", "bursar": "/etc/bursar/aggregator.hcl"} {
		good, pid := m.readFile(path), m.property(unit, "MainPID")
		m.mustRun("systemctl", "reload", unit)
		m.writeFile(path, good+"\nnonsense {}\n")
		if out, err := m.runCommand("systemctl", "reload", unit); err == nil {
			m.t.Errorf("the reload of %s takes nonsense: %s", unit, out)
		}
		m.writeFile(path, good)
		m.mustRun("systemctl", "reload", unit)
		m.eventually(unit+" is active", func() (bool, string) {
			state := m.property(unit, "ActiveState")
			return state == "active", state
		})
		if now := m.property(unit, "MainPID"); now != pid {
			m.t.Errorf("%s was started again by a reload", unit)
		}
	}
}

const packagedAction = `
action "exec" "packaged" {
  schedule = "@manual"
  config {
    command = ["/bin/echo", "it ran"]
  }
}
`

// checkAction lets the aggregator find the plugin of an action and run it.
func checkAction(m *machine) {
	m.t.Helper()
	const path = "/etc/bursar/aggregator.hcl"
	before := m.readFile(path)
	m.writeFile(path, before+packagedAction)
	m.mustRun("systemctl", "reload", "bursar")
	m.eventually("the action is there", func() (bool, string) {
		out, err := m.runCommand("bursar", "actions", "run", "exec/packaged")
		return err == nil, out
	})
	m.eventually("the action has run", func() (bool, string) {
		out, err := m.runCommand("bursar", "actions", "history", "exec/packaged", "1")
		return err == nil && strings.Contains(out, "it ran"), out
	})
	m.writeFile(path, before)
	m.mustRun("systemctl", "reload", "bursar")
}

// checkRestarts lets the daemons hang, and gives them a configuration that is
// refused.
func checkRestarts(m *machine) {
	m.t.Helper()
	for unit, path := range map[string]string{"bursar-agent": "/etc/bursar/agent.hcl", "bursar": "/etc/bursar/aggregator.hcl"} {
		m.writeFile("/run/systemd/system/"+unit+".service.d/soon.conf", "[Service]\nWatchdogSec=3\nRestartSec=100ms\nTimeoutAbortSec=1\n")
		m.mustRun("systemctl", "daemon-reload")
		m.mustRun("systemctl", "restart", unit)
		pid := m.property(unit, "MainPID")
		m.mustRun("kill", "-STOP", pid)
		m.eventually(unit+" is started again when it hangs", func() (bool, string) {
			now, state := m.property(unit, "MainPID"), m.property(unit, "ActiveState")
			return now != pid && now != "0" && state == "active", now + " " + state
		})
		good := m.readFile(path)
		m.writeFile(path, "nonsense {}\n")
		if out, err := m.runCommand("systemctl", "restart", unit); err == nil {
			m.t.Errorf("%s starts with nonsense: %s", unit, out)
		}
		if state, code := m.property(unit, "ActiveState"), m.property(unit, "ExecMainStatus"); state != "failed" || code != "78" {
			m.t.Errorf("%s is %s after exit code %s", unit, state, code)
		}
		m.writeFile(path, good)
		m.mustRun("rm", "-r", "/run/systemd/system/"+unit+".service.d")
		m.mustRun("systemctl", "daemon-reload")
		m.mustRun("systemctl", "restart", unit)
	}
}

// checkErased looks at what is left: the data, their owner, and what the admin wrote.
func checkErased(m *machine, tool tool) {
	m.t.Helper()
	for _, path := range []string{"/usr/bin/bursar", "/usr/bin/bursar-agent", "/usr/lib/systemd/system/bursar.service", "/usr/libexec/bursar/plugins"} {
		if _, err := os.Lstat(m.pathOf(path)); err == nil {
			m.t.Errorf("%s is still there", path)
		}
	}
	for _, path := range []string{"/var/lib/bursar-agent/buffer.db", "/var/lib/bursar/store", "/etc/bursar/tls/head1.key", "/etc/bursar/agent.hcl" + tool.saved()} {
		if _, err := os.Lstat(m.pathOf(path)); err != nil {
			m.t.Errorf("what should stay is gone: %v", err)
		}
	}
	for _, unit := range []string{"bursar-agent", "bursar"} {
		if state := m.property(unit+".service", "ActiveState"); state == "active" {
			m.t.Errorf("%s still runs", unit)
		}
		m.mustRun("id", unit)
	}
	if out, _ := m.runCommand("systemctl", "--failed", "--no-legend"); strings.TrimSpace(out) != "" {
		m.t.Errorf("failed: %s", out)
	}
}

// checkSlurm installs an agent on the head node of a real cluster.
func checkSlurm(t *testing.T, dir string) {
	c := rig.Slurm(t, rig.Host)
	m := startMachine(t, dir, c.Init())
	dpkg{}.install(m, at(t, dir, "new", "deb"))
	joinSlurm(t, m, c)
	configure(m, "source \"slurm\" \"rig\" {\n  interval = \"1s\"\n}\n")
	for _, unit := range []string{"munge", "bursar-agent", "bursar"} {
		m.mustRun("systemctl", "enable", "--now", unit)
	}
	for _, line := range [][]string{{"/usr/bin/squeue"}, {"/usr/bin/scontrol", "show", "nodes"}, {"/usr/bin/sacct", "-X"}, {"/usr/bin/munge", "-n"}} {
		confined(m, line)
	}
	job := c.Submit(rig.Alice, "--wrap", "sleep 1", "-n", "2")
	c.WaitState(job, "COMPLETED")
	m.eventually("the job is counted as Slurm counts it", func() (bool, string) {
		for _, run := range c.Runs() {
			if run.JobID == job {
				return counted(m, run)
			}
		}
		return false, "Slurm has no run of the job"
	})
}

// counted reports whether the aggregator has the run.
func counted(m *machine, run rig.Run) (bool, string) {
	m.t.Helper()
	out, err := m.runCommand("bursar", "records", "-ended", "-limit", "-1", "-format", "json")
	if err != nil {
		return false, err.Error()
	}
	for line := range strings.Lines(out) {
		r, err := wire.DecodeRecordJSON([]byte(line))
		if err != nil {
			m.t.Fatalf("%v in %s", err, line)
		}
		if r.ID != "rig-"+run.JobID {
			continue
		}
		cores := r.Component("Cores")
		same := cores != nil && cores.Amount == run.Cores && r.Start == record.Time(run.Start)*record.Second && r.Stop == record.Time(run.End)*record.Second
		return same, fmt.Sprintf("%s is not %+v", line, run)
	}
	return false, "no record yet"
}

// joinSlurm gives the machine what every head node has: slurm.conf and munge's key.
func joinSlurm(t *testing.T, m *machine, c *rig.Cluster) {
	t.Helper()
	conf, err := os.ReadFile(c.ConfPath())
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(c.Dir(), "munge/munge.key"))
	if err != nil {
		t.Fatal(err)
	}
	m.writeFile("/etc/slurm/slurm.conf", string(conf))
	m.writeFile("/etc/munge/munge.key", string(key))
	m.writeFile("/etc/hosts", "127.0.0.1 localhost rig\n")
	m.mustRun("chown", "munge:munge", "/etc/munge/munge.key")
	m.mustRun("chmod", "0400", "/etc/munge/munge.key")
	if _, err := m.runCommand("id", "slurm"); err != nil {
		m.mustRun("useradd", "-r", "-d", "/nonexistent", "-s", "/usr/sbin/nologin", "slurm")
	}
	m.mustRun("rm", "-f", "/etc/systemd/system/munge.service")
	m.mustRun("systemctl", "daemon-reload")
}

// confined runs a command as the agent's unit lets its plugins run one.
func confined(m *machine, line []string) {
	m.t.Helper()
	unit := m.readFile("/usr/lib/systemd/system/bursar-agent.service")
	for key, value := range map[string]string{"ExecStart": strings.Join(line, " "), "ExecReload": "", "Type": "oneshot", "Restart": "no", "WatchdogSec": "0", "RestartSec": "0", "StateDirectory": "probe"} {
		unit = regexp.MustCompile(`(?m)^`+key+`=.*$`).ReplaceAllLiteralString(unit, key+"="+value)
	}
	m.writeFile("/run/systemd/system/probe.service", unit)
	m.mustRun("systemctl", "daemon-reload")
	if _, err := m.runCommand("systemctl", "start", "probe"); err != nil {
		log, _ := m.runCommand("journalctl", "--no-pager", "-q", "-u", "probe", "-n", "10", "-o", "cat")
		m.t.Errorf("%s does not work in the agent's unit: %s", strings.Join(line, " "), log)
	}
}
