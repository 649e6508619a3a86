package api

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// Gauges are AUDITOR's counts of records, under its names and labels.
type Gauges struct {
	opt    GaugeOptions
	total  prometheus.Gauge
	per    []perValue
	health prometheus.Gauge
}

// GaugeOptions say which gauges there are. The zero value has the total only.
type GaugeOptions struct {
	Reader Reader
	Every  time.Duration // default 30 s
	Log    *slog.Logger
	// Site, Group and User are the meta keys by whose values records are
	// counted; "" for no such gauge.
	Site, Group, User string
}

type perValue struct {
	key string
	vec *prometheus.GaugeVec
}

// NewGauges registers the gauges.
func NewGauges(opt GaugeOptions, reg prometheus.Registerer) *Gauges {
	if opt.Every == 0 {
		opt.Every = 30 * time.Second
	}
	const help = "Number of records in the Auditor database"
	g := &Gauges{opt: opt,
		total:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "num_records_database", Help: help}),
		health: prometheus.NewGauge(prometheus.GaugeOpts{Name: "bursar_record_gauges_last_success_timestamp_seconds", Help: "When the counts of records were last made."}),
	}
	reg.MustRegister(g.total, g.health)
	for _, p := range []struct{ key, name, label string }{
		{opt.Site, "num_records_database_per_site", "site"},
		{opt.Group, "num_records_database_per_group", "group_id"},
		{opt.User, "num_records_database_per_user", "user_id"},
	} {
		if p.key == "" {
			continue
		}
		vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: p.name, Help: help}, []string{p.label})
		reg.MustRegister(vec)
		g.per = append(g.per, perValue{p.key, vec})
	}
	return g
}

// Run keeps the gauges up to date until ctx ends. A failure is logged and the
// next round tries again; the age of the counts can be seen.
func (g *Gauges) Run(ctx context.Context) error {
	tick := time.NewTicker(g.opt.Every)
	defer tick.Stop()
	for {
		if err := g.refresh(ctx); err != nil && ctx.Err() == nil {
			g.opt.Log.Warn("records could not be counted", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (g *Gauges) refresh(ctx context.Context) error {
	view, err := g.opt.Reader.Read(ctx)
	if err != nil {
		return err
	}
	defer view.Close() //nolint:errcheck // a view of a closed store
	g.total.Set(float64(view.Count()))
	for _, p := range g.per {
		counts, err := countBy(ctx, view, p.key)
		if err != nil {
			return err
		}
		p.vec.Reset()
		for value, n := range counts {
			p.vec.WithLabelValues(value).Set(float64(n))
		}
	}
	g.health.SetToCurrentTime()
	return nil
}

// countBy counts the shown records for each value of a meta key; one with two
// values counts for both.
func countBy(ctx context.Context, view *store.View, key string) (map[string]int64, error) {
	counts := map[string]int64{}
	err := view.Query(ctx, store.Query{Order: store.BySeq}, func(row *columns.Row) error {
		for _, v := range row.Record.Meta.Get(key) {
			counts[v]++
		}
		return nil
	})
	return counts, err
}
