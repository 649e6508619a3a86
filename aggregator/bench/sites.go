package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// makeAuthority makes an authority and the aggregator's certificate.
func (b *bench) makeAuthority() error {
	b.caDir = filepath.Join(b.dir, "tls")
	if _, err := identity.CreateCA(b.caDir, "bench", 24*time.Hour, time.Now()); err != nil {
		return err
	}
	var err error
	b.tls, err = b.makeCertificate(identity.Aggregator, "agg1")
	return err
}

func (b *bench) makeCertificate(role identity.Role, name string) (identity.Files, error) {
	return identity.CreateCert(b.caDir, b.caDir, identity.Request{Identity: identity.Identity{Role: role, Name: name}, Hosts: []string{"127.0.0.1"}}, time.Now())
}

// freePort returns a port of loopback that is free.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func freePorts(addresses ...*string) error {
	for _, a := range addresses {
		var err error
		if *a, err = freePort(); err != nil {
			return err
		}
	}
	return nil
}

// agentSite is an agent: its folder, and its process while it runs.
type agentSite struct {
	bench   *bench
	name    string
	dir     string
	listen  string
	metrics string
	process *process
}

// newAgent writes the configuration of an agent; more are further blocks.
func (b *bench) newAgent(name string, more ...string) (*agentSite, error) {
	a := &agentSite{bench: b, name: name, dir: filepath.Join(b.dir, name)}
	if err := freePorts(&a.listen, &a.metrics); err != nil {
		return nil, err
	}
	files, err := b.makeCertificate(identity.Agent, name)
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`agent {
  name        = %q
  data_dir    = %q
  listen      = %q
  plugin_dirs = [%q]
  tls {
    ca   = %q
    cert = %q
    key  = %q
  }
  buffer { max_size = "1000GiB" }
  metrics { listen = %q }
}
`, name, a.dir, a.listen, filepath.Join(b.bin, "plugins"), files.CA, files.Cert, files.Key, a.metrics)
	if err := os.MkdirAll(a.dir, 0o750); err != nil {
		return nil, err
	}
	return a, os.WriteFile(a.configText(), []byte(config+strings.Join(more, "\n")), 0o600)
}

func (a *agentSite) configText() string   { return a.dir + ".hcl" }
func (a *agentSite) bufferFolder() string { return filepath.Join(a.dir, "buffer.db") }

// ensureRunning starts the agent when it does not run.
func (a *agentSite) ensureRunning(ctx context.Context) (err error) {
	if a.process != nil {
		return a.process.checkAlive()
	}
	if a.process, err = startProcess(a.bench.programPath("bursar-agent"), []string{"-config", a.configText()}, nil); err != nil {
		return err
	}
	return pollUntil(ctx, a.process, func() bool { _, err := a.readMetrics(ctx); return err == nil })
}

func (a *agentSite) stopAgent() error {
	if a.process == nil {
		return nil
	}
	err := a.process.stopProcess()
	a.process = nil
	return err
}

// readMetrics reads the agent's metrics.
func (a *agentSite) readMetrics(ctx context.Context) (map[string]float64, error) {
	return readMetrics(ctx, "http://"+a.metrics+"/metrics")
}

// readMetrics reads metrics, by name with labels.
func readMetrics(ctx context.Context, url string) (map[string]float64, error) {
	body, err := getText(ctx, url)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for line := range strings.Lines(body) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			values[name] = v
		}
	}
	return values, nil
}

// unacknowledgedFrames returns how many frames the cluster has not acknowledged; false
// while the agent does not know it.
func (a *agentSite) unacknowledgedFrames(ctx context.Context, cluster string) (float64, bool, error) {
	values, err := a.readMetrics(ctx)
	left, known := values[fmt.Sprintf("bursar_buffer_unacknowledged_frames{cluster=%q}", cluster)]
	return left, known, err
}

// getText reads a small answer.
func getText(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var b strings.Builder
	if _, err := bufio.NewReader(resp.Body).WriteTo(&b); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", url, resp.Status)
	}
	return b.String(), nil
}

// patience is how long a daemon may take to be ready.
const patience = 10 * time.Minute

var errPatience = errors.New("it took too long")

// pollUntil asks every few milliseconds until ok says yes or the process ends.
func pollUntil(ctx context.Context, p *process, ok func() bool) error {
	end := time.Now().Add(patience)
	for !ok() {
		if err := p.checkAlive(); err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w; %s said last: %s", errPatience, p.cmd.Path, p.log.lastLines())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(3 * time.Millisecond):
		}
	}
	return nil
}

// nodeSite is an aggregator of one node: its folder, and its process while it
// runs.
type nodeSite struct {
	bench   *bench
	dir     string
	api     string
	seed    string // the snapshot that it begins with; empty: nothing
	process *process
	inside  *inside

	cluster string    // its id, once it leads
	leads   time.Time // since when
}

// newNode writes the configuration of a node that pulls from a; nil: from none. More
// are further lines of the block aggregator.
func (b *bench) newNode(name string, a *agentSite, more ...string) (*nodeSite, error) {
	n := &nodeSite{bench: b, dir: filepath.Join(b.dir, name)}
	if err := freePorts(&n.api); err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`aggregator {
  name     = "agg1"
  data_dir = %q
  api { listen = [%q] }
  tls {
    ca   = %q
    cert = %q
    key  = %q
  }
  %s
}
access { plain_role = "monitor,read,write" }
`, n.dir, n.api, b.tls.CA, b.tls.Cert, b.tls.Key, strings.Join(more, "\n  "))
	if a != nil {
		config += fmt.Sprintf("agent %q { address = %q }\n", a.name, a.listen)
	}
	return n, os.WriteFile(n.configText(), []byte(config), 0o600)
}

func (n *nodeSite) configText() string { return n.dir + ".hcl" }
func (n *nodeSite) baseURL() string    { return "http://" + n.api }

// leadsWord is what the aggregator logs right before it begins to pull.
const leadsWord = "this node leads"

var clusterID = regexp.MustCompile(`cluster=(\S+)`)

// ensureRunning starts the node when it does not run, and waits until it leads and
// answers.
func (n *nodeSite) ensureRunning(ctx context.Context) (err error) {
	if n.inside != nil {
		return nil
	}
	if n.process != nil {
		return n.process.checkAlive()
	}
	if n.bench.profile != "" {
		return n.runInside(ctx)
	}
	args := []string{"aggregator", "-config", n.configText()}
	if n.seed != "" {
		args = append(args, "-bootstrap-from", n.seed)
	}
	if n.process, err = startProcess(n.bench.programPath("bursar"), args, nil); err != nil {
		return err
	}
	return n.awaitLeading(ctx, n.process.log.expectLine(leadsWord), n.process.done, n.process.endedError)
}

// awaitLeading waits until the node leads.
func (n *nodeSite) awaitLeading(ctx context.Context, leads <-chan string, done <-chan struct{}, ended func() error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
		return ended()
	case <-time.After(patience):
		return errPatience
	case line := <-leads:
		n.leads = time.Now()
		if m := clusterID.FindStringSubmatch(line); m != nil {
			n.cluster = m[1]
		}
		return nil
	}
}

func (n *nodeSite) stopNode() error {
	if n.inside != nil {
		err := n.inside.stopNode()
		n.inside = nil
		return err
	}
	if n.process == nil {
		return nil
	}
	err := n.process.stopProcess()
	n.process = nil
	return err
}

// cpuSeconds returns the seconds that the node has computed so far; 0 for one inside
// this program.
func (n *nodeSite) cpuSeconds() float64 {
	if n.process == nil {
		return 0
	}
	return n.process.cpuSeconds()
}

// watchMemory is [process.watch].
func (n *nodeSite) watchMemory() func() (most, last float64) {
	if n.process == nil {
		return func() (float64, float64) { return 0, 0 }
	}
	return n.process.watchMemory()
}

// fillReport is what fill says.
type fillReport struct {
	Done    bool    `json:"done"`
	Frames  int     `json:"frames"`
	Bytes   int64   `json:"bytes"`
	Rate    float64 `json:"rate"`
	Allocs  int64   `json:"allocs"`
	Seconds float64 `json:"seconds"`
}

// runFill runs fill and returns its last report.
func (b *bench) runFill(ctx context.Context, env []string, each func(fillReport), args ...string) (last fillReport, err error) {
	cmd := exec.CommandContext(ctx, b.fill, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return last, err
	}
	if err := cmd.Start(); err != nil {
		return last, err
	}
	for in := json.NewDecoder(out); err == nil; {
		var r fillReport
		if err = in.Decode(&r); err == nil {
			last = r
			each(r)
		}
	}
	if err := cmd.Wait(); err != nil {
		return last, fmt.Errorf("fill %s: %w", args[0], err)
	}
	return last, nil
}

// fillBuffer fills the buffer of the set's agent.
func (b *bench) fillBuffer(ctx context.Context, s *set) error {
	b.progress.beginPiece("filling the agent's buffer with %d records, %s ids", s.n, s.ids)
	_, err := b.runFill(ctx, nil, func(r fillReport) { b.progress.showDone(float64(r.Frames), float64(s.n)) },
		"buffer", "-path", s.agent.bufferFolder(), "-n", strconv.Itoa(s.n), "-ids", s.ids, "-sample", s.sampleFile())
	return err
}

// sampleFile is the file with some of the ids.
func (s *set) sampleFile() string { return s.agent.dir + ".ids" }
