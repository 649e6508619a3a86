package daemon_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// start runs an aggregator on dir and returns its address and a function that
// stops it.
func start(t *testing.T, dir string) (addr string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, daemon.Settings{Name: "agg1", DataDir: dir, Plain: []net.Listener{l}, Log: slog.New(slog.DiscardHandler)})
}

// startWith runs an aggregator with settings that have a plain listener.
func startWith(t *testing.T, set daemon.Settings) (addr string, stop func()) {
	t.Helper()
	_, addr, stop = startOpen(t, set)
	return addr, stop
}

// startOpen is startWith that returns the aggregator too.
func startOpen(t *testing.T, set daemon.Settings) (a *daemon.Aggregator, addr string, stop func()) {
	t.Helper()
	set.Access = access.Rules{Plain: identity.Admin}
	set.MinFree = cmp.Or(set.MinFree, 1<<20) // how full the machine's disk is shall not matter
	a, err := daemon.Open(set)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return a, "http://" + set.Plain[0].Addr().String(), func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func call(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestARecordIsStoredOnceAndIsThereAfterARestart(t *testing.T) {
	dir := t.TempDir()
	addr, stop := start(t, dir)
	const rec = `{"record_id":"r1","meta":{"site_id":["a"]},"components":[{"name":"Cores","amount":8,"scores":[{"name":"HEPSPEC06","value":10}]}],"start_time":"2023-02-24T00:27:58.123456Z"}`
	steps := []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/health_check", "", 200, ""},
		{"GET", "/records", "", 200, ""},
		{"POST", "/record", rec, 200, ""},
		{"POST", "/record", rec, 500, "RECORD_EXISTS"},
		{"GET", "/record/r1", "", 200, `{"record_id":"r1","meta":{"site_id":["a"]},"components":[{"name":"Cores","amount":8,"scores":[{"name":"HEPSPEC06","value":10.0}]}],"start_time":"2023-02-24T00:27:58.123456Z","stop_time":null,"runtime":null}`},
		{"PUT", "/record", `{"record_id":"r1","components":[],"stop_time":"2023-02-24T01:27:58Z"}`, 200, ""},
		{"PUT", "/record", `{"record_id":"r2","components":[],"stop_time":"2023-02-24T01:27:58Z"}`, 404, "Updating unknown record r2 not possible."},
		{"GET", "/record/r2", "", 404, `{"error":"there is no record r2"}`},
		{"DELETE", "/record", "", 405, ""},
		{"GET", "/nowhere", "", 404, "The requested resource was not found. 404 Not Found"},
	}
	for _, s := range steps {
		if status, got := call(t, s.method, addr+s.path, s.body); status != s.status || got != s.want {
			t.Errorf("%s %s: %d %q, want %d %q", s.method, s.path, status, got, s.status, s.want)
		}
	}
	stop()
	addr, stop = start(t, dir)
	defer stop()
	status, got := call(t, "GET", addr+"/records?meta[site_id][c][0]=a", "")
	if status != 200 || !strings.HasSuffix(got, `"stop_time":"2023-02-24T01:27:58Z","runtime":3599}`+"\n") {
		t.Errorf("after the restart: %d %q", status, got)
	}
}

func TestABulkLargerThanAnEntryIsAllOrNothing(t *testing.T) {
	addr, stop := start(t, t.TempDir())
	defer stop()
	bulk := func(prefix string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"record_id":"%s%d","meta":{"comment":["%d"]},"components":[],"start_time":"2023-02-24T00:00:00Z","stop_time":"2023-02-24T01:00:00Z"}`, prefix, i, i*7919)
		}
		return "[" + b.String()[1:] + "]"
	}
	if status, got := call(t, "POST", addr+"/records", bulk("a", 20_000)); status != 200 || got != "" {
		t.Fatal(status, got)
	}
	if status, got := call(t, "POST", addr+"/records", bulk("b", 10_000)[:1]+bulk("a", 20_000)[1:]); status != 500 || got != "RECORD_EXISTS" {
		t.Fatal(status, got)
	}
	if _, got := call(t, "GET", addr+"/records", ""); strings.Count(got, "\n") != 20_000 {
		t.Fatalf("%d records", strings.Count(got, "\n"))
	}
}
