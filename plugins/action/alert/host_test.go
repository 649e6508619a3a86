package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/report/smtptest"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// configure reads the inside of a config block.
func configure(t *testing.T, text string) (*action, error) {
	t.Helper()
	a := &action{}
	return a, a.Configure(t.Context(), plugintest.Config(t, "site", text))
}

// cluster answers as the daemon does, and carries out what is planned as the host does: the
// state is kept as soon as a run is planned, and the ledger knows how each effect ended.
type cluster struct {
	t     *testing.T
	a     *action
	now   time.Time
	state []byte
	runs  []v1.ActionRunEffects

	findings  []v1.Finding
	budgets   []v1.Budget
	conflicts []v1.Entry
	usage     v1.Usage
	shares    v1.Subscription
	asked     string         // of the subscription
	fails     map[string]int // status by path
}

func newCluster(t *testing.T, text string) *cluster {
	t.Helper()
	if !strings.Contains(text, "keep =") {
		text = "keep = \"0s\"\n" + text
	}
	a, err := configure(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, a: a, now: time.Date(2026, 11, 3, 7, 0, 0, 0, time.UTC), fails: map[string]int{}}
}

// ServeHTTP implements http.Handler.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status := c.fails[r.URL.Path]; status > 0 {
		w.WriteHeader(status)
		fmt.Fprint(w, `{"detail":"it is refused"}`)
		return
	}
	var out any
	switch path := r.URL.Path; path {
	case "/v1/status":
		out = v1.Status{Verdict: &v1.Verdict{Findings: c.findings}}
	case "/v1/budgets":
		out = v1.Budgets{Budgets: c.budgets}
	case "/v1/conflicts":
		out = v1.Conflicts{Conflicts: c.conflicts}
	case "/v1/usage":
		out = c.usage
	case "/v1/subscription":
		c.asked = r.URL.RawQuery
		out = c.shares
	case "/v1/actions/alert/site/runs":
		var list v1.ActionRuns
		for _, run := range slices.Backward(c.runs) {
			list.Runs = append(list.Runs, run.Run)
		}
		out = list
	default:
		number, err := strconv.Atoi(strings.TrimPrefix(path, "/v1/actions/alert/site/runs/"))
		if err != nil || number > len(c.runs) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		out = c.runs[number-1]
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		c.t.Error(err)
	}
}

// plan makes a plan and keeps its state.
func (c *cluster) plan(arguments map[string]string) sdk.Plan {
	c.t.Helper()
	p, err := c.a.Plan(c.t.Context(), sdk.PlanStart{Now: c.now, State: c.state, Arguments: arguments}, sdk.NewData(c))
	if err != nil {
		c.t.Fatal(err)
	}
	if p.State != nil {
		c.state = p.State
	}
	return p
}

// lost is an outcome that no one wrote down.
func lost(a *action, t sdk.Attempt) sdk.Result { return a.Probe(nil, t, nil) } //nolint:staticcheck // it asks nothing

// run is a run as the host makes it; die says of which effects the node dies, after it has done
// them.
func (c *cluster) run(die ...string) sdk.Plan {
	c.t.Helper()
	p := c.plan(nil)
	run := v1.ActionRunEffects{Run: v1.ActionRun{Run: uint64(len(c.runs) + 1), Planned: v1.Time{Time: c.now.Truncate(time.Microsecond)}}}
	for i, e := range p.Effects {
		attempt := sdk.Attempt{Effect: e, Key: fmt.Sprint(len(c.runs), " ", i)}
		r := c.a.Execute(c.t.Context(), attempt, nil)
		if slices.Contains(die, e.Name) {
			r = lost(c.a, attempt)
		}
		state := map[sdk.Outcome]string{sdk.Done: "done", sdk.Rejected: "rejected", sdk.Unknown: "unknown"}[r.Outcome]
		if state == "" {
			c.t.Fatalf("%s: an outcome after which no rule is looked at: %+v", e.Name, r)
		}
		run.Effects = append(run.Effects, v1.ActionEffect{Name: e.Name, State: state, Attempts: []v1.ActionAttempt{{Message: r.Message}}})
	}
	c.runs = append(c.runs, run)
	c.now = c.now.Add(time.Minute)
	return p
}

// finding is one of bursar status.
func (c *cluster) finding(id, about string) v1.Finding {
	return v1.Finding{Severity: "warning", ID: id, About: about, What: id + " of " + about, Do: "do " + id, Since: v1.Time{Time: c.now}}
}

// mailer takes mails.
type mailer struct {
	*smtptest.Server

	port string
	down atomic.Bool
}

func newMailer(t *testing.T) *mailer {
	t.Helper()
	m := &mailer{Server: &smtptest.Server{}}
	m.Say = func(command string, _ []byte) string {
		switch {
		case m.down.Load() && command == "CONNECT":
			return "421 not now"
		case strings.Contains(command, "RCPT TO:<refused@"):
			return "550 5.1.1 no such user"
		}
		return ""
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, m.port, _ = net.SplitHostPort(l.Addr().String()) // which was listened to
	done := make(chan struct{})
	go func() { defer close(done); m.Serve(l) }()
	t.Cleanup(func() { l.Close(); <-done })
	return m
}

// block is a receiver of mails.
func (m *mailer) block(name string, to ...string) string {
	text, _ := json.Marshal(to) // of strings
	return fmt.Sprintf("receiver %q {\n to = %s\n mail {\n  from = \"bursar@example.org\"\n  host = \"127.0.0.1\"\n  port = %s\n  tls = \"none\"\n }\n}\n", name, text, m.port)
}

// subjects are those of the mails to an address.
func (m *mailer) subjects(to string) (list []string) {
	for _, text := range m.Mails() {
		if !strings.Contains(string(text), "\nTo: <"+to+">") {
			continue
		}
		_, rest, _ := strings.Cut(string(text), "\nSubject: ")
		subject, _, _ := strings.Cut(strings.ReplaceAll(rest, "\n ", " "), "\n")
		list = append(list, strings.TrimSpace(subject))
	}
	return list
}

// hook takes posts.
type hook struct {
	*httptest.Server

	mu     sync.Mutex
	down   bool
	bodies [][]byte
	keys   []string
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		if err != nil || h.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		h.bodies, h.keys = append(h.bodies, body), append(h.keys, r.Header.Get("Idempotency-Key"))
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) set(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
}

// take returns what was posted since the last call.
func (h *hook) take() [][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.bodies
	h.bodies = nil
	return list
}

// changes are those of a webhook's posts since the last call, a repeated one once.
func (h *hook) changes(t *testing.T, seen map[string]bool) (list []string) {
	t.Helper()
	for _, body := range h.take() {
		var p posted
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Changes {
			if !seen[c.ID] {
				seen[c.ID] = true
				list = append(list, c.Rule+" "+c.About+" "+c.State)
			}
		}
	}
	return list
}
