package api

import (
	"encoding/json"
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// v1Record is GET /v1/records/{id}: what is shown, and what everyone says.
func (s *Server) v1Record(w http.ResponseWriter, r *http.Request, view *access.View) error {
	entry, err := findEntry(view, r.PathValue("id"))
	if err != nil {
		return err
	}
	out, err := entryJSON(&entry)
	if err == nil {
		out.Record, err = shownRecord(view, entry.ID)
	}
	if err == nil {
		answerJSON(w, http.StatusOK, out)
	}
	return err
}

// shownRecord is the record that is shown under an id; nil when none is.
func shownRecord(view *access.View, id string) (*v1.FullRecord, error) {
	row, found, err := view.Get(id)
	if err != nil || !found {
		return nil, err
	}
	out := &v1.FullRecord{}
	return out, json.Unmarshal(row.AppendV1(nil), out)
}

// findEntry returns the entry of an id of which anything is known.
func findEntry(view *access.View, id string) (record.Entry, error) {
	if err := record.ValidateID(id); err != nil {
		return record.Entry{}, newRefusal(http.StatusBadRequest, "%v", err)
	}
	entry, err := view.Entry(id)
	if err != nil || len(entry.Holdings) > 0 || entry.Deleted {
		return entry, err
	}
	why, err := view.WhyUnknown(id)
	if err != nil {
		return entry, err
	}
	if why != "" {
		why = "; " + why
	}
	return entry, newRefusal(http.StatusNotFound, "record %s not found%s", id, why)
}

// v1Delete is DELETE /v1/records/{id}: the id stays, marked, and beats every
// later write.
func (s *Server) v1Delete(w http.ResponseWriter, r *http.Request, view *access.View) error {
	entry, err := findEntry(view, r.PathValue("id"))
	if err == nil && !entry.Deleted {
		err = s.commitCommand(r.Context(), &store.DeleteCommand{IDs: []string{entry.ID}, By: callerName(r), Now: clockNow()})
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// v1Undelete is POST /v1/records/{id}:undelete: the mark goes, and the next write
// counts again.
func (s *Server) v1Undelete(w http.ResponseWriter, r *http.Request, view *access.View) error {
	entry, err := findEntry(view, r.PathValue("id"))
	if err == nil && entry.Deleted {
		err = s.commitCommand(r.Context(), &store.UndeleteCommand{IDs: []string{entry.ID}, By: callerName(r), Now: clockNow()})
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// callerName names who asks.
func callerName(r *http.Request) string { return access.From(r.Context()).Name }

func entryJSON(e *record.Entry) (v1.Entry, error) {
	out := v1.Entry{RecordID: e.ID, Deleted: e.Deleted, Conflict: e.Conflict(), Holdings: []v1.Holding{}}
	for i := range e.Holdings {
		h := &e.Holdings[i]
		v := h.Effective()
		j := v1.Holding{Origin: h.Origin.String(), Rank: h.Rank.String(), Ended: v.Ended, Withdrawn: h.Withdrawn()}
		if v.Observed != 0 {
			j.Observed = v1.Stamp(record.Time(v.Observed))
		}
		if h.Waiting() {
			j.WaitingStop = v1.Stamp(h.Stop)
		}
		if r := h.Shown(); r != nil {
			j.Record = &v1.Record{}
			if err := json.Unmarshal(wire.AppendJSON(nil, r), j.Record); err != nil {
				return out, err
			}
		}
		out.Holdings = append(out.Holdings, j)
	}
	return out, nil
}
