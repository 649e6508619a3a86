package api

import (
	"errors"
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// mostJobIDs is how many ids of a job an answer has.
const mostJobIDs = 100

var errEnoughIDs = errors.New("enough ids")

// v1Jobs is GET /v1/jobs: the ids under which records of a job are or were.
func (s *Server) v1Jobs(w http.ResponseWriter, r *http.Request, view *access.View) error {
	q, err := decodeQuery[v1.JobRecordsQuery](r)
	if err != nil {
		return err
	}
	if err := record.ValidateID(q.ID); err != nil {
		return newRefusal(http.StatusBadRequest, "id: %v", err)
	}
	out := v1.JobRecords{Records: []string{}}
	whole, err := view.JobIDs(q.ID, func(id string) error {
		if len(out.Records) == mostJobIDs {
			return errEnoughIDs
		}
		out.Records = append(out.Records, id)
		return nil
	})
	if out.More = !whole; errors.Is(err, errEnoughIDs) {
		out.More, err = true, nil
	}
	if err == nil {
		answerJSON(w, http.StatusOK, out)
	}
	return err
}
