package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Money is what usage costs and what may be used, as it holds now.
type Money struct {
	Prices  *accounting.Prices
	Budgets *accounting.Budgets
	// Value returns the value of a key that does not follow by the book for a record;
	// nil: it is the first of its meta.
	Value func(m record.Meta, key string) (string, bool)
}

func (s *Server) money() Money {
	if s.opt.Money == nil {
		return Money{Prices: &accounting.Prices{}, Budgets: &accounting.Budgets{}}
	}
	return s.opt.Money()
}

// v1Prices is GET /v1/prices: what holds at an instant.
func (s *Server) v1Prices(w http.ResponseWriter, r *http.Request, view *access.View) error {
	words, err := readWords(r.URL.RawQuery, "at")
	if err != nil {
		return err
	}
	at, err := words.at(s.now(), time.UTC)
	if err != nil {
		return err
	}
	prices, list := s.money().Prices, []v1.Price{}
	for _, h := range prices.At(at) {
		if !concerns(h.Rule.When, view.Principal().Rows) {
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
	answer(w, http.StatusOK, v1.Prices{At: v1.Stamp(at), Currency: v1.Text(prices.Currency()), Prices: list})
	return nil
}

// concerns reports whether conditions of a price name nothing but classes of hosts and
// what the grants of a reader name: others would tell whose records there are.
func concerns(when []accounting.PriceCondition, rows access.Rows) bool {
	return !slices.ContainsFunc(when, func(c accounting.PriceCondition) bool {
		return c.Key != accounting.ClassKey && !rows.Names(c.Key, c.Value)
	})
}
