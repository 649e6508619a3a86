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
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"

	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// v1Subscription is GET /v1/subscription: what principal investigators used beside
// what is credited to them. Shares of a part of the records would be none.
func (s *Server) v1Subscription(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	in, err := decodeQuery[v1.SubscriptionQuery](r)
	if err != nil {
		return err
	}
	having, err := parseConditions(in.Where)
	if err != nil {
		return err
	}
	q, zone, err := s.subscriptionWindow(&in, s.currentTime())
	if err != nil {
		return err
	}
	d, err := s.currentDirectory()
	if err != nil {
		return err
	}
	known, err := s.completeness(view, calendar.Window{From: q.Edges[0], To: q.Edges[1]}, q.Now)
	if err != nil {
		return err
	}
	sub, err := d.Subscription(r.Context(), func(ctx context.Context, q sums.Query) (*sums.Answer, error) {
		q.Having = having
		return s.usageOf(view)(ctx, q)
	}, q)
	if errors.Is(err, sums.ErrQuery) {
		return newRefusal(http.StatusBadRequest, "%v", err)
	}
	if err != nil {
		return err
	}
	if sub.Used.Sign() == 0 && sub.Unclaimed.Sign() == 0 && !isLenient(r) {
		u := unmatched{s, view, s.derivation(), s.usageOf(view)}
		if err := u.checkFilters(r.Context(), &store.Query{}, having); err != nil {
			return err
		}
	}
	out := describeSubscription(sub)
	if out.Known, err = s.knownPart(r.Context(), view, calendar.Window{From: q.Edges[0], To: q.Edges[1]}, zone, nil, q.Now); err != nil {
		return err
	}
	out.Zone, out.Credit = zone.String(), "spread"
	if q.Credit == sums.AtStop {
		out.Credit = "stop"
	}
	known.Open = sub.Open
	out.Complete = known.Complete
	answerJSON(w, http.StatusOK, out)
	return nil
}

// subscriptionWindow reads the time of a query; without one it is this month.
func (s *Server) subscriptionWindow(in *v1.SubscriptionQuery, now record.Time) (q sums.Query, zone *time.Location, err error) {
	if zone, err = s.parseZone(in.Zone); err != nil {
		return q, nil, err
	}
	word := in.Window
	if word+in.From+in.To == "" {
		word = "this-month"
	}
	window, err := parseWindow(word, in.From, in.To, now, zone)
	if err != nil {
		return q, nil, err
	}
	return sums.Query{Edges: []record.Time{window.From, window.To}, Now: now, Credit: parseCredit(in.Credit)}, zone, nil
}

func describeSubscription(s *accounting.Subscription) *v1.Subscription {
	out := &v1.Subscription{
		Index: s.Index, Window: v1.Window{From: v1.Stamp(s.From), To: v1.Stamp(s.To)}, Unit: s.Unit,
		Used: ratJSON(s.Used), Contributed: ratJSON(s.Contributed), Unclaimed: ratJSON(s.Unclaimed), Unpriced: []v1.SubscriptionUnpriced{}, Shares: []v1.SubscriptionShare{},
	}
	for _, component := range slices.Sorted(maps.Keys(s.Lacking)) {
		out.Unpriced = append(out.Unpriced, v1.SubscriptionUnpriced{Component: component, Total: ratJSON(s.Lacking[component])})
	}
	for i := range s.Shares {
		sh := &s.Shares[i]
		line := v1.SubscriptionShare{
			PI: sh.PI, Name: v1.Text(sh.Name), State: string(sh.State), Used: ratJSON(sh.Used), ExemptUsed: ratJSON(sh.ExemptUsed), Contributed: ratJSON(sh.Contributed),
			UsedShare: quotientJSON(sh.Used, s.Used), ContributionShare: quotientJSON(sh.Contributed, s.Contributed),
		}
		if sh.Ratio != nil {
			n := ratJSON(sh.Ratio)
			line.Ratio = &n
		}
		out.Shares = append(out.Shares, line)
	}
	return out
}

// quotientJSON is nil where there is none.
func quotientJSON(a, b *big.Rat) *json.Number {
	if b.Sign() == 0 {
		return nil
	}
	n := ratJSON(new(big.Rat).Quo(a, b))
	return &n
}
