package api

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
)

// words are the fields of a query, each given at most once; one that is missing is "".
type words map[string]string

// readWords reads a query of fields that are known. The error is a refusal: a field
// that were passed over would be an answer to another question.
func readWords(rawQuery string, known ...string) (words, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	w := words{}
	for field, list := range values {
		switch {
		case !slices.Contains(known, field):
			return nil, refuse(http.StatusBadRequest, "unknown field `%s`, expected one of %s", field, quoted(known))
		case len(list) > 1:
			return nil, refuse(http.StatusBadRequest, "%s given more than once", field)
		}
		w[field] = list[0]
	}
	return w, nil
}

// site is the time zone by whose clock days begin where a question names none.
func (s *Server) site() *time.Location {
	if s.opt.Zone == nil {
		return time.UTC
	}
	return s.opt.Zone()
}

// zone reads the field zone.
func (s *Server) zone(name string) (*time.Location, error) {
	if name == "" {
		return s.site(), nil
	}
	return calendar.Zone(name)
}

// at is the instant of the field at; now without one.
func (w words) at(now record.Time, zone *time.Location) (record.Time, error) {
	if w["at"] == "" {
		return now, nil
	}
	at, err := calendar.Point(w["at"], now, zone)
	if err != nil {
		return at, refuse(http.StatusBadRequest, "at: %v", err)
	}
	return at, nil
}

// window is that of the fields window, or from and to; nil without any of them.
func (w words) window(now record.Time, zone *time.Location) (window *calendar.Window, err error) {
	word, from, to := w["window"], w["from"], w["to"]
	var found calendar.Window
	switch {
	case word+from+to == "":
		return nil, nil //nolint:nilnil // no window was asked for
	case word != "" && from+to != "":
		return nil, refuse(http.StatusBadRequest, "window cannot be combined with from or to")
	case word != "":
		found, err = calendar.ParseWindow(word, now, zone)
	default:
		found, err = calendar.Between(from, to, now, zone)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	return &found, nil
}
