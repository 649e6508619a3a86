//go:build e2e

package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// Run is a run of an action as the ledger has it.
type Run struct {
	Number     uint64     `json:"run"`
	Failure    string     `json:"failure"` // why it was not planned
	Planned    *time.Time `json:"planned"`
	Ended      *time.Time `json:"ended"`
	Effects    int        `json:"effects"`
	Rejected   int        `json:"rejected"`
	Unknown    int        `json:"unknown"`
	Superseded int        `json:"superseded"`
	Partial    bool       `json:"partial"`
	Notes      []string   `json:"notes"`
	Ledger     []Effect   `json:"-"`
}

// isDone reports whether all effects are done.
func (r *Run) isDone() bool { return r.Rejected+r.Unknown+r.Superseded == 0 }

// Effect is an effect of a run.
type Effect struct {
	Name     string    `json:"name"`
	Summary  string    `json:"summary"`
	State    string    `json:"state"`
	Key      string    `json:"key"`
	Tries    int       `json:"tries"`
	Attempts []Attempt `json:"attempts"`
}

// Attempt is one at an effect.
type Attempt struct {
	Number  int     `json:"number"`
	Node    string  `json:"node"`
	Fence   uint64  `json:"fence"`
	Outcome *string `json:"outcome"`
}

// ActionStatus is an action as it stands.
type ActionStatus struct {
	Type     string `json:"type"`
	Label    string `json:"label"`
	State    string `json:"state"`
	Current  *Run   `json:"current"`
	Last     *Run   `json:"last"`
	Disabled *struct {
		Why string `json:"why"`
	} `json:"disabled"`
	Problem *struct {
		Why string `json:"why"`
	} `json:"problem"`
}

// newestRun is the number of the newest run; 0: there is none.
func (s *ActionStatus) newestRun() uint64 {
	if s.Last == nil {
		return 0
	}
	return s.Last.Number
}

// Actions asks a node how the actions are doing, by TYPE/LABEL.
func (m *Member) Actions() (map[string]ActionStatus, error) {
	var answer struct {
		Actions []ActionStatus `json:"actions"`
	}
	if err := m.fetchJSON("/v1/actions", &answer); err != nil {
		return nil, err
	}
	out := map[string]ActionStatus{}
	for _, a := range answer.Actions {
		out[a.Type+"/"+a.Label] = a
	}
	return out, nil
}

// Runs asks a node for all runs of an action with their effects, in order.
func (m *Member) Runs(action string) ([]Run, error) {
	all, err := m.Actions()
	if err != nil {
		return nil, err
	}
	status := all[action]
	var out []Run
	for n := uint64(1); n <= status.newestRun(); n++ {
		r, err := m.fetchRun(action, n)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// fetchRun asks a node for a run with its effects.
func (m *Member) fetchRun(action string, number uint64) (Run, error) {
	var answer struct {
		Run     Run      `json:"run"`
		Effects []Effect `json:"effects"`
	}
	err := m.fetchJSON(fmt.Sprintf("/v1/actions/%s/runs/%d", action, number), &answer)
	answer.Run.Ledger = answer.Effects
	return answer.Run, err
}

// Order tells an action to pause or resume.
func (m *Member) Order(action, verb string) error { return m.orderAction(action, verb, "") }

func (m *Member) orderAction(action, verb, body string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/actions/"+action+":"+verb, strings.NewReader(body))
	if err != nil {
		return err
	}
	client := site.Local(m.Data)
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("%s %s %s: %s: %s", m.Name, verb, action, resp.Status, text)
	}
	return nil
}
