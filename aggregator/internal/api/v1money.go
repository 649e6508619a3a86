package api

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Money is what usage costs and what may be used, as it holds now.
type Money struct {
	Prices  *accounting.Prices
	Budgets *accounting.Budgets
	// Value returns the value of a key that does not follow from a derivation for a record;
	// nil: it is the first of its meta.
	Value func(m record.Meta, key string) (string, bool)
}

func (s *Server) currentMoney() Money {
	if s.opt.Money == nil {
		return Money{Prices: &accounting.Prices{}, Budgets: &accounting.Budgets{}}
	}
	return s.opt.Money()
}

// v1Prices is GET /v1/prices: what holds at an instant, or in a window.
func (s *Server) v1Prices(w http.ResponseWriter, r *http.Request, view *access.View) error {
	from, to, err := s.pricesWindow(r)
	if err != nil {
		return err
	}
	prices, list := s.currentMoney().Prices, []v1.Price{}
	for _, h := range prices.Within(from, to) {
		if !isVisiblePrice(h.Rule.When, view.Principal().Rows) {
			continue
		}
		p := v1.Price{
			List: h.List.Name, From: v1.Stamp(h.List.From), To: v1.Stamp(h.List.To), Component: h.Rule.Component,
			Per: "hour", Price: json.Number(h.Rule.Price().Decimal(9)), Match: map[string]string{},
		}
		if h.Rule.Kind == record.Total {
			p.Per = "unit"
		}
		for _, c := range h.Rule.When {
			p.Match[c.Key] = c.Value
		}
		list = append(list, p)
	}
	answerJSON(w, http.StatusOK, v1.Prices{At: v1.Stamp(from), Currency: v1.Text(prices.Currency()), Prices: list})
	return nil
}

// pricesWindow is the window that a question about prices names, or the instant.
func (s *Server) pricesWindow(r *http.Request) (from, to record.Time, err error) {
	q, err := decodeQuery[v1.PricesQuery](r)
	if err != nil {
		return 0, 0, err
	}
	window, err := parseWindow(q.Window, q.From, q.To, s.currentTime(), s.siteZone())
	if err != nil {
		return 0, 0, err
	}
	if window == nil {
		from, err = parseAt(q.At, s.currentTime(), s.siteZone())
		return from, from + 1, err
	}
	if q.At != "" {
		return 0, 0, newRefusal(http.StatusBadRequest, "at cannot be combined with window, from or to")
	}
	return window.From, window.To, nil
}

// isVisiblePrice reports whether conditions of a price name nothing but classes of hosts and
// what the grants of a reader name: others would tell whose records there are.
func isVisiblePrice(when []accounting.PriceCondition, rows access.Rows) bool {
	return !slices.ContainsFunc(when, func(c accounting.PriceCondition) bool {
		return c.Key != accounting.ClassKey && !rows.Names(c.Key, c.Value)
	})
}
