package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bursar-accounting/bursar/proto/auditor"
)

// client sends requests over kept connections to one node after the other, as a
// client with a list of addresses does: where no one listens it goes on to the
// next. A connection that is broken off before the answer, by a node that stops or by an
// election that was not ordered, is counted, and the request sent again. Every other failure is
// one.
type client struct {
	http *http.Client
	site *site

	broken  atomic.Int64 // connections, before an answer
	ordered uint64       // changes of the leader
	stops   int          // of nodes

	mu  sync.Mutex
	api map[string]string
}

func (c *client) learn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.api = map[string]string{}
	for name, m := range c.site.nodes {
		c.api[name] = m.api
	}
}

func (c *client) addresses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for _, api := range c.api {
		list = append(list, api)
	}
	return list
}

// How many write and read at a time, and how many connections they keep to a node.
const (
	clients = 3
	maxIdle = 4
)

// maxBroken is how many connections of one request may be broken off.
const maxBroken = 5

// do sends one request to any node.
func (c *client) do(ctx context.Context, method, path, body string) error {
	var tries atomic.Int32 // connections that it was sent on
	broken := 0
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { tries.Add(1) }})
	for ctx.Err() == nil {
		for _, api := range c.addresses() {
			req, err := http.NewRequestWithContext(ctx, method, api+path, strings.NewReader(body)) // which can be read twice
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header["Idempotency-Key"] = nil // the id of the record is one; nil is not sent
			resp, err := c.http.Do(req)
			switch {
			case err != nil && strings.Contains(err.Error(), "connection refused"):
				continue
			case err != nil && broken < maxBroken:
				broken++
				c.broken.Add(1)
				c.site.t.Logf("%s %s, sent again: %v", method, path, err)
				continue
			case err != nil:
				return err
			}
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if again := tries.Load() > 1 && string(text) == auditor.Exists; err != nil || resp.StatusCode != 200 && !again {
				return fmt.Errorf("%s %s: %d %s %w", method, path, resp.StatusCode, text, err)
			}
			return nil
		}
	}
	return nil
}

// load has clients write, and read what they wrote, until stop is called. A
// request that fails fails the test.
func (c *client) load(t *testing.T, written *atomic.Int64) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprintf("r%d-%d", i, n)
				if err := c.do(context.WithoutCancel(ctx), "POST", "/record", recordJSON(id)); err != nil {
					t.Errorf("a write: %v", err)
					return
				}
				written.Add(1)
				if err := c.do(context.WithoutCancel(ctx), "GET", "/record/"+id, ""); err != nil {
					t.Errorf("a read of what was written: %v", err)
					return
				}
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// underLoad starts a site and its load.
func underLoad(t *testing.T) (s *site, c *client, written *atomic.Int64, stop func()) {
	t.Helper()
	names := []string{"agg1", "agg2", "agg3"}
	s = newSite(t, names...)
	s.start(names...)
	s.post("agg1", "first")
	c = &client{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxIdle}}, site: s}
	t.Cleanup(c.http.CloseIdleConnections)
	c.learn()
	written = new(atomic.Int64)
	begun := s.term("agg1")
	end := c.load(t, written)
	return s, c, written, func() {
		end()
		for _, name := range names {
			s.has(name, int(written.Load())+1)
		}
		if n, elections := c.broken.Load(), s.term("agg1")-begun; n > int64(c.stops)*clients*maxIdle && elections <= c.ordered {
			t.Errorf("%d connections were broken off by %d nodes that stopped, and each of the %d elections was ordered (%d)", n, c.stops, elections, c.ordered)
		}
	}
}

// The tests under load run alone: other nodes beside them would take the time in which
// a node must stop or be elected.

func TestNoRequestFailsInARollingRestart(t *testing.T) {
	s, c, written, stop := underLoad(t)
	for _, name := range []string{"agg1", "agg2", "agg3"} {
		before := written.Load()
		if s.leader(name) == name {
			c.ordered++
		}
		c.stops++
		s.stop(name)
		s.start(name)
		c.learn()
		s.until(name+" serves again", func() error {
			status, _, text, err := s.request(name, "GET", "/health_check", "")
			if err == nil && (status != 200 || written.Load() == before) {
				err = fmt.Errorf("%d %s", status, text)
			}
			return err
		})
	}
	stop()
}

func TestNoRequestFailsWhenTheLeadershipIsHandedOver(t *testing.T) {
	s, c, written, stop := underLoad(t)
	for i := range 6 {
		name := fmt.Sprint("agg", 1+i%3)
		was, before := s.leader(name), written.Load()
		c.ordered++
		s.until("the leadership is handed over by order", func() error {
			if status, _, text, err := s.request(name, "POST", "/v1/cluster/leader:transfer", ""); err != nil || status != 200 {
				return fmt.Errorf("%d %s %w", status, text, err)
			}
			return nil
		})
		s.until("another node leads and writes", func() error {
			is := s.leader(name)
			if is == was { // which was elected again
				if status, _, _, err := s.request(name, "POST", "/v1/cluster/leader:transfer", ""); err == nil && status == 200 {
					c.ordered++
				}
			}
			if is == "" || is == was || written.Load() == before {
				return fmt.Errorf("%q leads, after %q", is, was)
			}
			return nil
		})
	}
	stop()
}

// term returns the term of the last entry that a node has applied.
func (s *site) term(name string) (term uint64) {
	s.t.Helper()
	s.until("the status of "+name, func() error {
		status, _, answer, err := s.request(name, "GET", "/v1/status", "")
		var is struct{ Term *uint64 }
		if err == nil {
			err = json.Unmarshal([]byte(answer), &is)
		}
		if err != nil || status != 200 || is.Term == nil {
			return fmt.Errorf("%d %s %w", status, answer, err)
		}
		term = *is.Term
		return nil
	})
	return term
}

// leader returns the id of the leader that a node knows, "" for none.
func (s *site) leader(name string) string {
	s.t.Helper()
	_, _, answer, err := s.request(name, "GET", "/v1/cluster/members", "")
	var list struct {
		Members []struct {
			ID     string
			Leader bool
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(answer), &list)
	}
	if err != nil {
		s.t.Fatalf("members of %s: %v %s", name, err, answer)
	}
	for _, m := range list.Members {
		if m.Leader {
			return m.ID
		}
	}
	return ""
}
