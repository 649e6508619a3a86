//go:build e2e

// Package runbooks executes the commands of aggregator/RUNBOOKS.md, as they stand
// there, against real processes.
package runbooks

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// blocks returns the commands below a heading, block by block.
func blocks(t *testing.T, heading string) (list [][]string) {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "..", "aggregator", "RUNBOOKS.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(string(text), "\n## "+heading+" (executed)\n")
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

// follow executes a block on a node's machine: what the packages put into /etc and
// /var lies in the site's directory, and systemd is the test.
func (c *cluster) follow(block []string, g *site.Aggregator) {
	c.t.Helper()
	places := strings.NewReplacer("/etc/bursar/aggregator.hcl", g.Config, "/var/lib/bursar", g.DataDir, "/var/backups", c.site.Dir)
	for _, line := range block {
		switch line = strings.TrimSpace(line); line {
		case "":
		case "systemctl stop bursar":
			g.Kill()
		case "systemctl start bursar":
			g.Start()
			g.AwaitReady()
		default:
			if !strings.HasPrefix(line, "#") {
				c.sh(places.Replace(line), g)
			}
		}
	}
}

func (c *cluster) sh(line string, g *site.Aggregator) {
	c.t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = append(os.Environ(), "BURSAR_ADDR="+g.URL, fmt.Sprintf("PATH=%s:%s", c.site.Bin, os.Getenv("PATH")))
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v\n%s", line, err, out)
	}
}
