package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// v1Changes is GET /v1/changes: the change feed behind after, tombstones
// included, and the position to ask from next.
func (s *Server) v1Changes(w http.ResponseWriter, r *http.Request, view *access.View) error {
	q, err := parseChanges(r.URL.RawQuery)
	if err != nil {
		return err
	}
	if q.After > view.Seq() {
		return refuse(http.StatusBadRequest, "after is %d, but the feed ends at %d: the position is not of this cluster", q.After, view.Seq())
	}
	body, last, n := []byte(`{"changes":[`), q.After, 0
	room := newPageRoom(r, q.Limit)
	err = view.Query(r.Context(), q, func(row *columns.Row) error {
		if err := room.grow(len(body)); err != nil {
			return err
		}
		if n++; n > 1 {
			body = append(body, ',')
		}
		body = appendChange(body, row)
		last = row.Seq
		return nil
	})
	if err != nil {
		return err
	}
	if n < q.Limit {
		last = view.Seq()
	}
	body = strconv.AppendUint(append(body, `],"last":`...), last, 10)
	room.settle(len(body))
	raw(w, http.StatusOK, append(body, "}\n"...))
	return nil
}

// parseChanges reads after and limit, and refuses everything else: a filter that
// is passed over would be a feed with holes.
func parseChanges(rawQuery string) (store.Query, error) {
	q := store.Query{Order: store.BySeq, Tombstones: true, Limit: defaultPage, Lent: true}
	words, err := readWords(rawQuery, "after", "limit")
	if err != nil {
		return q, err
	}
	if text, given := words["after"]; given {
		if q.After, err = parsePosition(text); err != nil {
			return q, err
		}
	}
	if text, given := words["limit"]; given {
		q.Limit, err = parsePageSize(text)
	}
	return q, err
}

func parsePosition(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "after is %q, want the number of a change", s)
	}
	return n, nil
}

func parsePageSize(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxPage {
		return 0, refuse(http.StatusBadRequest, "limit is %q, want a number from 1 to %d", s, maxPage)
	}
	return n, nil
}

// appendChange writes {"seq":…,"record_id":…,"record":…}; record is null when the
// id shows nothing any more.
func appendChange(b []byte, row *columns.Row) []byte {
	b = strconv.AppendUint(append(b, `{"seq":`...), row.Seq, 10)
	id, _ := json.Marshal(row.Record.ID) // a string always has a JSON text
	b = append(append(b, `,"record_id":`...), id...)
	b = append(b, `,"record":`...)
	if row.Tombstone {
		return append(b, "null}"...)
	}
	return append(appendV1(b, row), '}')
}
