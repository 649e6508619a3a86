package api

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
)

// queryWords are the fields of a query, each given at most once; a missing one is "".
type queryWords map[string]string

// parseWords reads a query of fields that are known. The error is a refusal: a field
// that were passed over would be an answer to another question.
func parseWords(rawQuery string, known ...string) (queryWords, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, newRefusal(http.StatusBadRequest, "%v", err)
	}
	w := queryWords{}
	for field, list := range values {
		switch {
		case !slices.Contains(known, field):
			return nil, newRefusal(http.StatusBadRequest, "unknown field `%s`, expected one of %s", field, quoteWords(known))
		case len(list) > 1:
			return nil, newRefusal(http.StatusBadRequest, "%s given more than once", field)
		}
		w[field] = list[0]
	}
	return w, nil
}

// siteZone is the time zone by whose clock days begin where a question names none.
func (s *Server) siteZone() *time.Location {
	if s.opt.Zone == nil {
		return time.UTC
	}
	return s.opt.Zone()
}

// parseZone reads the field zone.
func (s *Server) parseZone(name string) (*time.Location, error) {
	if name == "" {
		return s.siteZone(), nil
	}
	return calendar.Zone(name)
}

// parseAt reads the instant of the field at; now without one.
func (w queryWords) parseAt(now record.Time, zone *time.Location) (record.Time, error) {
	if w["at"] == "" {
		return now, nil
	}
	at, err := calendar.Point(w["at"], now, zone)
	if err != nil {
		return at, newRefusal(http.StatusBadRequest, "at: %v", err)
	}
	return at, nil
}

// parseWindow reads that of the fields window, or from and to; nil without any of them.
func (w queryWords) parseWindow(now record.Time, zone *time.Location) (window *calendar.Window, err error) {
	word, from, to := w["window"], w["from"], w["to"]
	var found calendar.Window
	switch {
	case word+from+to == "":
		return nil, nil //nolint:nilnil // no window was asked for
	case word != "" && from+to != "":
		return nil, newRefusal(http.StatusBadRequest, "window cannot be combined with from or to")
	case word != "":
		found, err = calendar.ParseWindow(word, now, zone)
	default:
		found, err = calendar.Between(from, to, now, zone)
	}
	if err != nil {
		return nil, newRefusal(http.StatusBadRequest, "%v", err)
	}
	return &found, nil
}
