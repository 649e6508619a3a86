//go:build e2e

package e2e_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
)

const webhookAction = `
action "webhook" "mirror" {
  schedule = "@change 1s"
  config {
    url     = "%s/hook"
    secret  = file(%q)
    headers = { Authorization = "Bearer ${file(%q)}" }
    input   = "changes"
    batch   = 2
  }
}
`

// mirror is a receiver that keeps its word: it does what has a key once, and keeps of
// each record what has the greatest number.
type mirror struct {
	t             *testing.T
	secret, token string

	mu      sync.Mutex
	posts   int
	keys    map[string]int
	fence   uint64
	records map[string]uint64
}

// ServeHTTP lets the answers of the first posts be no good ones.
func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil || !m.signed(r.Header.Get("Bursar-Signature"), body) || r.Header.Get("Authorization") != "Bearer "+m.token {
		m.t.Errorf("%v, %v", r.Header, err)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	m.posts++
	if m.posts == 1 {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "not with", m.token, "and", m.secret)
		return
	}
	m.take(r, body)
	if m.posts == 3 {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close() // it was taken, and no one is told
		}
	}
}

func (m *mirror) signed(header string, body []byte) bool {
	var at, sum string
	if _, err := fmt.Sscanf(strings.Replace(header, ",v1=", " ", 1), "t=%s %s", &at, &sum); err != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(m.secret))
	fmt.Fprintf(mac, "%s.%s", at, body)
	return fmt.Sprintf("%x", mac.Sum(nil)) == sum
}

func (m *mirror) take(r *http.Request, body []byte) {
	var fence uint64
	if _, err := fmt.Sscan(r.Header.Get("Bursar-Fence"), &fence); err != nil || fence <= m.fence {
		m.t.Errorf("the fence is %q after %d", r.Header.Get("Bursar-Fence"), m.fence)
	}
	m.fence = fence
	key := r.Header.Get("Idempotency-Key")
	if m.keys[key]++; m.keys[key] > 1 {
		return
	}
	var in struct {
		Changes []struct {
			Seq uint64
			ID  string `json:"record_id"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil || len(in.Changes) == 0 || len(in.Changes) > 2 {
		m.t.Errorf("%s: %v", body, err)
	}
	for _, c := range in.Changes {
		m.records[c.ID] = max(m.records[c.ID], c.Seq)
	}
}

// has waits until the receiver has n records.
func (m *mirror) has(s *site.Site, n int) {
	s.Eventually(fmt.Sprintf("%d records are posted", n), func() (bool, string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.records) == n, fmt.Sprint(m.posts, " posts: ", m.records)
	})
}

func TestWebhook_Changes_ArePostedSignedWithoutSecrets(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	m := &mirror{t: t, secret: "e2e-5ecret-of-the-signature", token: "e2e-t0ken-of-the-header", keys: map[string]int{}, records: map[string]uint64{}}
	receiver := httptest.NewServer(m)
	defer receiver.Close()
	secrets := t.TempDir()
	for name, text := range map[string]string{"secret": m.secret, "token": m.token} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agg := s.Aggregator()
	agg.Add(fmt.Sprintf(webhookAction, receiver.URL, filepath.Join(secrets, "secret"), filepath.Join(secrets, "token")))
	agg.Start()
	agg.AwaitReady()
	for i := range 5 {
		handIn(t, agg, i)
	}
	m.has(s, 5)
	handIn(t, agg, 5)
	m.has(s, 6)
	history, err := agg.Bursar("actions", "history", "webhook/mirror")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := agg.Bursar("actions", "plan", "-v", "webhook/mirror", "after=0")
	if err != nil || !strings.Contains(plan, "post 2 changes, up to number 2 to "+receiver.URL) || !strings.Contains(plan, "Authorization: ***") {
		t.Errorf("%s, %v", plan, err)
	}
	ledger := ""
	for run := 1; ; run++ { // until there is no such run
		var one json.RawMessage
		if agg.Get(fmt.Sprint("/v1/actions/webhook/mirror/runs/", run), &one) != nil {
			break
		}
		ledger += string(one)
	}
	if !strings.Contains(ledger, "503 Service Unavailable: not with *** and ***") {
		t.Error(ledger)
	}
	agg.Stop()
	for _, secret := range []string{m.secret, m.token} {
		if strings.Contains(history+plan+ledger, secret) {
			t.Errorf("%s is shown", secret)
		}
		nowhere(t, s.Dir, secret)
	}
}

// handIn writes a record.
func handIn(t *testing.T, agg *site.Aggregator, n int) {
	t.Helper()
	agg.Post("/record", fmt.Sprintf(`{"record_id":"r%d","meta":{},"components":[{"name":"Cores","amount":1,"scores":[]}],"start_time":"2026-01-01T00:00:00Z","stop_time":"2026-01-01T01:00:00Z"}`, n))
}

// nowhere fails the test when a file below a folder has a text.
func nowhere(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			t.Errorf("%q is in %s", text, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
