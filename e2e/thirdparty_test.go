//go:build e2e

package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

// brokenPlugin is a program that is no plugin.
const brokenPlugin = `package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	if os.Getenv("HOW") == "hang" {
		time.Sleep(time.Hour)
	}
	fmt.Fprintln(os.Stderr, "I cannot go on")
	os.Exit(3)
}
`

const thirdParty = `
plugin "action" "mail" {
  path   = %q
  sha256 = "%x"
}
plugin "action" "crasher" { env = { HOW = "crash" } }
plugin "action" "hanger" { env = { HOW = "hang" } }

action "mail" "usage" {
  schedule = "@manual"
  config {
    program = %q
    to      = "accounting@example.org"
  }
}
action "crasher" "x" { schedule = "1m" }
action "hanger" "x" { schedule = "1m" }
`

// thirdSite is a cluster of three whose plugins are in a folder of its own.
type thirdSite struct {
	t *testing.T
	*site.Site
	cluster *site.Cluster
	plugins string
	posted  int
}

func newThirdSite(t *testing.T) *thirdSite {
	t.Helper()
	x := &thirdSite{t: t, Site: site.New(t)}
	bin := filepath.Join(x.Dir, "bin")
	x.plugins = filepath.Join(bin, "plugins")
	if err := os.MkdirAll(x.plugins, 0o755); err != nil {
		t.Fatal(err)
	}
	x.copy(filepath.Join(x.Bin, "bursar"), filepath.Join(bin, "bursar"))
	x.Bin = bin
	x.cluster = x.Cluster(3, "")
	x.cluster.Start()
	return x
}

// copy copies a program.
func (x *thirdSite) copy(from, to string) {
	x.t.Helper()
	program, err := os.ReadFile(from)
	if err == nil {
		err = programtest.WriteProgram(to, program)
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// build builds a program in a module of its own, outside of the repository's, and
// returns where it is.
func (x *thirdSite) build(name, code string) string {
	x.t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		x.t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		x.t.Fatal(err)
	}
	const module = "github.com/bursar-accounting/bursar"
	dir := x.t.TempDir()
	own := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(string(mod), "module example.org/"+name)
	own += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %s\n", module, module, root)
	for file, text := range map[string]string{"go.mod": own, "main.go": code} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			x.t.Fatal(err)
		}
	}
	x.copy(filepath.Join(root, "go.sum"), filepath.Join(dir, "go.sum"))
	build := exec.Command("go", "build", "-mod=mod", "-o", name, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		x.t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, name)
}

// readmeAction is the whole plugin that the README of the SDK shows.
func readmeAction(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("../plugins/sdk/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```go\npackage main\n")
	code, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the README has no whole plugin")
	}
	return "package main\n" + code
}

// post posts n records of the month before the present one to a node.
func (x *thirdSite) post(g *site.Aggregator, n int) {
	x.t.Helper()
	now := time.Now().UTC()
	begin := time.Date(now.Year(), now.Month()-1, 2, 0, 0, 0, 0, time.UTC)
	for range n {
		x.posted++
		g.Post("/record", fmt.Sprintf(`{"record_id":"r%d","meta":{"group_id":["g"]},"components":[{"name":"Cores","amount":2,"scores":[]}],"start_time":%q,"stop_time":%q}`,
			x.posted, begin.Format(time.RFC3339), begin.Add(time.Hour).Format(time.RFC3339)))
	}
	g.AwaitRecords(int64(x.posted))
}

// listedAction is an action as a node lists it.
type listedAction struct {
	Type, Label, State string
	Configured         bool
	Disabled           *struct{ Why string }
	Last               *struct {
		Run, Done int
		Ended     *string
	}
}

// listActions returns the actions by their types.
func listActions(g *site.Aggregator) (map[string]listedAction, error) {
	var answer struct{ Actions []listedAction }
	err := g.Get("/v1/actions", &answer)
	out := map[string]listedAction{}
	for _, a := range answer.Actions {
		out[a.Type] = a
	}
	return out, err
}

// listed waits until a node lists the actions as they should be.
func (x *thirdSite) listed(g *site.Aggregator, what string, ok func(map[string]listedAction) bool) {
	x.t.Helper()
	x.Eventually(what, func() (bool, string) {
		all, err := listActions(g)
		return err == nil && ok(all), fmt.Sprintf("%+v %v", all, err)
	})
}

func TestThirdParty_ActionAddedByReload_RunsOnce(t *testing.T) {
	t.Parallel()
	x := newThirdSite(t)
	nodes := x.cluster.Nodes
	x.post(nodes[0], 3)
	mails := filepath.Join(x.Dir, "mails")
	program := x.Program("mail.sh", fmt.Sprintf("#!/bin/sh\n{ echo \"mail $*\"; cat; } >> %s\n", mails))
	x.install(program)
	for _, g := range nodes {
		x.listed(g, "the actions are listed", func(all map[string]listedAction) bool { // a node that is told by the leader has them before it has read its configuration
			return all["mail"].Configured && all["crasher"].Configured && all["hanger"].Configured
		})
	}
	if out, err := nodes[1].Bursar("actions", "run", "mail/usage"); err != nil {
		t.Fatal(out, err)
	}
	x.listed(nodes[2], "the mail is sent", func(all map[string]listedAction) bool {
		last := all["mail"].Last
		return last != nil && last.Ended != nil && last.Run == 1 && last.Done == 1
	})
	x.post(nodes[0], 20) // while others crash and hang
	x.listed(nodes[0], "the broken ones are disabled", func(all map[string]listedAction) bool {
		crasher, hanger := all["crasher"].Disabled, all["hanger"].Disabled
		return crasher != nil && strings.Contains(crasher.Why, "I cannot go on") && hanger != nil && strings.Contains(hanger.Why, "not ready within")
	})
	x.cluster.Leader().Kill()
	leader := x.cluster.Leader()
	x.post(leader, 3)
	x.listed(leader, "nothing is different under another leader", func(all map[string]listedAction) bool {
		return all["crasher"].State == "disabled" && all["hanger"].State == "disabled" && all["mail"].State == "healthy" && all["mail"].Last.Run == 1
	})
	text, err := os.ReadFile(mails)
	if want := "mail -s usage accounting@example.org\ng: 6 core-hours\n"; err != nil || string(text) != want {
		t.Errorf("%s, want %s; %v", text, want, err)
	}
	out, err := leader.Bursar("actions", "list")
	if err != nil || !strings.Contains(out, "mail/usage") || !strings.Contains(out, "disabled") {
		t.Error(out, err)
	}
}

// install copies plugins into the folder of the running nodes, adds their blocks, and
// reloads.
func (x *thirdSite) install(program string) {
	x.t.Helper()
	mail := filepath.Join(x.plugins, "bursar-action-mail")
	x.copy(x.build("mail", readmeAction(x.t)), mail)
	broken := x.build("broken", brokenPlugin)
	x.copy(broken, filepath.Join(x.plugins, "bursar-action-crasher"))
	x.copy(broken, filepath.Join(x.plugins, "bursar-action-hanger"))
	binary, err := os.ReadFile(mail)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, g := range x.cluster.Nodes {
		pid := g.PID()
		g.Add(fmt.Sprintf(thirdParty, mail, sha256.Sum256(binary), program))
		if err := g.Signal(syscall.SIGHUP); err != nil || g.PID() != pid {
			x.t.Fatal(err)
		}
	}
}
