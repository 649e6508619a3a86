//go:build e2e

package packages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// mostCommands is how many commands an administrator runs on a machine, at most.
const mostCommands = 5

// fresh are the machines of a new site: three nodes and the head node of a real Slurm.
type fresh struct {
	t        *testing.T
	cluster  *rig.Cluster
	readme   string
	machines map[string]*machine
	count    map[string]int
	began    time.Time
}

// checkMinutes sets up three nodes and a head node by the lines of the README alone, and
// says how many commands and how long it took until the first job was counted.
func checkMinutes(t *testing.T, dir string, tool tool) {
	text, err := os.ReadFile(filepath.Join(site.Top(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fresh{t: t, cluster: rig.Slurm(t, rig.Host), readme: string(text), machines: map[string]*machine{}, count: map[string]int{}}
	f.boot(dir, tool)
	f.began = time.Now()
	manager := map[string]string{"rpm": "dnf install", "deb": "apt install"}[tool.format()]
	for _, name := range []string{"agg1", "agg2", "agg3"} {
		f.run(name, f.line(manager+` \./bursar[-_]\[0-9\]`))
	}
	f.run("head1", f.line(manager+` \./bursar-agent`))
	f.run("agg1", f.line("bursar init"))
	for _, name := range []string{"agg2", "agg3"} {
		f.run(name, f.printed("agg1", "bursar token create -role aggregator", "bursar init -join"))
	}
	f.run("head1", f.printed("agg1", "bursar token create -role agent", "bursar-agent join"))

	job := f.cluster.Submit(rig.Alice, "--wrap", "true", "-n", "2")
	for _, name := range []string{"agg1", "agg2", "agg3"} {
		m := f.machines[name]
		m.eventually("the job is counted", func() (bool, string) {
			out, err := m.runCommand("bursar", "records", "-ended", "-limit", "-1", "-format", "json")
			return err == nil && strings.Count(out, fmt.Sprintf(`-%s"`, job)) == 1, fmt.Sprint(out, err)
		})
	}
	t.Logf("%T: the first job of Slurm was counted on three nodes after %s; commands by machine: %v", tool, time.Since(f.began).Round(time.Second), f.count)
	for name, n := range f.count {
		if n > mostCommands {
			t.Errorf("%d commands on %s, want at most %d", n, name, mostCommands)
		}
	}
	for _, name := range []string{"agg1", "agg2", "agg3"} {
		m := f.machines[name]
		if state := m.property("bursar.service", "UnitFileState"); state != "enabled" {
			t.Errorf("bursar is %s on %s", state, name)
		}
		for path, want := range map[string]string{
			"/etc/bursar/ca": "bursar 700", "/etc/bursar/ca/ca.key": "bursar 600", "/etc/bursar/tls/aggregator/aggregator.key": "bursar 600",
			"/etc/bursar/aggregator.hcl": "root 640",
		} {
			if got := m.mustRun("stat", "-c", "%U %a", path); got != want {
				t.Errorf("%s on %s is %s, want %s", path, name, got, want)
			}
		}
	}
}

// line is the line of the README's code, without its comment, that begins as the pattern.
func (f *fresh) line(pattern string) string {
	f.t.Helper()
	found := regexp.MustCompile("(?m)(?:^|`)(" + pattern + "[^#`\n]*)").FindStringSubmatch(f.readme)
	if found == nil {
		f.t.Fatalf("README.md has no line %s", pattern)
	}
	return strings.TrimSpace(found[1])
}

// printed runs a line of the README that prints the command for another machine.
func (f *fresh) printed(name, line, want string) string {
	f.t.Helper()
	out := f.run(name, f.line(line))
	for l := range strings.Lines(out) {
		if strings.HasPrefix(l, want+" agg1.example.org:8443 ") {
			return strings.TrimSpace(l)
		}
	}
	f.t.Fatalf("%s printed %q, want a line %s", line, out, want)
	return ""
}

// run runs a command of an administrator, who says yes to what the package manager asks.
func (f *fresh) run(name, line string) string {
	f.t.Helper()
	f.count[name]++
	begun := time.Now()
	out := f.machines[name].mustRun("/bin/sh", "-c", "cd /packages/new && yes | "+line)
	f.t.Logf("%5.1f s, %s: %s", time.Since(begun).Seconds(), name, regexp.MustCompile(`b1_\S+`).ReplaceAllString(line, "b1_…"))
	return out
}

// boot starts the machines and connects them by a bridge in the network of Slurm, in which
// the head node is.
func (f *fresh) boot(dir string, tool tool) {
	f.t.Helper()
	hosts := "127.0.0.1 localhost rig\n10.99.0.1 head1.example.org head1\n"
	for i := range 3 {
		hosts += fmt.Sprintf("10.99.0.%d agg%d.example.org agg%[2]d\n", 11+i, i+1)
	}
	ip := func(pid int, args ...string) {
		f.t.Helper()
		out, err := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(pid), "--net", "ip"}, args...)...).CombinedOutput()
		if err != nil {
			f.t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	slurm := f.cluster.Init()
	ip(slurm, "link", "add", "br0", "type", "bridge")
	ip(slurm, "address", "add", "10.99.0.1/24", "dev", "br0")
	ip(slurm, "link", "set", "br0", "up")
	for i := range 3 {
		name, port := fmt.Sprintf("agg%d", i+1), fmt.Sprintf("port%d", i+1)
		m := startMachine(f.t, dir, 0)
		ip(slurm, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(m.pid))
		ip(slurm, "link", "set", port, "master", "br0", "up")
		ip(m.pid, "address", "add", fmt.Sprintf("10.99.0.%d/24", 11+i), "dev", "eth0")
		ip(m.pid, "link", "set", "eth0", "up")
		f.machines[name] = m
	}
	head := startMachine(f.t, dir, slurm)
	joinSlurm(f.t, head, f.cluster)
	head.mustRun("systemctl", "enable", "--now", "munge")
	f.machines["head1"] = head
	for name, m := range f.machines {
		m.writeFile("/etc/hosts", hosts)
		m.mustRun("hostname", name+".example.org")
		tool.prepare(m)
		if tool.format() == "rpm" {
			m.writeFile("/etc/dnf/vars/releasever", "9\n")
		}
	}
}
