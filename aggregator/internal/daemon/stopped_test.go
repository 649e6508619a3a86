package daemon

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// A request that was let in just before the end meets a raft that has stopped and a store
// that is closed.
func TestAggregator_Stopped_Answers503(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(Settings{Name: "agg1", DataDir: t.TempDir(), MinFree: 1 << 20, Plain: []net.Listener{l}, Access: access.Rules{Plain: identity.Admin}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	until(t, func() bool {
		_, err := a.replica.Write(t.Context(), &store.DismissStopsCommand{IDs: []string{"none"}})
		return err == nil
	})
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/health_check", "/record/r1", "/records", "/v1/records", "/v1/records/r1", "/v1/usage?window=2026-03&by=user", "/v1/reports/users?window=2026-03",
		"/v1/agents", "/v1/actions", "/v1/config", "/v1/changes", "/v1/records?consistency=stale", "/ui/records",
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), actionPrincipalKey{}, access.Daemon()), 100*time.Millisecond) // no leader will come
		a.server.ServeHTTP(w, r.WithContext(ctx))
		cancel()
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("GET %s: %d, %v: %s", path, w.Code, w.Header(), w.Body)
		}
	}
}
