package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

func TestServer_ErrorThatPasses_Is503WithRetryAfter(t *testing.T) {
	s := &Server{opt: Options{Log: slog.New(slog.DiscardHandler)}}
	inside := &bufferedResponse{head: http.Header{}}
	s.answerError(inside, httptest.NewRequest(http.MethodGet, "/v1/usage", http.NoBody), store.ErrNoRoom)
	for _, c := range []struct {
		err    error
		status int
		after  string
	}{
		{fmt.Errorf("usage: %w", access.ErrUnavailable), 503, "1"},
		{fmt.Errorf("actions: %w", store.ErrClosed), 503, "1"},
		{fmt.Errorf("%w: no leader", ErrNotNow), 503, "1"},
		{fmt.Errorf("answer: %w", store.ErrNoRoom), 503, "5"},
		{actionError(fmt.Errorf("action: %w", ErrNotNow)), 503, "1"},
		{newRetryableRefusal("nothing was done"), 503, "1"},
		{reportRefusal(inside.decodeInto("GET /v1/usage", nil)), 503, "5"},
		{newRefusal(http.StatusNotFound, "not found"), 404, ""},
		{errors.New("damaged"), 500, ""},
	} {
		for name, answer := range map[string]func(http.ResponseWriter, *http.Request, error){"v1": s.answerError, "auditor": s.answerReadError} {
			w := httptest.NewRecorder()
			answer(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), c.err)
			if got := w.Header().Get("Retry-After"); w.Code != c.status || got != c.after {
				t.Errorf("%s: %v is %d, Retry-After %q, want %d, %q", name, c.err, w.Code, got, c.status, c.after)
			}
		}
	}
}

// Whoever sends it again without a look may do it twice.
func TestServer_UnknownOutcome_Is503WithoutRetryAfter(t *testing.T) {
	s := &Server{opt: Options{Log: slog.New(slog.DiscardHandler)}}
	w := httptest.NewRecorder()
	s.answerError(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody), actionError(fmt.Errorf("action: %w", ErrUnknown)))
	if w.Code != 503 || w.Header().Get("Retry-After") != "" {
		t.Errorf("%d, %v", w.Code, w.Header())
	}
}
