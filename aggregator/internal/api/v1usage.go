package api

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Usage answers questions about what was used.
type Usage interface {
	// Usage answers of the records that p may see, as they are now or later.
	Usage(ctx context.Context, p access.Principal, q sums.Query) (*sums.Answer, error)
}

// v1Usage is GET /v1/usage.
func (s *Server) v1Usage(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if s.opt.Usage == nil {
		return newRefusal(http.StatusNotImplemented, "this server does not add up usage")
	}
	now := s.currentTime()
	q, err := s.parseUsage(r, now)
	if err != nil {
		return err
	}
	// Before the sums: what is said to be complete is in them.
	about, err := s.completeness(view, q.Window, now)
	if err != nil {
		return err
	}
	reach, err := view.Reach(r.Context())
	if err != nil {
		return err
	}
	q.Known = knownSpan(&reach, q.Zone, now)
	q.Sources, q.NameSources = s.sourceBegins(view, &reach, q.Known), view.Principal().Rows.All()
	derivation := s.derivation()
	q.Derived, q.Weights = derivation.KeyNames(), derivation.WeightNames()
	switch {
	case view.Principal().Rows.All():
		if s.opt.Capacity != nil {
			q.Capacity = s.opt.Capacity()
		}
	case q.OfCapacity(), slices.Contains(q.Measures, accounting.EnergyMeteredMeasure), slices.Contains(q.Measures, accounting.EnergyIdleMeasure): // a part of the records beside what all of them run on is no share
		return access.ErrRows
	}
	ask := s.usageOf(view)
	page, err := usage.MakeTable(r.Context(), ask, q.Request)
	if err != nil {
		return usageError(r.Context(), view, derivation, err)
	}
	if page.Records == 0 && !isLenient(r) {
		u := unmatched{s, view, derivation, ask}
		if err := u.checkFilters(r.Context(), &q.Where, q.Having); err != nil {
			return err
		}
	}
	about.setHeaders(w.Header(), page)
	return s.sendUsage(w, r, q.format, page, about)
}

func (s *Server) currentTime() record.Time {
	if s.opt.Now != nil {
		return record.FromStd(s.opt.Now())
	}
	return record.FromStd(time.Now())
}

// derivation is what keys and weights follow from others by now.
func (s *Server) derivation() *usage.Derivation {
	if s.opt.Derivation == nil {
		return &usage.Derivation{}
	}
	return s.opt.Derivation()
}

// usageError makes a refusal of an error that is the client's.
func usageError(ctx context.Context, view *access.View, derivation *usage.Derivation, err error) error {
	if unknown, ok := errors.AsType[*usage.UnknownKeyError](err); ok {
		return unknownKey(ctx, view, derivation, unknown)
	}
	if unknown, ok := errors.AsType[*usage.UnknownMeasureError](err); ok {
		return unknownMeasure(ctx, view, derivation, unknown)
	}
	if errors.Is(err, usage.ErrRequest) || errors.Is(err, sums.ErrQuery) {
		return newRefusal(http.StatusBadRequest, "%v", err)
	}
	return err
}

// unknownKey refuses a key that no record has, and says which is meant, or that it is a
// measure.
func unknownKey(ctx context.Context, view *access.View, derivation *usage.Derivation, unknown *usage.UnknownKeyError) error {
	keys, err := keysOf(ctx, view, derivation)
	if err != nil {
		return err
	}
	known, err := view.Names(ctx, nil)
	if err != nil {
		return err
	}
	if lack := accounting.Unconfigured(unknown.Key); lack != "" && !slices.Contains(derivation.WeightNames(), unknown.Key) {
		return newRefusal(http.StatusBadRequest, "invalid key %q: it is a measure, and %s", unknown.Key, lack)
	}
	key := nearestName(unknown.Key, keys)
	for _, measure := range slices.Concat(usage.MeasureWords(), usage.CapacityWords(), derivation.WeightNames(), slices.Sorted(maps.Keys(known.Components))) {
		if measure == unknown.Key || key == "" && strings.EqualFold(measure, unknown.Key) {
			return newRefusal(http.StatusBadRequest, "invalid key %q: it is a measure; use -measure %s, or measure=%s in /v1", unknown.Key, measure, measure)
		}
	}
	if key != "" {
		return newRefusal(http.StatusBadRequest, "%v; did you mean %q?", unknown, key)
	}
	return newRefusal(http.StatusBadRequest, "%v; the keys are %s", unknown, strings.Join(keys, ", "))
}

// unknownMeasure refuses a measure that there is not, and says which is meant, what it
// needs, or that it is a key.
func unknownMeasure(ctx context.Context, view *access.View, derivation *usage.Derivation, unknown *usage.UnknownMeasureError) error {
	if lack := accounting.Unconfigured(unknown.Name); lack != "" {
		return newRefusal(http.StatusBadRequest, "invalid measure %q: %s", unknown.Name, lack)
	}
	keys, err := keysOf(ctx, view, derivation)
	if err != nil {
		return err
	}
	if slices.Contains(keys, unknown.Name) {
		return newRefusal(http.StatusBadRequest, "invalid measure %q: it is a key; use -by %s, or by=%s in /v1", unknown.Name, unknown.Name, unknown.Name)
	}
	near := nearestName(unknown.Name, append(unknown.Measures, slices.Sorted(maps.Keys(unknown.Units))...))
	if near = cmp.Or(unknown.Units[near], near); near != "" {
		return newRefusal(http.StatusBadRequest, "%v; did you mean %q?", unknown, near)
	}
	return newRefusal(http.StatusBadRequest, "%v; the measures are %s", unknown, strings.Join(unknown.Measures, ", "))
}

// keysOf are the keys of the newest records that the principal sees, and the derived ones.
func keysOf(ctx context.Context, view *access.View, derivation *usage.Derivation) ([]string, error) {
	keys, err := view.Keys(ctx)
	return append(keys, derivation.KeyNames()...), err
}

const parquetType = "application/vnd.apache.parquet"

func (s *Server) sendUsage(w http.ResponseWriter, r *http.Request, format string, page *usage.Table, known *complete) error {
	about := known.encodeJSON(page)
	switch format {
	case "ndjson":
		return s.sendPieces(w, r, "application/x-ndjson", func(send func([]byte) error) error { return page.NDJSON(about, send) })
	case "csv":
		return s.sendPieces(w, r, "text/csv; charset=utf-8", page.CSV)
	case "parquet":
		return s.sendPieces(w, r, parquetType, func(send func([]byte) error) error { return page.Parquet(about, send) })
	}
	return s.sendPieces(w, r, "application/json", func(send func([]byte) error) error { return page.JSON(about, send) })
}

// sendPieces sends an answer piece by piece. What fails breaks off the connection: only
// the client can be the reason.
func (s *Server) sendPieces(w http.ResponseWriter, r *http.Request, typ string, write func(send func([]byte) error) error) error {
	out := newStream(w, r, typ)
	err := write(func(b []byte) error {
		out.buf = b
		if err := r.Context().Err(); err != nil {
			return err
		}
		return out.flush()
	})
	if err != nil {
		breakOff()
	}
	return nil
}
