package api

import (
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func quarantinedJSON(q *store.Quarantined, instead string) v1.Quarantined {
	return v1.Quarantined{
		Agent: q.Source.Agent, SourceType: q.Source.Type, SourceLabel: q.Source.Label, ID: q.ID, Reason: q.Reason, Message: q.Message,
		RecordID: q.RecordID, First: v1.Stamp(q.First), Last: v1.Stamp(q.Last), Count: q.Count, Truncated: q.Truncated, Instead: instead,
	}
}

// errEnough ends a scan early.
var errEnough = errors.New("enough")

// v1Quarantine is GET /v1/quarantine, without the raw input.
func (s *Server) v1Quarantine(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	out := v1.Quarantine{Quarantine: []v1.Quarantined{}}
	instead, err := view.InsteadOfRetry()
	if err != nil {
		return err
	}
	err = view.Quarantine(func(q *store.Quarantined) error {
		if out.More = len(out.Quarantine) == maxPage; out.More {
			return errEnough
		}
		out.Quarantine = append(out.Quarantine, quarantinedJSON(q, instead(q)))
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

// quarantineKey reads the source and the id of a path. "-" stands for an empty
// type or label, as what is pushed to an agent has.
func quarantineKey(r *http.Request) store.QuarantineKey {
	part := func(name string) string {
		if v := r.PathValue(name); v != "-" {
			return v
		}
		return ""
	}
	return store.QuarantineKey{Source: record.Origin{Agent: part("agent"), Type: part("type"), Label: part("label")}, ID: r.PathValue("id")}
}

func (s *Server) findQuarantined(view *access.View, key store.QuarantineKey) (store.Quarantined, error) {
	q, found, err := view.Quarantined(key.Source, key.ID)
	if err == nil && !found {
		err = newRefusal(http.StatusNotFound, "there is no quarantined job %s of %s", key.ID, key.Source)
	}
	return q, err
}

// v1Quarantined is GET /v1/quarantine/{agent}/{type}/{label}/{id}, with the raw
// input.
func (s *Server) v1Quarantined(w http.ResponseWriter, r *http.Request, view *access.View) error {
	q, err := s.findQuarantined(view, quarantineKey(r))
	if err != nil {
		return err
	}
	instead, err := view.InsteadOfRetry()
	if err != nil {
		return err
	}
	out := quarantinedJSON(&q, instead(&q))
	raw := string(q.Raw)
	if !utf8.ValidString(raw) {
		raw = strings.ToValidUTF8(raw, "\uFFFD")
	}
	out.Raw = raw
	answerJSON(w, http.StatusOK, out)
	return nil
}

// v1QuarantineDrop is DELETE of a quarantined job.
func (s *Server) v1QuarantineDrop(w http.ResponseWriter, r *http.Request, view *access.View) error {
	key := quarantineKey(r)
	if _, err := s.findQuarantined(view, key); err != nil {
		return err
	}
	if err := s.commitCommand(r.Context(), &store.QuarantineDropCommand{Keys: []store.QuarantineKey{key}}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// v1QuarantineRetry is POST …:retry: the agent maps the job again.
func (s *Server) v1QuarantineRetry(w http.ResponseWriter, r *http.Request, view *access.View) error {
	q, err := s.findQuarantined(view, quarantineKey(r))
	if err != nil {
		return err
	}
	instead, err := view.InsteadOfRetry()
	if err != nil {
		return err
	}
	if what := instead(&q); what != "" {
		return newRefusal(http.StatusConflict, "no agent can map the job again: %s", what)
	}
	if s.opt.Agents == nil {
		return newRefusal(http.StatusServiceUnavailable, "this node pulls from no agents")
	}
	if err := s.opt.Agents.Retry(r.Context(), &q); err != nil {
		return newRefusal(http.StatusConflict, "%v", err)
	}
	answerJSON(w, http.StatusAccepted, v1.Message{Message: "the agent has mapped the job; its record comes with the next pull and settles the quarantine"})
	return nil
}
