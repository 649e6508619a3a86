//go:build e2e

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/faults"
)

// load is clients that write and read through all nodes and keep their connections. A node
// that takes no connection, says that another one can answer, or breaks the connection off as it
// stops, is left for the next one. Everything else that is not answered has failed.
type load struct {
	site     *faults.Site
	served   atomic.Int64
	turned   atomic.Int64 // to another node
	stopping atomic.Pointer[faults.Member]

	mu     sync.Mutex
	failed []string
}

func (l *load) run(ctx context.Context, clients int) {
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() { l.client(ctx, n) })
	}
	all.Wait()
}

func (l *load) client(ctx context.Context, n int) {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	node := n
	for i := 0; ctx.Err() == nil; i++ {
		m := l.site.Nodes[node%len(l.site.Nodes)]
		err := l.ask(client, m, n, i)
		switch {
		case err == nil:
			l.served.Add(1)
		case errors.Is(err, errElsewhere), isRefused(err), l.stopping.Load() == m && isBrokenOff(err):
			l.turned.Add(1)
			node++
		default:
			l.mu.Lock()
			l.failed = append(l.failed, fmt.Sprintf("request %d of client %d to %s: %v", i, n, m.Name, err))
			l.mu.Unlock()
		}
		time.Sleep(5 * time.Millisecond)
		if i%40 == 0 {
			node++ // all nodes are asked by all clients
		}
	}
}

// isRefused reports whether a node took no connection.
func isRefused(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
}

// isBrokenOff reports whether a connection ended before the answer.
func isBrokenOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// ask writes a record or reads one.
func (l *load) ask(client *http.Client, m *faults.Member, n, i int) error {
	if i%2 == 0 {
		status, err := add(context.Background(), client, m, fmt.Sprintf("load-%d-%d", n, i))
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("a write was answered with %d", status)
		}
		return err
	}
	resp, err := client.Get(fmt.Sprintf("%s/record/%sload-%d-%d", m.URL, faults.Pushed, n, i-1)) //nolint:noctx // the client has a time limit
	if err != nil {
		return err
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return errElsewhere
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound: // the write may have found no connection
		return fmt.Errorf("a read was answered with %s: %s", resp.Status, text)
	}
	return nil
}

// errElsewhere says that another node can answer.
var errElsewhere = errors.New("this node cannot answer now")

func TestCluster_RollingRestart_FailsNoRequest(t *testing.T) {
	if *nodes < 2 {
		t.Skip("a node alone has no other to go on")
	}
	s := faults.NewSite(t, faults.Plan{Nodes: *nodes, Agents: 1, Seed: *seed})
	c := faults.NewCampaign(t, s, *seed)
	c.Begin()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &load{site: s}
	var working sync.WaitGroup
	working.Go(func() { l.run(ctx, 6) })
	for _, n := range s.Nodes {
		before := l.served.Load()
		l.stopping.Store(n)
		if err := n.Terminate(); err != nil {
			t.Error(err)
		}
		s.Eventually("requests are served by the others", func() (bool, string) {
			return l.served.Load() > before+100, fmt.Sprint(l.served.Load()-before, " served")
		})
		n.Start()
		s.Eventually(n.Name+" has caught up", func() (bool, string) { return caughtUp(n) })
		l.stopping.Store(nil)
	}
	cancel()
	working.Wait()
	if err := c.Settle(faults.Recovery); err != nil {
		t.Fatal(err)
	}
	for i, f := range l.failed {
		if i < 5 {
			t.Error(f)
		}
	}
	t.Logf("%d requests served, %d failed; %d times a node took no connection, could not answer or stopped, and another one was asked", l.served.Load(), len(l.failed), l.turned.Load())
}

// caughtUp reports whether a node answers a read, which it does only with all that
// was acknowledged before.
func caughtUp(m *faults.Member) (bool, string) {
	resp, err := http.Get(m.URL + "/record/none")
	if err != nil {
		return false, err.Error()
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusNotFound, resp.Status
}
