package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// v1Distributions is GET /v1/distributions: histograms of the runs that ended in a window.
// It reads columns of each of them, and keeps no more than the bins.
func (s *Server) v1Distributions(w http.ResponseWriter, r *http.Request, view *access.View) error {
	now := s.currentTime()
	q, zone, having, err := s.parseDistributions(r, now)
	if err != nil {
		return err
	}
	known, err := s.completeness(view, *zone.window, now)
	if err != nil {
		return err
	}
	counted, err := countRuns(r.Context(), view, q, having)
	if err != nil {
		return err
	}
	if counted.runs == 0 && !isLenient(r) {
		u := unmatched{s, view, s.derivation(), s.usageOf(view)}
		if err := u.checkFilters(r.Context(), &q, having); err != nil {
			return err
		}
	}
	out := v1.Distributions{Window: v1.Window{From: v1.Stamp(zone.window.From), To: v1.Stamp(zone.window.To)}, Zone: zone.zone.String(), Records: counted.runs, Complete: known.Complete}
	if out.Known, err = s.knownPart(r.Context(), view, *zone.window, zone.zone, q.Meta, now); err != nil {
		return err
	}
	for i := range counted.histograms {
		out.Histograms = append(out.Histograms, counted.histograms[i].histogramJSON())
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

// zonedWindow is a window by the clock of a zone.
type zonedWindow struct {
	zone   *time.Location
	window *calendar.Window
}

// parseDistributions reads the window, the filters of /v1/records, and conditions on the
// first values of meta keys.
func (s *Server) parseDistributions(r *http.Request, now record.Time) (q store.Query, in zonedWindow, having []sums.Filter, err error) {
	asked, err := decodeQuery[v1.DistributionsQuery](r)
	if err != nil {
		return q, in, nil, err
	}
	if having, err = parseConditions(asked.Where); err != nil {
		return q, in, nil, err
	}
	if in.zone, err = s.parseZone(asked.Zone); err != nil {
		return q, in, nil, err
	}
	if in.window, err = parseNeededWindow(asked.Window, asked.From, asked.To, now, in.zone); err != nil {
		return q, in, nil, err
	}
	filters := recordFilters{RecordID: asked.RecordID, StartTime: asked.StartTime, StopTime: asked.StopTime, Runtime: asked.Runtime, Meta: asked.Meta, Component: asked.Component}
	q = filters.storeQuery()
	q.Wait = numberRange(asked.Wait)
	q.Order, q.Open, q.ReuseRows, q.Limit = store.BySeq, store.OnlyClosed, true, 0
	q.Stop.GTE(int64(in.window.From))
	q.Stop.LT(int64(in.window.To))
	for _, f := range having {
		if slices.ContainsFunc(s.derivation().Keys, func(k usage.Key) bool { return k.Name == f.Key }) {
			return q, in, nil, newRefusal(http.StatusBadRequest, "where[%s]: no record says its %s of itself; filter by a meta key, such as group_id or user_id", f.Key, f.Key)
		}
		if !slices.Contains(f.Values, "") {
			q.Meta = append(q.Meta, store.MetaTest{Key: f.Key, Any: f.Values})
		}
	}
	return q, in, having, nil
}
