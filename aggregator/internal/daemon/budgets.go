package daemon

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"

	"github.com/bursar-accounting/bursar/proto/record"
)

// budgetGauges are metrics of how budgets stand, on the node that leads.
type budgetGauges struct {
	accounts *accounting.Keeper
	money    func() api.Money
	reader   access.Reader
	log      *slog.Logger

	last             atomic.Pointer[[]accounting.Statement] // nil: this node does not lead
	used, left, gone *prometheus.Desc
}

func newBudgetGauges(a *Aggregator, reader access.Reader) *budgetGauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("bursar_budget_"+name, help, labels, nil)
	}
	g := &budgetGauges{
		accounts: a.accounts, money: a.currentMoney, reader: reader, log: a.set.Log,
		used: desc("used_ratio", "What is used of the budget's present period, on the leader; more than 1 when it is overdrawn.", "budget"),
		left: desc("left", "What is neither used nor reserved of the budget's present period, in its unit, on the leader.", "budget", "unit"),
		gone: desc("gone_timestamp_seconds", "When the budget was used up, or will be at the present pace before its period ends, on the leader.", "budget"),
	}
	a.registry.MustRegister(g)
	return g
}

// Describe implements prometheus.Collector.
func (g *budgetGauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.used
	out <- g.left
	out <- g.gone
}

// Collect implements prometheus.Collector.
func (g *budgetGauges) Collect(out chan<- prometheus.Metric) {
	list := g.last.Load()
	if list == nil {
		return
	}
	for i := range *list {
		s := &(*list)[i]
		if s.Problem != "" {
			continue
		}
		name := strings.ToValidUTF8(s.Budget.Name, "\uFFFD")
		put := func(d *prometheus.Desc, v float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
		}
		put(g.used, s.Used.Float()/s.Budget.Amount.Float(), name)
		put(g.left, s.Left().Float(), name, strings.ToValidUTF8(s.Unit, "\uFFFD"))
		if s.Gone.Present() {
			put(g.gone, float64(s.Gone)/1e6, name)
		}
	}
}

// The pace of the gauges: budgets by other keys than dimensions are added up from all
// records, which shall take no more than a fiftieth of the time.
const (
	budgetsTick  = time.Second
	budgetsEvery = time.Minute
	budgetsShare = 50
)

// updateGauges keeps the gauges up to date until ctx ends.
func (g *budgetGauges) updateGauges(ctx context.Context) error {
	defer g.last.Store(nil)
	tick := time.NewTicker(budgetsTick)
	defer tick.Stop()
	var next time.Time
	var has *accounting.Set
	for {
		now := g.accounts.Now()
		if began := time.Now(); now.Budgets != nil && (began.After(next) || now != has) {
			if err := g.refreshReport(ctx, now); err != nil && ctx.Err() == nil {
				g.log.Warn("what is left of budgets could not be found out; their metrics are as before", "error", err)
			}
			next, has = time.Now().Add(max(budgetsEvery, budgetsShare*time.Since(began))), now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// refreshReport makes the report of the budgets again.
func (g *budgetGauges) refreshReport(ctx context.Context, now *accounting.Set) (err error) {
	if len(now.Budgets.Names()) == 0 {
		g.last.Store(nil)
		return nil
	}
	view, err := g.reader.Read(ctx, access.Daemon())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	list, _, err := g.money().Report(ctx, view, g.reader, now.Derivation, accounting.StatementRequest{Now: record.FromStd(calendar.Now())})
	if err == nil {
		g.last.Store(&list)
	}
	return err
}
