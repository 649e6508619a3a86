package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/derive"
	"github.com/bursar-accounting/bursar/aggregator/internal/money"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
)

type jsonBudget struct {
	Name      string            `json:"name"`
	Match     map[string]string `json:"match"`
	Unit      string            `json:"unit"`
	Component *string           `json:"component"`
	Period    jsonPeriod        `json:"period"`
	Amount    json.Number       `json:"amount"`
	Problem   *string           `json:"problem"`
	*jsonStanding
}

type jsonPeriod struct {
	Name  *string `json:"name"`
	Every *string `json:"every"`
	From  string  `json:"from"`
	To    string  `json:"to"`
	Zone  string  `json:"zone"`
	State string  `json:"state"`
}

// jsonStanding are the figures of a budget; none when there is a problem.
type jsonStanding struct {
	Used      json.Number   `json:"used"`
	Share     json.Number   `json:"share"`
	Reserved  json.Number   `json:"reserved"`
	Left      json.Number   `json:"left"`
	AtLeast   bool          `json:"at_least"`
	Running   int           `json:"running"`
	Unlimited int           `json:"unlimited"`
	Unvalued  bool          `json:"unvalued"`
	Unpriced  []jsonNoPrice `json:"unpriced"`
	Pace      *jsonPace     `json:"pace"`
	Exhausted bool          `json:"exhausted"`
	GoneAt    *string       `json:"gone_at"`
}

type jsonPace struct {
	PerDay json.Number `json:"per_day"`
	From   string      `json:"from"`
	To     string      `json:"to"`
}

type jsonNoPrice struct {
	Component string      `json:"component"`
	Kind      string      `json:"kind"`
	Unit      string      `json:"unit"`
	Used      json.Number `json:"used"`
}

// amountDigits is how many digits figures of money have after the point.
const amountDigits = 6

// v1Budgets is GET /v1/budgets: how budgets stand.
func (s *Server) v1Budgets(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if s.opt.Usage == nil {
		return refuse(http.StatusNotImplemented, "this server does not add up usage")
	}
	if !view.Principal().Rows.All() {
		return access.ErrRows
	}
	words, err := wordsOf(r.URL.RawQuery, "name", "at")
	if err != nil {
		return err
	}
	has, now := s.money(), s.now()
	list, err := has.Report(r.Context(), view, s.opt.Usage, s.book(), money.Ask{Name: words["name"], At: words["at"], Now: now})
	switch {
	case errors.Is(err, money.ErrTime):
		return refuse(http.StatusBadRequest, "at: %v", err)
	case errors.Is(err, money.ErrBudget):
		return refuse(http.StatusNotFound, "%v; the budgets are %s", err, quoted(has.Budgets.Names()))
	case errors.Is(err, usage.ErrQuestion):
		return refuse(http.StatusBadRequest, "%v", err)
	case err != nil:
		return err
	}
	known, err := s.completeness(view, windowOf(list, now), now)
	if err != nil {
		return err
	}
	out := []jsonBudget{}
	for i := range list {
		out = append(out, budgetOf(&list[i]))
		known.Open += uint64(list[i].Running + list[i].Unlimited)
	}
	answer(w, http.StatusOK, map[string]any{"now": stamp(now), "budgets": out, "complete": known})
	return nil
}

// windowOf is the time that statements are about.
func windowOf(list []money.Statement, now record.Time) calendar.Window {
	w := calendar.Window{From: now, To: now}
	for i := range list {
		w.From, w.To = min(w.From, list[i].Period.From), max(w.To, list[i].Period.To)
	}
	return w
}

// Report says how budgets stand for the principal of a view, by what the book derives.
func (m Money) Report(ctx context.Context, view *access.View, usages Usage, book *derive.Book, ask money.Ask) ([]money.Statement, error) {
	return m.Budgets.Report(ctx, money.Books{
		Book: book, Value: m.Value,
		Ask: func(ctx context.Context, q derive.Question) (*derive.Answer, error) {
			return book.Answer(ctx, func(ctx context.Context, q usage.Question) (*usage.Answer, error) {
				return usages.Usage(ctx, view.Principal(), q)
			}, q)
		},
		Running: func(ctx context.Context, yield func(*record.Record, record.Time) error) error {
			return running(ctx, view, yield)
		},
	}, ask)
}

// running calls yield with the runs that go on, and up to when each one's source is
// complete.
func running(ctx context.Context, view *access.View, yield func(*record.Record, record.Time) error) error {
	agents, err := view.Agents()
	if err != nil {
		return err
	}
	ends := map[record.Origin]record.Time{}
	for i := range agents {
		for _, m := range agents[i].Watermarks {
			ends[m.Source] = m.CompleteTo
		}
	}
	return view.OpenRecords(ctx, func(row *columns.Row) error {
		end, ok := ends[row.Origin]
		if !ok {
			end = record.MaxTime
		}
		return yield(&row.Record, end)
	})
}

func budgetOf(s *money.Statement) jsonBudget {
	b := s.Budget
	out := jsonBudget{
		Name: b.Name, Match: map[string]string{}, Unit: s.Unit, Component: maybe(b.Component), Amount: jsonAmount(b.Amount()), Problem: maybe(s.Problem),
		Period: jsonPeriod{Name: maybe(s.Period.Name), Every: maybe(b.Every.String()), From: s.Period.From.String(), To: s.Period.To.String(), Zone: b.Zone, State: s.State()},
	}
	if b.Zone == "" {
		out.Period.Zone = "UTC"
	}
	for _, c := range b.Scope {
		out.Match[c.Key] = c.Value
	}
	if s.Problem == "" {
		out.jsonStanding = standingOf(s)
	}
	return out
}

func standingOf(s *money.Statement) *jsonStanding {
	out := &jsonStanding{
		Used: jsonAmount(s.Used), Share: json.Number(s.Used.Share(s.Budget.Amount(), amountDigits)), Reserved: jsonAmount(s.Reserved), Left: jsonAmount(s.Left()),
		AtLeast: s.AtLeast(), Running: s.Running, Unlimited: s.Unlimited, Unvalued: s.Unvalued, Unpriced: []jsonNoPrice{}, Exhausted: s.Exhausted(), GoneAt: stamp(s.Gone),
	}
	if s.Paced {
		out.Pace = &jsonPace{PerDay: jsonAmount(s.PerDay()), From: s.PaceFrom.String(), To: s.Now.String()}
	}
	for _, u := range s.Unpriced {
		j := jsonNoPrice{Component: u.Component, Kind: u.Kind.String(), Unit: "hour", Used: jsonAmount(money.Hours(u.Used))}
		if u.Kind == record.Total {
			j.Unit, j.Used = "unit", json.Number(u.Used.AppendDecimal(nil))
		}
		out.Unpriced = append(out.Unpriced, j)
	}
	return out
}

func jsonAmount(a money.Amount) json.Number { return json.Number(a.Decimal(amountDigits)) }

// maybe is nil for an empty text.
func maybe(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
