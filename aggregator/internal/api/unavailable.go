package api

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// The seconds after which a client may try again what failed for a reason that passes.
const (
	afterLeader = "1" // a leader is elected, or another node is asked
	afterRoom   = "5" // memory is given back
)

// retryAfter returns the seconds after which a request may be tried again that failed for a
// reason that passes: this node stops or knows no leader, or it has no room for the answer.
// Then nothing was done, and the status is 503. "": the reason stays.
func retryAfter(err error) string {
	var known *refusal
	switch {
	case errors.As(err, &known):
		return known.after
	case isMemoryShortage(err):
		return afterRoom
	case errors.Is(err, access.ErrUnavailable), errors.Is(err, store.ErrClosed), errors.Is(err, ErrNotNow):
		return afterLeader
	}
	return ""
}

// retryText returns the words for an error of which [retryAfter] says that it passes.
func retryText(err error) string {
	if errors.Is(err, access.ErrUnavailable) {
		return err.Error() // it says so
	}
	return err.Error() + "; try again in a moment"
}

// newRetryableRefusal is the refusal of a request that may be sent again as it is.
func newRetryableRefusal(format string, args ...any) error {
	return &refusal{status: http.StatusServiceUnavailable, detail: fmt.Sprintf(format, args...), after: afterLeader}
}

// answerReadError answers the error of one of AUDITOR's reads.
func (s *Server) answerReadError(w http.ResponseWriter, r *http.Request, err error) {
	after := retryAfter(err)
	if after != "" {
		w.Header().Set("Retry-After", after)
	}
	known, refused := errors.AsType[*refusal](err)
	switch {
	case refused:
		jsonError(w, known.status, known.detail)
	case after != "":
		if !isMemoryShortage(err) {
			s.opt.Log.Warn("a read was refused", "path", r.URL.Path, "error", err)
		}
		jsonError(w, http.StatusServiceUnavailable, retryText(err))
	default:
		if r.Context().Err() == nil {
			s.opt.Log.Error("an answer failed", "path", r.URL.Path, "error", err)
		}
		jsonError(w, http.StatusInternalServerError, err.Error())
	}
}
