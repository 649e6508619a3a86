package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// v1Subscription is GET /v1/subscription: what principal investigators used beside
// what is credited to them. Shares of a part of the records would be none.
func (s *Server) v1Subscription(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	having, rest, err := whereOf(r.URL.RawQuery)
	if err != nil {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	words, err := readWords(rest, "window", "from", "to", "zone", "credit")
	if err != nil {
		return err
	}
	q, zone, err := s.subscriptionWindow(words, s.now())
	if err != nil {
		return err
	}
	d, err := s.directory()
	if err != nil {
		return err
	}
	known, err := s.completeness(view, calendar.Window{From: q.Edges[0], To: q.Edges[1]}, q.Now)
	if err != nil {
		return err
	}
	sub, err := d.Subscription(r.Context(), func(ctx context.Context, q usage.Query) (*usage.Result, error) {
		q.Having = having
		return s.usageOf(view)(ctx, q)
	}, q)
	if errors.Is(err, usage.ErrQuestion) {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	if err != nil {
		return err
	}
	if sub.Used.Sign() == 0 && sub.Unclaimed.Sign() == 0 && !lenient(r) {
		u := unmatched{s, view, s.book(), s.usageOf(view)}
		if err := u.refuse(r.Context(), &store.Query{}, having); err != nil {
			return err
		}
	}
	out := describeSubscription(sub)
	if out.Known, err = s.knownPart(r.Context(), view, calendar.Window{From: q.Edges[0], To: q.Edges[1]}, zone, nil, q.Now); err != nil {
		return err
	}
	out.Zone, out.Credit = zone.String(), "spread"
	if q.Credit == usage.AtStop {
		out.Credit = "stop"
	}
	known.Open = sub.Open
	out.Complete = known.Complete
	answer(w, http.StatusOK, out)
	return nil
}

// subscriptionWindow reads the time of a query; without one it is this month.
func (s *Server) subscriptionWindow(w words, now record.Time) (q usage.Question, zone *time.Location, err error) {
	if zone, err = s.zone(w["zone"]); err != nil {
		return q, nil, refuse(http.StatusBadRequest, "%v", err)
	}
	if w["window"]+w["from"]+w["to"] == "" {
		w["window"] = "this-month"
	}
	window, err := w.window(now, zone)
	if err != nil {
		return q, nil, err
	}
	q = usage.Question{Edges: []record.Time{window.From, window.To}, Now: now}
	switch w["credit"] {
	case "", "spread":
	case "stop":
		q.Credit = usage.AtStop
	default:
		return q, nil, refuse(http.StatusBadRequest, "invalid credit %q: must be spread or stop", w["credit"])
	}
	return q, zone, nil
}

func describeSubscription(s *accounting.Subscription) *v1.Subscription {
	out := &v1.Subscription{
		Index: s.Index, Window: v1.Window{From: v1.Stamp(s.From), To: v1.Stamp(s.To)}, Unit: s.Unit,
		Used: decimals(s.Used), Contributed: decimals(s.Contributed), Unclaimed: decimals(s.Unclaimed), Unpriced: []v1.SubscriptionUnpriced{}, Shares: []v1.SubscriptionShare{},
	}
	for _, component := range slices.Sorted(maps.Keys(s.Lacking)) {
		out.Unpriced = append(out.Unpriced, v1.SubscriptionUnpriced{Component: component, Total: decimals(s.Lacking[component])})
	}
	for i := range s.Shares {
		sh := &s.Shares[i]
		line := v1.SubscriptionShare{
			PI: sh.PI, Name: v1.Text(sh.Name), State: string(sh.State), Used: decimals(sh.Used), ExemptUsed: decimals(sh.ExemptUsed), Contributed: decimals(sh.Contributed),
			UsedShare: quotient(sh.Used, s.Used), ContributionShare: quotient(sh.Contributed, s.Contributed),
		}
		if sh.Ratio != nil {
			n := decimals(sh.Ratio)
			line.Ratio = &n
		}
		out.Shares = append(out.Shares, line)
	}
	return out
}

// quotient is nil where there is none.
func quotient(a, b *big.Rat) *json.Number {
	if b.Sign() == 0 {
		return nil
	}
	n := decimals(new(big.Rat).Quo(a, b))
	return &n
}
