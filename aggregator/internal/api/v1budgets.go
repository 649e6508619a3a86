package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// amountDigits is how many digits figures of money have after the point.
const amountDigits = 6

// v1Budgets is GET /v1/budgets: how budgets stand.
func (s *Server) v1Budgets(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if s.opt.Usage == nil {
		return newRefusal(http.StatusNotImplemented, "this server does not add up usage")
	}
	q, err := decodeQuery[v1.BudgetsQuery](r)
	if err != nil {
		return err
	}
	has, now := s.currentMoney(), s.currentTime()
	whole := view
	if p := view.Principal(); !p.Rows.All() {
		if has.Budgets = has.Budgets.Only(s.budgetFilter(p)); len(has.Budgets.Names()) == 0 {
			return access.ErrRows
		}
		// All records of these budgets are the reader's; how complete sources are is not.
		if whole, err = s.opt.Reader.Read(r.Context(), access.Daemon()); err != nil {
			return err
		}
		defer func() { _ = whole.Close() }() // nothing is written
	}
	list, open, err := has.Report(r.Context(), whole, s.opt.Usage, s.derivation(), accounting.StatementRequest{Name: q.Name, At: q.At, Now: now})
	switch {
	case errors.Is(err, accounting.ErrTime):
		return newRefusal(http.StatusBadRequest, "at: %v", err)
	case errors.Is(err, accounting.ErrBudget):
		return newRefusal(http.StatusNotFound, "%v; the budgets are %s", err, quoteWords(has.Budgets.Names()))
	case errors.Is(err, sums.ErrQuery):
		return newRefusal(http.StatusBadRequest, "%v", err)
	case err != nil:
		return err
	}
	known, err := s.completeness(view, windowOf(list, now), now)
	if err != nil {
		return err
	}
	out := []v1.Budget{}
	for i := range list {
		out = append(out, budgetJSON(&list[i]))
	}
	known.Open = uint64(open) //nolint:gosec // a count
	answerJSON(w, http.StatusOK, v1.Budgets{Now: v1.Stamp(now), Budgets: out, Complete: known.Complete})
	return nil
}

// budgetFilter returns what reports which budgets a reader of some records sees: those of which every record
// is among them, and those of projects and groups that a person leads, each as it stands.
func (s *Server) budgetFilter(p access.Principal) func(*accounting.Budget) bool {
	d, err := s.currentDirectory()
	at := s.currentTime()
	derived := map[string]bool{}
	for _, k := range s.derivation().Keys {
		derived[k.Name] = true
	}
	return func(b *accounting.Budget) bool {
		values := map[string]string{}
		for _, c := range b.Scope {
			key, meta := strings.CutPrefix(c.Key, "meta.")
			if meta || !derived[key] { // what follows from the directory is no meta
				values[key] = c.Value
			}
		}
		return p.Rows.Cover(values) || err == nil && d.Owns(p.Person, b, at)
	}
}

// windowOf is the time that statements are about.
func windowOf(list []accounting.Statement, now record.Time) calendar.Window {
	w := calendar.Window{From: now, To: now}
	for i := range list {
		w.From, w.To = min(w.From, list[i].Period.From), max(w.To, list[i].Period.To)
	}
	return w
}

// Report says how budgets stand for the principal of a view, by what the derivation says, and how
// many records that go on count in some of them.
func (m Money) Report(ctx context.Context, view *access.View, usages Usage, derivation *usage.Derivation, ask accounting.StatementRequest) (list []accounting.Statement, open int, err error) {
	reach, err := view.Reach(ctx)
	if err != nil {
		return nil, 0, err
	}
	return m.Budgets.Report(ctx, accounting.UsageReader{
		Derivation: derivation, Value: m.Value,
		KnownFrom: func(zone *time.Location) record.Time { return knownSpan(&reach, zone, ask.Now).From },
		Ask: func(ctx context.Context, q sums.Query) (*sums.Answer, error) {
			return derivation.Answer(ctx, func(ctx context.Context, q sums.Query) (*sums.Answer, error) {
				return usages.Usage(ctx, view.Principal(), q)
			}, q)
		},
		Running: func(ctx context.Context, yield func(*record.Record, record.Time) error) error {
			return runningRecords(ctx, view, yield)
		},
	}, ask)
}

// runningRecords calls yield with the runs that go on, and up to when each one's source is
// complete.
func runningRecords(ctx context.Context, view *access.View, yield func(*record.Record, record.Time) error) error {
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

func budgetJSON(s *accounting.Statement) v1.Budget {
	b := s.Budget
	out := v1.Budget{
		Name: b.Name, Match: map[string]string{}, Unit: s.Unit, Component: v1.Text(b.Component), Measure: b.Measure(), Amount: amountJSON(b.Amount), Problem: v1.Text(s.Problem),
		Period: v1.BudgetPeriod{Name: v1.Text(s.Period.Name), Every: v1.Text(b.Every.String()), From: v1.Stamp(s.Period.From), To: v1.Stamp(s.Period.To), Zone: b.Zone, State: s.State()},
	}
	if b.Unit == accounting.HoursOf {
		out.Unit = v1.UsageUnit(b.Component, "hour")
	}
	if b.Zone == "" {
		out.Period.Zone = "UTC"
	}
	for _, c := range b.Scope {
		out.Match[c.Key] = c.Value
	}
	if s.Problem == "" {
		out.BudgetStanding = budgetStandingJSON(s)
	}
	return out
}

func budgetStandingJSON(s *accounting.Statement) *v1.BudgetStanding {
	out := &v1.BudgetStanding{
		Reserved: amountJSON(s.Reserved), Energy: energyJSON(s.Energy),
		AtLeast: s.AtLeast(), Running: s.Running, Unlimited: s.Unlimited, Unvalued: s.Unvalued, Unpriced: []v1.BudgetUnpriced{}, Exhausted: s.Exhausted(), GoneAt: v1.Stamp(s.Gone),
	}
	if !s.Unknown() {
		out.Used, out.Left = new(amountJSON(s.Used)), new(amountJSON(s.Left()))
		out.Share = new(json.Number(s.Used.Share(s.Budget.Amount, amountDigits)))
	}
	if s.Begun() {
		out.KnownFrom = v1.Stamp(s.KnownFrom)
	}
	if s.Paced && !s.Unknown() {
		out.Pace = &v1.BudgetPace{PerDay: amountJSON(s.PerDay()), From: v1.Stamp(s.PaceFrom), To: v1.Stamp(s.Now)}
	}
	for _, u := range s.Unpriced {
		j := v1.BudgetUnpriced{Component: u.Component, Kind: u.Kind.String(), Unit: "hour", Used: amountJSON(accounting.AmountOfHours(u.Used))}
		if u.Kind == record.Total {
			j.Unit, j.Used = "unit", json.Number(u.Used.AppendDecimal(nil))
		}
		out.Unpriced = append(out.Unpriced, j)
	}
	return out
}

// energyJSON is what energy or CO2 rests on, in kWh; nil of nil.
func energyJSON(b *sums.EnergyBasis) *v1.UsageEnergy {
	if b == nil {
		return nil
	}
	kWh := func(s sums.Sum) json.Number { return amountJSON(accounting.AmountOf(s)) }
	return &v1.UsageEnergy{Total: kWh(b.Total), Measured: kWh(b.Measured), WithoutFactor: kWh(b.WithoutFactor), DefaultPue: kWh(b.DefaultPUE), DefaultLoad: kWh(b.DefaultLoad)}
}

func amountJSON(a accounting.Amount) json.Number { return json.Number(a.Decimal(amountDigits)) }
