//go:build e2e

// Package runbooks executes the commands of aggregator/RUNBOOKS.md, as they stand
// there, against real processes.
package runbooks

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// readRunbooks returns the runbooks.
func readRunbooks(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(site.Top(), "aggregator", "RUNBOOKS.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// executed marks the heading of a runbook that a test executes.
const executed = " (executed)"

// commandBlocks returns the commands below a heading, block by block.
func commandBlocks(t *testing.T, heading string) (list [][]string) {
	t.Helper()
	_, body, found := strings.Cut(readRunbooks(t), "\n## "+heading+executed+"\n")
	if !found {
		t.Fatalf("there is no runbook %q that is executed", heading)
	}
	body, _, _ = strings.Cut(body, "\n## ")
	for i, part := range strings.Split(body, "```") {
		if i%2 == 1 {
			list = append(list, strings.Split(strings.TrimPrefix(part, "sh\n"), "\n"))
		}
	}
	if len(list) == 0 {
		t.Fatalf("the runbook %q has no commands", heading)
	}
	return list
}

// putValue gives what stands for something in a block its value.
func putValue(block []string, name, value string) []string {
	return strings.Split(strings.ReplaceAll(strings.Join(block, "\n"), name, value), "\n")
}

// runBlock executes a block, line by line, on the machines of all these nodes at
// once: what the packages put into /etc and /var lies in the site's directory, and
// systemd is the test. It returns what was printed.
func (c *cluster) runBlock(block []string, nodes ...*site.Aggregator) (printed string) {
	c.t.Helper()
	for _, line := range block {
		line = strings.TrimSpace(line)
		for _, g := range nodes {
			switch {
			case line == "", strings.HasPrefix(line, "#"), line == "systemctl start bursar":
			case line == "systemctl stop bursar-agent":
				c.agent.Stop()
			case line == "systemctl start bursar-agent":
				c.agent.Start()
			case line == "systemctl stop bursar":
				c.stopNode(g)
			default:
				printed += c.runCommand(line, g)
			}
		}
		if line == "systemctl start bursar" {
			site.Start(nodes...)
		}
	}
	return printed
}

// stopNode ends a node in order, unless it has ended.
func (c *cluster) stopNode(g *site.Aggregator) {
	c.t.Helper()
	if !g.Ended() {
		if err := g.Terminate(site.Patience); err != nil {
			c.t.Fatal(err)
		}
	}
	g.Kill()
}

// runCommand executes a command on a node's machine and returns what it printed. Exit code
// 2 says that it worked and found something.
func (c *cluster) runCommand(line string, g *site.Aggregator) string {
	c.t.Helper()
	cmd := exec.Command("sh", "-c", c.placePaths(line, g))
	cmd.Env = append(os.Environ(), "BURSAR_ADDR="+g.Admin(), fmt.Sprintf("PATH=%s:%s", c.site.Bin, os.Getenv("PATH")))
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != 2 {
		c.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// placePaths puts a command where the site's files are.
func (c *cluster) placePaths(line string, g *site.Aggregator) string {
	if strings.HasPrefix(line, "bursar-agent ") {
		return line + " -config " + c.agent.Config
	}
	return strings.NewReplacer(
		"/etc/bursar/aggregator.hcl", g.Config, "/var/lib/bursar-agent", c.agent.DataDir, "/var/lib/bursar", g.DataDir, "/var/backups", c.site.Dir,
		"/run/bursar/api.sock", filepath.Join(g.DataDir, "api.sock"),
	).Replace(line)
}
