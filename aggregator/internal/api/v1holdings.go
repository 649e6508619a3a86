package api

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// v1Holdings is GET /v1/holdings: the records of which an origin that is not shown names a person.
func (s *Server) v1Holdings(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	q, err := decodeQuery[v1.HoldingsQuery](r)
	if err != nil {
		return err
	}
	if q.Name == "" {
		return newRefusal(http.StatusBadRequest, "name is missing: say whose records are wanted")
	}
	directory, err := s.currentDirectory()
	if err != nil {
		return err
	}
	key := cmp.Or(q.Key, directory.Settings().UserKey)
	list, more, err := listEntries(func(yield func(*record.Entry) error) error {
		return view.HeldAfter(q.After, func(e *record.Entry) error {
			if err := r.Context().Err(); err != nil {
				return err
			}
			if !namesUnshown(e, key, q.Name) {
				return nil
			}
			return yield(e)
		})
	})
	for i := 0; i < len(list) && err == nil; i++ {
		list[i].Record, err = shownRecord(view, list[i].RecordID)
	}
	if err != nil {
		return err
	}
	s.extendWrite(w)
	answerJSON(w, http.StatusOK, v1.Holdings{Holdings: list, More: more})
	return nil
}

// namesUnshown reports whether an origin names the person, and the record that is shown does not.
func namesUnshown(e *record.Entry, key, name string) bool {
	names := func(r *record.Record) bool { return r != nil && slices.Contains(r.Meta.Get(key), name) }
	return !names(e.Shown()) && slices.ContainsFunc(e.Holdings, func(h record.Holding) bool { return names(h.Record) })
}
