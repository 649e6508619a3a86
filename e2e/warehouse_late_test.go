//go:build e2e

package e2e_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
)

// holder lies between the action and ClickHouse, and holds inserts back, as a server does that
// has received them and not begun with them.
type holder struct {
	*warehouse

	mu     sync.Mutex
	tables []string // of each, one insert is still to be held
	held   []*http.Request
}

// ServeHTTP forwards a request, or holds it and kills the plugin.
func (h *holder) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the plugin was killed
	}
	q, _ := http.NewRequest(r.Method, h.ch.URL()+r.URL.String(), bytes.NewReader(body))
	q.Header = r.Header.Clone()
	h.mu.Lock()
	hold := len(h.tables) > 0 && strings.HasPrefix(r.URL.Query().Get("query"), "INSERT INTO `bursar`.`"+h.tables[0]+"` ")
	if hold {
		h.tables = h.tables[1:]
		h.held = append(h.held, q)
	}
	h.mu.Unlock()
	if hold {
		h.agg.KillChildren()
		hangUp(out)
		return
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		hangUp(out)
		return
	}
	defer answer.Body.Close()
	maps.Copy(out.Header(), answer.Header)
	out.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(out, answer.Body) // the plugin may have been killed
}

// count is how many inserts are held.
func (h *holder) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held)
}

// TestWarehouse_InsertBegunAfterTheNextAttempt_AddsNothing is of a current engine, which
// deduplicates inserts by a token.
func TestWarehouse_InsertBegunAfterTheNextAttempt_AddsNothing(t *testing.T) {
	t.Parallel()
	w := makeWarehouse(t, 12)
	w.ch = rig.NewCurrentClickHouse(t, w.site.Address())
	w.ch.Start()
	h := &holder{warehouse: w}
	proxy := httptest.NewServer(h)
	defer proxy.Close()
	w.begin(proxy.URL, `timeout = "10s"`)
	w.fill(100)
	w.rest()
	w.agree()
	h.mu.Lock()
	h.tables = []string{"ledger", "daily", "monthly"}
	h.mu.Unlock()
	w.shake(60)
	w.site.Eventually("an insert into each table is held", func() (bool, string) {
		_, _ = w.agg.Bursar("actions", "resume", "warehouse/national")
		_, _ = w.agg.Bursar("actions", "run", "warehouse/national") // it waits after failures
		time.Sleep(200 * time.Millisecond)
		return h.count() == 3, w.said(0)
	})
	_, _ = w.agg.Bursar("actions", "resume", "warehouse/national")
	w.rest()
	w.order("check=all", "agree at change")
	w.agree()
	for _, q := range h.held { // now the server begins with them
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Error(answer.Status, string(text), err)
		}
		answer.Body.Close()
	}
	w.agree()
	w.order("check=all", "agree at change")
	w.order("replace=all", "agree at change") // whose batches have tokens of their own
	w.agree()
}
