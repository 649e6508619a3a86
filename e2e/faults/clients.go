//go:build e2e

package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// impatience is how long a client waits for an answer. It is short, so that many
// outcomes are unknown while things go wrong.
const impatience = 700 * time.Millisecond

// era is how long one register is used by all clients. Then they take a new one:
// each write whose outcome is unknown doubles what the check has to think of.
const era = 400 * time.Millisecond

// Clients write and read registers through all nodes.
type Clients struct {
	nodes   []*Member
	name    string // part of the ids
	count   int
	seed    uint64
	history *History
	http    *http.Client
	values  atomic.Int64 // no two writes have the same value
	stale   bool
}

// NewClients makes so many clients, each with a node that it asks.
func NewClients(nodes []*Member, name string, count int, seed uint64) *Clients {
	return &Clients{nodes: nodes, name: name, count: count, seed: seed, history: NewHistory(),
		http: &http.Client{Timeout: impatience, Transport: &http.Transport{MaxIdleConnsPerHost: count}}}
}

// Run lets them work until stop.
func (c *Clients) Run(stop <-chan struct{}) {
	var all sync.WaitGroup
	for i := range c.count {
		all.Go(func() { c.runClient(i, stop) })
	}
	all.Wait()
}

func (c *Clients) runClient(n int, stop <-chan struct{}) {
	chance := rand.New(rand.NewPCG(c.seed, uint64(n)))
	node := n
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(5+chance.IntN(20)) * time.Millisecond):
		}
		q := Request{ID: fmt.Sprintf("%s%s-%d", Pushed, c.name, time.Since(c.history.began)/era), Verb: Get}
		switch chance.IntN(5) {
		case 0:
			q.Verb, q.Value = Add, c.nextValue()
		case 1, 2:
			q.Verb, q.Value = Update, c.nextValue()
		}
		if !c.sendAndRecord(n, c.nodes[node%len(c.nodes)], q) {
			node++ // as a client does that has a list of them
		}
	}
}

func (c *Clients) nextValue() record.Time {
	return record.Time(1_770_000_000_000_000 + c.values.Add(1))
}

// sendAndRecord sends a request, and keeps it in the history with its answer. It returns
// false when the client should go to another node.
func (c *Clients) sendAndRecord(client int, node *Member, q Request) bool {
	call := c.history.sinceBegin()
	status, body, err := c.sendRequest(node, q)
	var a Answer
	switch {
	case isRefused(err):
		return false // it was never sent
	case err != nil && q.Verb == Get:
		return false
	case err != nil:
		a.Unknown = true
	default:
		if a, err = decodeAnswer(q.Verb, status, body); err != nil {
			c.history.noteStrange(fmt.Errorf("%s: %s %s: %w", node.Name, q.Verb, q.ID, err))
			return false
		}
		if q.Verb == Get && a.Unknown {
			return false // it had nothing to say
		}
	}
	c.history.addOperation(client, q, a, call)
	return !a.Unknown
}

// isRefused reports whether an error says that there was no connection.
func isRefused(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

func (c *Clients) sendRequest(node *Member, q Request) (status int, body []byte, err error) {
	method, path, payload := http.MethodGet, "/record/"+q.ID, ""
	switch q.Verb {
	case Add:
		method, path = http.MethodPost, "/record"
		payload = fmt.Sprintf(`{"record_id":%q,"meta":{},"components":[],"start_time":%q}`, q.ID, formatTime(q.Value))
	case Update:
		method, path = http.MethodPut, "/record"
		payload = fmt.Sprintf(`{"record_id":%q,"meta":{},"components":[],"start_time":%q,"stop_time":%q}`, q.ID, formatTime(1), formatTime(q.Value))
	case Get:
		if c.stale {
			path = "/v1/records/" + q.ID + "?consistency=stale"
		}
	}
	req, err := http.NewRequestWithContext(context.Background(), method, node.URL+path, strings.NewReader(payload))
	if err != nil {
		return 0, nil, err
	}
	if payload != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

func formatTime(t record.Time) string {
	return time.UnixMicro(int64(t)).UTC().Format("2006-01-02T15:04:05.000000Z")
}

// decodeAnswer reads what a server has answered. Of a write that was not committed there
// must be no answer at all; of a read, any error will do.
func decodeAnswer(v Verb, status int, body []byte) (Answer, error) {
	switch {
	case v == Get && status == http.StatusOK:
		r, err := wire.DecodeRecordJSON(body)
		return Answer{Seen: Register{Start: r.Start, Stop: r.Stop}}, err
	case v == Get && status == http.StatusNotFound:
		return Answer{}, nil
	case v == Get:
		return Answer{Unknown: true}, nil
	case status == http.StatusOK:
		return Answer{Done: true}, nil
	case v == Add && status == http.StatusInternalServerError && string(body) == "RECORD_EXISTS":
		return Answer{}, nil
	case v == Update && status == http.StatusNotFound:
		return Answer{}, nil
	}
	return Answer{}, fmt.Errorf("answered with %d %s", status, body)
}

// Read asks every node for every register, and returns what the last one said.
// It is called when all is well again, and fails when a node does not answer.
func (c *Clients) Read() (map[string]Register, error) {
	seen := map[string]Register{}
	for i, node := range c.nodes {
		for _, id := range c.history.registerIDs() {
			before := c.history.Len()
			if !c.sendAndRecord(c.count+i, node, Request{ID: id, Verb: Get}) {
				return nil, fmt.Errorf("%w: %s does not answer", ErrNotYet, node.Name)
			}
			c.history.mu.Lock()
			seen[id] = c.history.ops[before].Output.(Answer).Seen
			c.history.mu.Unlock()
		}
	}
	return seen, nil
}
