//go:build e2e

package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/wire"
)

// Status is what a node says of itself.
type Status struct {
	Index   uint64 `json:"index"`
	Hash    string `json:"hash"`
	Records int64  `json:"records"`
	// Confirmed says whether a majority confirms the figures.
	Confirmed *bool `json:"confirmed"`
}

// Cursor is how far an agent was pulled.
type Cursor struct {
	Name   string `json:"name"`
	Cursor uint64 `json:"cursor"`
	Epoch  string `json:"epoch"`
}

// fetch hands a good answer of a node's REST interface to read.
func (m *Member) fetch(path string, within time.Duration, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("%s GET %s: %s: %s", m.Name, path, resp.Status, text)
	}
	return read(resp.Body)
}

// fetchJSON fetches an answer that is one JSON value.
func (m *Member) fetchJSON(path string, into any) error {
	return m.fetch(path, 10*time.Second, func(body io.Reader) error { return json.NewDecoder(body).Decode(into) })
}

// Cursors asks a node how far the agents were pulled; the answer is linearizable.
func (m *Member) Cursors() ([]Cursor, error) {
	var answer struct {
		Agents []Cursor `json:"agents"`
	}
	err := m.fetchJSON("/v1/agents", &answer)
	return answer.Agents, err
}

// Status asks a node.
func (m *Member) Status() (Status, error) {
	var st Status
	err := m.fetchJSON("/v1/status", &st)
	if err == nil && st.Confirmed != nil && !*st.Confirmed {
		err = errors.New(m.Name + " knows no majority that confirms its status")
	}
	return st, err
}

// Pushed is the prefix of the ids that the clients of the REST interface write.
const Pushed = "pushed-"

// Holding reads all that a node holds of the schedulers' jobs.
func (m *Member) Holding() (*Holding, error) {
	h := NewHolding()
	err := m.fetch("/v1/records?format=ndjson", time.Minute, h.readRecords)
	if err != nil {
		return nil, fmt.Errorf("records of %s: %w", m.Name, err)
	}
	return h, nil
}

// readRecords takes records, one a line.
func (h *Holding) readRecords(body io.Reader) error {
	for lines := bufio.NewReaderSize(body, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := wire.DecodeRecordJSON(line)
		if err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		h.Take(&r)
	}
}

// Conserved checks that every write that came has one outcome.
func (m *Member) Conserved() error {
	var answer struct {
		Counters []struct {
			Source    string `json:"source"`
			Conserved bool   `json:"conserved"`
		} `json:"counters"`
	}
	if err := m.fetchJSON("/v1/counters", &answer); err != nil {
		return fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	for _, c := range answer.Counters {
		if !c.Conserved {
			return fmt.Errorf("%s: the counters of %s do not add up: %+v", m.Name, c.Source, c)
		}
	}
	return nil
}

// Leader is the node that leads as far as the nodes' logs tell; the first one when
// they say nothing. What it has found holds until a later line says something else, however
// much a node writes meanwhile.
func (s *Site) Leader() *Member {
	s.leading.Lock()
	defer s.leading.Unlock()
	leader, latest := s.leader, s.led
	if leader == nil {
		leader = s.Nodes[0]
	}
	for _, n := range s.Nodes {
		for line := range strings.Lines(n.Log(2000)) {
			if at, ok := ledAt(line); ok && at > latest {
				leader, latest = n, at
				s.leader, s.led = n, at
			}
		}
	}
	return leader
}

// leads is in the line of the log of a node that begins to lead.
const leads = `msg="this node leads"`

// ledAt returns the time of a line of the log that says that the node leads. Such
// times are in order as texts.
func ledAt(line string) (at string, ok bool) {
	if !strings.Contains(line, leads) {
		return "", false
	}
	_, rest, _ := strings.Cut(line, "time=")
	at, _, _ = strings.Cut(rest, " ")
	return at, true
}

// countReigns counts how often a node has begun to lead.
func (s *Site) countReigns() (n int) {
	for _, m := range s.Nodes {
		n += strings.Count(m.Log(math.MaxInt), leads)
	}
	return n
}

// countPromotions counts how often a new node was given its vote.
func (s *Site) countPromotions() (n int) {
	for _, m := range s.Nodes {
		n += strings.Count(m.Log(math.MaxInt), "change=promote")
	}
	return n
}

// progress is what never goes back in a linearizable answer.
type progress struct {
	cursors map[string]uint64 // by agent and epoch
}

// compareCursors compares an answer with the ones before it.
func (p *progress) compareCursors(agents []Cursor) error {
	for _, a := range agents {
		key := a.Name + " in epoch " + a.Epoch
		if a.Cursor < p.cursors[key] {
			return fmt.Errorf("the cursor of %s went back from %d to %d", key, p.cursors[key], a.Cursor)
		}
		p.cursors[key] = a.Cursor
	}
	return nil
}
