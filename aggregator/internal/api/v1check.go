package api

import (
	"context"
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Checker compares what a node has derived from its records with them.
type Checker interface {
	// Check reads everything. It returns the index at which it did, and what differs,
	// in words.
	Check(ctx context.Context) (index uint64, wrong []string, err error)
}

// checkTime is how long a check may take.
const checkTime = time.Hour

// v1Check is POST /v1/check: this node is checked, as it is now. One check runs at a
// time.
func (s *Server) v1Check(w http.ResponseWriter, r *http.Request) {
	if s.opt.Checker == nil {
		answerProblem(w, http.StatusNotFound, "this server cannot check itself")
		return
	}
	if !s.checking.TryLock() {
		answerProblem(w, http.StatusConflict, "another check runs on this node")
		return
	}
	defer s.checking.Unlock()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(checkTime)) // a writer that cannot is a test's
	s.opt.Log.Info("a check begins", "by", access.From(r.Context()).Name)
	index, wrong, err := s.opt.Checker.Check(r.Context())
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	if wrong == nil {
		wrong = []string{}
	}
	for _, what := range wrong {
		s.opt.Log.Error("the check has found a difference", "what", what)
	}
	answerJSON(w, http.StatusOK, v1.Check{Index: index, Wrong: wrong})
}
