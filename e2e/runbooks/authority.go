//go:build e2e

package runbooks

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// estate is a cluster whose certificates were made on another machine: each
// machine has a folder for its files, and scp brings them there.
type estate struct {
	*cluster

	places *strings.Replacer // of the runbooks' machines and folders
	pids   []int
}

// machineNames are those of the runbooks.
func machineNames() []string { return []string{"alice", "head1", "agg1", "agg2", "agg3"} }

// scp copies into the folder of a machine.
const scp = `#!/bin/sh
set -e
for last; do :; done
to="%s/machines/${last%%%%:*}${last#*:}"
while [ $# -gt 1 ]; do cp "$1" "$to"; shift; done
`

func newEstate(t *testing.T) *estate {
	t.Helper()
	e := &estate{cluster: newCluster(t)}
	e.site.Program("shims/scp", fmt.Sprintf(scp, e.site.Dir))
	list := []string{"/srv", e.path("srv"), "head1:7070", e.agent.Address}
	for i, g := range e.nodes {
		list = append(list, fmt.Sprintf("agg%d:8443", i+1), strings.TrimPrefix(g.TLSURL, "https://"), fmt.Sprintf("agg%d:8701", i+1), e.nodes[i].Listen)
	}
	e.places = strings.NewReplacer(list...)
	if _, err := identity.CreateCA(e.path("srv/bursar-ca"), "bursar 1", identity.LifetimeCA, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, m := range machineNames() {
		if err := os.MkdirAll(filepath.Dir(e.filesOf(m).CA), 0o755); err != nil {
			t.Fatal(err)
		}
		id := identity.Identity{Role: identity.Aggregator, Name: m}
		switch m {
		case "alice":
			id.Role, id.Rights = identity.Client, identity.Read|identity.Write
		case "head1":
			id.Role = identity.Agent
		}
		e.issueCertificate("srv/bursar-ca", "srv/bursar-ca", id)
		e.runAsAdmin([]string{fmt.Sprintf("cd /srv/bursar-ca && scp ca.pem %s.pem %s.key %s:/etc/bursar/tls/", m, m, m)})
	}
	e.agent.Use(e.filesOf("head1"))
	for _, g := range e.nodes {
		g.Files = e.filesOf(g.Name)
		g.Configure()
	}
	e.agent.Start()
	e.jobs.Write(100)
	e.Start()
	e.awaitWhole(e.nodes...)
	e.pids = e.runningPIDs()
	return e
}

func (e *estate) path(name string) string { return filepath.Join(e.site.Dir, name) }

// filesOf are where a machine has its certificates.
func (e *estate) filesOf(machine string) identity.Files {
	dir := e.path("machines/" + machine + "/etc/bursar/tls")
	return identity.Files{CA: dir + "/ca.pem", Cert: dir + "/" + machine + ".pem", Key: dir + "/" + machine + ".key"}
}

// issueCertificate makes a certificate.
func (e *estate) issueCertificate(ca, dir string, id identity.Identity) identity.Files {
	e.t.Helper()
	files, err := identity.CreateCert(e.path(ca), e.path(dir), identity.Request{Identity: id, Hosts: []string{"127.0.0.1"}, Lifetime: 30 * 24 * time.Hour}, time.Now())
	if err != nil {
		e.t.Fatal(err)
	}
	return files
}

// runAsAdmin executes a block on the machine that keeps the authority.
func (e *estate) runAsAdmin(block []string) string {
	e.t.Helper()
	out, err := e.tryAsAdmin(block)
	if err != nil {
		e.t.Fatalf("%s: %v\n%s", strings.Join(block, "\n"), err, out)
	}
	return out
}

func (e *estate) tryAsAdmin(block []string) (string, error) {
	cmd := exec.Command("sh", "-ec", e.places.Replace(strings.Join(block, "\n")))
	cmd.Env = append(os.Environ(), fmt.Sprintf("PATH=%s:%s:%s", e.path("shims"), e.site.Bin, os.Getenv("PATH")))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// awaitChanged waits until each daemon shows another certificate than in what was shown
// before.
func (e *estate) awaitChanged(before string) {
	e.t.Helper()
	block := commandBlocks(e.t, "Certificates are renewed")[1]
	e.site.Eventually("each daemon shows a new certificate", func() (bool, string) {
		out, err := e.tryAsAdmin(block)
		for line := range strings.Lines(out) {
			if strings.Contains(before, line) {
				return false, out
			}
		}
		return err == nil && out != "", out
	})
}

// awaitShown waits until each line of what the daemons show has all the words.
func (e *estate) awaitShown(words ...string) {
	e.t.Helper()
	block := commandBlocks(e.t, "Certificates are renewed")[1]
	e.site.Eventually("each daemon shows "+strings.Join(words, " and "), func() (bool, string) {
		out, err := e.tryAsAdmin(block)
		if err != nil {
			return false, out
		}
		for line := range strings.Lines(out) {
			for _, w := range words {
				if !strings.Contains(line, w) {
					return false, out
				}
			}
		}
		return strings.Count(out, "\n") == 7, out
	})
}

// runningPIDs are the ids of all processes; none may have ended.
func (e *estate) runningPIDs() (pids []int) {
	e.t.Helper()
	for _, g := range e.nodes {
		if g.Ended() {
			e.t.Errorf("%s has ended", g.URL)
		}
		pids = append(pids, g.PID())
	}
	if e.agent.Ended() {
		e.t.Error("the agent has ended")
	}
	return append(pids, e.agent.PID())
}

// load is a client that writes and reads by its certificate while the authority
// changes. A request that fails is an error of the test.
type load struct {
	e       *estate
	done    atomic.Int64
	fresh   []atomic.Int64 // how often each worker has read the client's files
	stop    chan struct{}
	workers sync.WaitGroup
}

func (e *estate) startLoad() *load {
	l := &load{e: e, fresh: make([]atomic.Int64, 3), stop: make(chan struct{})}
	for i := range l.fresh {
		l.workers.Go(func() { l.writeAndRead(i) })
	}
	e.t.Cleanup(func() { l.endLoad() })
	return l
}

// endLoad stops the workers and returns how many records they wrote.
func (l *load) endLoad() int {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.workers.Wait()
	return int(l.done.Load())
}

func (l *load) isStopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// writeAndRead writes and reads until it is stopped. It keeps its connections for some
// requests, as clients do for up to an hour.
func (l *load) writeAndRead(worker int) {
	for n := 0; !l.isStopped(); {
		keys, err := identity.Load(l.e.filesOf("alice"))
		if err != nil {
			continue // they are being copied
		}
		l.fresh[worker].Add(1)
		transport := &http.Transport{TLSClientConfig: keys.Client(identity.Aggregator, "")}
		client := &http.Client{Transport: transport, Timeout: site.Patience}
		for end := n + 20; n < end && !l.isStopped(); n++ {
			node := l.e.nodes[(worker+n)%len(l.e.nodes)]
			if err := l.writeOne(client, node.TLSURL, fmt.Sprintf("load-%d-%d", worker, n)); err != nil {
				l.e.t.Errorf("a request of the load to %s: %v", node.TLSURL, err)
			}
		}
		transport.CloseIdleConnections()
	}
}

// writeOne writes a record and reads it.
func (l *load) writeOne(c *http.Client, url, id string) error {
	body := `{"record_id":"` + id + `","meta":{},"components":[{"name":"Cores","amount":8,"scores":[]}],"start_time":"2023-02-24T00:00:00Z","stop_time":"2023-02-24T01:00:00Z"}`
	resp, err := c.Post(url+"/record", "application/json", strings.NewReader(body))
	if err == nil {
		err = checkStatus(resp)
	}
	if err != nil {
		return err
	}
	l.done.Add(1)
	if resp, err = c.Get(url + "/record/" + id); err == nil {
		err = checkStatus(resp)
	}
	return err
}

func checkStatus(resp *http.Response) error {
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return err
}

// awaitRenewed waits until all connections of the client are of the files of now.
func (l *load) awaitRenewed() {
	l.e.t.Helper()
	for i := range l.fresh {
		before := l.fresh[i].Load()
		l.e.site.Eventually("the client uses its new files", func() (bool, string) {
			now := l.fresh[i].Load()
			return now >= before+2, fmt.Sprintf("worker %d has read them %d times", i, now)
		})
	}
}

// awaitMore waits until the load has written some more.
func (l *load) awaitMore(n int64) {
	l.e.t.Helper()
	before := l.done.Load()
	l.e.site.Eventually("the load goes on", func() (bool, string) { return l.done.Load() >= before+n, fmt.Sprint(l.done.Load()) })
}

// door is a port of a daemon, and the first words to it.
type door struct {
	name, address, protocol string
	hello                   []byte
	role                    identity.Role
}

func (e *estate) listeners() (list []door) {
	h2 := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 0, 0, 0, 4, 0, 0, 0, 0, 0)
	for i, g := range e.nodes {
		list = append(list,
			door{"REST", strings.TrimPrefix(g.TLSURL, "https://"), "", []byte("GET /v1/status HTTP/1.1\r\nHost: a\r\n\r\n"), identity.Client},
			door{"raft", e.nodes[i].Listen, "bursar-raft/1", []byte("\x01R\x01a\x01b"), identity.Aggregator},
			door{"peer", e.nodes[i].Listen, "bursar-peer/1", h2, identity.Aggregator})
	}
	return append(list, door{"pull", e.agent.Address, "h2", h2, identity.Aggregator})
}

// dialAs returns the connection when the daemon answers to who has these files.
func (d door) dialAs(files identity.Files) (net.Conn, error) {
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true}
	if d.protocol != "" {
		conf.NextProtos = []string{d.protocol}
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", d.address, conf)
	if err != nil {
		return nil, err
	}
	err = conn.SetDeadline(time.Now().Add(time.Minute))
	if err == nil {
		_, err = conn.Write(d.hello)
	}
	answer := make([]byte, 1)
	if d.role == identity.Client { // who has no certificate that is good is told so
		answer = make([]byte, len("HTTP/1.1 200"))
	}
	if err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	if d.role == identity.Client && err == nil && string(answer) != "HTTP/1.1 200" {
		err = fmt.Errorf("answered %q", answer)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, conn.SetDeadline(time.Time{})
}

// thief is someone with certificates of an authority.
type thief map[identity.Role]identity.Files

func (e *estate) makeThief(name, ca string) thief {
	e.t.Helper()
	th := thief{}
	for _, role := range []identity.Role{identity.Client, identity.Aggregator} {
		id := identity.Identity{Role: role, Name: name}
		if role == identity.Client {
			id.Rights = identity.Admin
		}
		th[role] = e.issueCertificate(ca, "thieves/"+name+"-"+string(role), id)
	}
	return th
}

// comesIn knocks at all doors, and says where it is otherwise than wanted.
func (e *estate) comesIn(th thief, want bool) {
	e.t.Helper()
	for _, d := range e.listeners() {
		conn, err := d.dialAs(th[d.role])
		if err == nil {
			conn.Close()
		}
		if (err == nil) != want {
			e.t.Errorf("%s at %s: let in %t, want %t: %v", d.name, d.address, err == nil, want, err)
		}
	}
}

// holdConnections opens a connection of raft and one to the agent, which stay open as long as
// they may. Each channel is closed when the other end closes the connection.
func (e *estate) holdConnections(th thief) (raft, agent <-chan struct{}) {
	e.t.Helper()
	list, err := e.nodes[0].Members()
	if err != nil {
		e.t.Fatal(err)
	}
	doors := e.listeners()
	for _, m := range list {
		if m.Name == "agg1" {
			doors[1].hello = append([]byte{1, 'R', byte(len(m.ID))}, m.ID+"\x01b"...)
		}
	}
	stay := func(d door, live func(net.Conn)) <-chan struct{} {
		conn, err := d.dialAs(th[d.role])
		if err != nil {
			e.t.Fatalf("%s: %v", d.name, err)
		}
		e.t.Cleanup(func() { conn.Close() })
		ended := make(chan struct{})
		go func() {
			live(conn)
			close(ended)
		}()
		return ended
	}
	idle := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	return stay(doors[1], idle), stay(doors[len(doors)-1], answerPings)
}

// answerPings answers what a server of HTTP/2 asks, of which knock has read the first
// byte, until the connection ends: a client that does not is given up.
func answerPings(conn net.Conn) {
	const settings, ping, acknowledged = 4, 6, 1
	in := io.MultiReader(strings.NewReader("\x00"), conn)
	header := make([]byte, 9) // length in three bytes, type, flags, stream in four
	for {
		if _, err := io.ReadFull(in, header); err != nil {
			return
		}
		payload := make([]byte, int(header[0])<<16|int(header[1])<<8|int(header[2]))
		if _, err := io.ReadFull(in, payload); err != nil {
			return
		}
		if header[4] != 0 || header[3] != settings && header[3] != ping {
			continue
		}
		if header[3] == settings {
			payload = nil
		}
		answer := append([]byte{0, 0, byte(len(payload)), header[3], acknowledged, 0, 0, 0, 0}, payload...)
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// awaitEnd waits until the other end closes the connection.
func (e *estate) awaitEnd(connection <-chan struct{}) {
	e.t.Helper()
	select {
	case <-connection:
	case <-time.After(site.Patience):
		e.t.Error("a connection of the old authority lives on")
	}
}

// onlyEnded makes sure that the agent and the first node have broken off connections of
// that peer, and none of anyone else: all others were made again in time. Only those by which
// the agent is pulled from may be among them, since the test does not wait for as long as the
// runbook says; a pull that is broken off is repeated.
func (e *estate) onlyEnded(peer string) {
	e.t.Helper()
	for name, d := range map[string]*site.Daemon{"head1": e.agent.Daemon, "agg1": e.nodes[0].Daemon, "agg2": e.nodes[1].Daemon, "agg3": e.nodes[2].Daemon} {
		ended := 0
		for line := range strings.Lines(d.Log(10_000)) {
			if !strings.Contains(line, "a connection was ended") {
				continue
			}
			switch {
			case strings.Contains(line, "peer="+peer):
				ended++
			case name == "head1" && strings.Contains(line, "peer=aggregator/agg"), strings.Contains(line, "peer=agent/head1"):
			default:
				e.t.Errorf("%s has broken off a connection that is needed: %s", name, line)
			}
		}
		if ended == 0 && (name == "head1" || name == "agg1") {
			e.t.Errorf("%s does not say whose connection it has ended", name)
		}
	}
}
