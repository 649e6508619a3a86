//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/join"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// founding is a cluster that is set up by the commands for that, on loopback addresses.
type founding struct {
	t    *testing.T
	site *site.Site
	path string // of the commands
}

// machine is the folder, and the addresses, of a node.
type machine struct {
	name, dir, api, raft, plain string
	daemon                      *site.Daemon
}

func (f *founding) machine(name string) *machine {
	m := &machine{name: name, dir: filepath.Join(f.site.Dir, name), api: f.site.Address(), raft: f.site.Address(), plain: f.site.Address()}
	m.daemon = f.site.Daemon(name, "bursar", "aggregator", "-config", filepath.Join(m.dir, "aggregator.hcl"))
	return m
}

// command is one of the programs, with the schedulers of the test on its path.
func (f *founding) command(ctx context.Context, program string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, filepath.Join(f.site.Bin, program), args...)
	cmd.Env = append(os.Environ(), "PATH="+f.path)
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, time.Minute
	return cmd, out
}

func (f *founding) run(program string, args ...string) (string, error) {
	cmd, out := f.command(f.t.Context(), program, args...)
	err := cmd.Run()
	return out.String(), err
}

func (f *founding) must(program string, args ...string) string {
	f.t.Helper()
	out, err := f.run(program, args...)
	if err != nil {
		f.t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return out
}

// killed runs a command a few times, killed at a moment of chance, and then to its end.
func (f *founding) killed(program string, args ...string) string {
	f.t.Helper()
	for range 6 {
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Duration(rand.IntN(150))*time.Millisecond)
		cmd, _ := f.command(ctx, program, args...) // the end of ctx kills it
		_ = cmd.Run()
		cancel()
	}
	return f.must(program, args...)
}

// init are the arguments by which a node is set up.
func (m *machine) init(more ...string) []string {
	return append([]string{
		"init", "-name", m.name, "-config-dir", m.dir, "-data-dir", filepath.Join(m.dir, "data"), "-user", "root", "-no-start",
		"-address", m.api, "-raft", m.raft, "-plain", m.plain,
	}, more...)
}

// bursar runs the operator's command on the node.
func (f *founding) bursar(m *machine, args ...string) (string, error) {
	return f.run("bursar", append(args, "-address", "unix:"+filepath.Join(m.dir, "data", "api.sock"))...)
}

// start starts a node and waits until there is a leader, and that many nodes have a vote.
func (f *founding) start(m *machine, voters int) {
	f.t.Helper()
	m.daemon.Start()
	f.site.Eventually(fmt.Sprintf("%d nodes have a vote", voters), func() (bool, string) {
		out, err := f.bursar(m, "operator", "raft", "list-peers", "-format", "json")
		return err == nil && strings.Count(out, `"voter": true`) == voters && strings.Contains(out, `"leader": true`), out
	})
}

// token returns the last two words of the line that a node prints: where to join, and the token.
func (f *founding) token(m *machine, args ...string) (host, token string) {
	f.t.Helper()
	var line string
	f.site.Eventually("a token is made", func() (bool, string) {
		out, err := f.bursar(m, append([]string{"token", "create"}, args...)...)
		line, _, _ = strings.Cut(out, "\n")
		return err == nil, out
	})
	words := strings.Fields(strings.ReplaceAll(line, "-token ", ""))
	return words[len(words)-2], words[len(words)-1]
}

// join are the arguments by which the agent of a head node joins.
func (f *founding) join(name, host, token string) []string {
	dir := filepath.Join(f.site.Dir, name)
	return []string{
		"join", host, token, "-config", filepath.Join(dir, "agent.hcl"), "-data-dir", filepath.Join(dir, "data"),
		"-name", name, "-address", f.site.Address(), "-user", "root", "-no-start",
	}
}

func newFounding(t *testing.T) *founding {
	t.Helper()
	return &founding{t: t, site: site.New(t), path: os.Getenv("PATH")}
}

func TestSetUp_ByInitAndJoinThroughKills_CountsJobsOfSlurm(t *testing.T) {
	t.Parallel()
	c := rig.Slurm(t, rig.Host)
	f := newFounding(t)
	f.path = c.BinDir() + ":" + f.path
	first := f.machine("agg1")
	f.killed("bursar", first.init()...)
	f.start(first, 1)
	nodes := []*machine{first}
	for _, name := range []string{"agg2", "agg3"} {
		m := f.machine(name)
		host, token := f.token(first, "-role", "aggregator")
		f.killed("bursar", m.init("-join", host, "-token", token)...)
		f.start(m, len(nodes)+1)
		nodes = append(nodes, m)
	}
	host, token := f.token(nodes[1], "-role", "agent")
	args := f.join("head1", host, token)
	out := f.killed("bursar-agent", args...)
	config := filepath.Join(f.site.Dir, "head1", "agent.hcl")
	if text, err := os.ReadFile(config); err != nil || !strings.Contains(string(text), `source "slurm" "`) || !strings.Contains(string(text), c.SacctPath()) {
		t.Fatalf("the scheduler was not found: %v\n%s\n%s", err, text, out)
	}
	f.site.Daemon("head1", "bursar-agent", "-dev", "-config", config).Start()
	job := c.Submit(rig.Alice, "--wrap", "sleep 1", "-n", "2")
	c.WaitState(job, "COMPLETED")
	for _, m := range nodes {
		f.site.Eventually("the job is counted at "+m.name, func() (bool, string) {
			out, err := f.bursar(m, "records", "-ended", "-limit", "-1", "-format", "json")
			return err == nil && strings.Count(out, fmt.Sprintf(`-%s"`, job)) == 1, out
		})
	}
}

func TestJoin_DialIn_NamesAllNodesAndDoctorSaysWhichFails(t *testing.T) {
	t.Parallel()
	f := newFounding(t)
	nodes := []*machine{f.machine("agg1")}
	f.must("bursar", nodes[0].init()...)
	f.start(nodes[0], 1)
	for _, name := range []string{"agg2", "agg3"} {
		m := f.machine(name)
		host, token := f.token(nodes[0], "-role", "aggregator")
		f.must("bursar", m.init("-join", host, "-token", token)...)
		f.start(m, len(nodes)+1)
		nodes = append(nodes, m)
	}
	host, token := f.token(nodes[1], "-role", "agent")
	dir := filepath.Join(f.site.Dir, "head1")
	config := filepath.Join(dir, "agent.hcl")
	f.must("bursar-agent", "join", host, token, "-config", config, "-data-dir", filepath.Join(dir, "data"), "-name", "head1", "-user", "root", "-no-start", "-dial-in")
	text, err := os.ReadFile(config)
	for _, m := range nodes {
		if err != nil || !strings.Contains(string(text), `"`+m.api+`"`) {
			t.Errorf("%v: %s at %s is missing in\n%s", err, m.name, m.api, text)
		}
	}
	doctor := func(running bool, want string) {
		t.Helper()
		out, _ := f.run("bursar-agent", "doctor", "-config", config) // 2: there is no source
		for _, m := range nodes {
			line := ""
			for l := range strings.Lines(out) {
				if words := strings.Fields(l); len(words) > 2 && words[1] == "dial" && words[2] == m.api+":" {
					line = l
				}
			}
			if m != nodes[2] && !strings.Contains(line, "ok ") || m == nodes[2] && !strings.Contains(line, want) {
				t.Errorf("agent runs: %t; %s at %s: %q\n%s", running, m.name, m.api, line, out)
			}
		}
	}
	doctor(false, "ok ")
	agent := f.site.Daemon("head1", "bursar-agent", "-dev", "-config", config)
	agent.Start()
	f.site.Eventually("the agent is connected to all nodes", func() (bool, string) {
		out, err := f.run("bursar-agent", "status", "-config", config)
		return err == nil && strings.Count(out, ": connected to agg") == len(nodes), out
	})
	nodes[2].daemon.Kill()
	f.site.Eventually("the agent has tried to dial the node that is down", func() (bool, string) {
		out, err := f.run("bursar-agent", "status", "-config", config)
		return err == nil && strings.Count(out, ": connected to agg") == 2 && strings.Contains(out, "connection refused"), out
	})
	doctor(true, "connection refused")
	agent.Stop()
	doctor(false, "connection refused")
}

func TestJoin_TokenThatIsNotGood_IsRefused(t *testing.T) {
	t.Parallel()
	f := newFounding(t)
	m := f.machine("agg1")
	f.must("bursar", m.init()...)
	f.start(m, 1)
	host, used := f.token(m, "-role", "agent")
	f.must("bursar-agent", f.join("head1", host, used)...)
	refusedAs := func(what, as, name, token, want string) {
		t.Helper()
		args := f.join(name, host, token)
		args[slices.Index(args, "-name")+1] = as
		if out, err := f.run("bursar-agent", args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %q in %s", what, err, want, out)
		}
		if _, err := os.Stat(filepath.Join(f.site.Dir, name, "agent.hcl")); err == nil {
			t.Errorf("%s: a configuration was written", what)
		}
	}
	refused := func(what, name, token, want string) {
		t.Helper()
		refusedAs(what, name, name, token, want)
	}
	refused("used by another machine", "head2", used, "was used already")
	refused("of another cluster", "head2", join.New(identity.Digest{9}).String(), "the token is of another cluster")
	_, fresh := f.token(m, "-role", "agent")
	refusedAs("a name that is taken", "head1", "head2", fresh, "there is an agent head1 already")

	_, revoked := f.token(m, "-role", "agent")
	list, err := f.bursar(m, "token", "list", "-format", "json")
	if err != nil || strings.Contains(list, strings.TrimPrefix(revoked, "b1_")) {
		t.Fatalf("the list: %v\n%s", err, list)
	}
	var tokens v1.Tokens
	if err := json.Unmarshal([]byte(list), &tokens); err != nil || len(tokens.Tokens) != 3 {
		t.Fatalf("the list: %v\n%s", err, list)
	}
	for _, k := range tokens.Tokens {
		if out, err := f.bursar(m, "token", "revoke", k.ID); err != nil {
			t.Fatal(out, err)
		}
	}
	refused("revoked", "head2", revoked, "was revoked")

	_, altered := f.token(m, "-role", "agent")
	letters := []byte(altered)
	if at := 20; letters[at] == 'A' { // within the secret
		letters[at] = 'B'
	} else {
		letters[at] = 'A'
	}
	refused("altered", "head2", string(letters), "token not found")
	refused("cut off", "head2", altered[:len(altered)-4], "not a token")
	_, node := f.token(m, "-role", "aggregator")
	refused("for another role", "head2", node, "another role")

	_, short := f.token(m, "-role", "agent", "-ttl", "1m")
	refusedLater := time.Now().Add(time.Minute + time.Second)

	// Meanwhile a machine in the middle, which can speak with the cluster, learns nothing.
	_, good := f.token(m, "-role", "agent")
	between, told := f.between(host)
	out, err := f.run("bursar-agent", f.join("head3", between, good)...)
	if err == nil || told.Load() != 0 {
		t.Errorf("a machine in the middle was told %d secrets: %v\n%s", told.Load(), err, out)
	}
	f.must("bursar-agent", f.join("head3", host, good)...)

	f.site.Eventually("the minute of the short token is over", func() (bool, string) { return time.Now().After(refusedLater), "" })
	refused("expired", "head2", short, "has expired")
}

// between is a machine with a certificate of another authority, which hands on to the
// cluster, and counts what is posted to it.
func (f *founding) between(host string) (address string, posted *atomic.Int32) {
	posted = new(atomic.Int32)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: host})
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posted.Add(1)
		}
		proxy.ServeHTTP(w, r)
	}))
	s.TLS = identitytest.New(f.t).Keys(identity.Aggregator, "agg1").Open()
	s.StartTLS()
	f.t.Cleanup(s.Close)
	return s.Listener.Addr().String(), posted
}
