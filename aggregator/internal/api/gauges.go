package api

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
)

// Gauges are AUDITOR's counts of records, under its names and labels. Like there,
// they are absent until the first count.
type Gauges struct {
	opt   GaugeOptions
	total *prometheus.Desc
	age   *prometheus.Desc
	all   []perValue // of every kind there is; the key says what is counted, "" nothing
	keys  atomic.Pointer[[3]string]
	last  atomic.Pointer[recordCounts]
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

type perValue struct{ desc *prometheus.Desc }

// recordCounts is one count of everything.
type recordCounts struct {
	seq   uint64
	total uint64
	keys  [3]string
	per   [3]map[string]uint64 // as Gauges.all; nil: not counted
	at    time.Time
}

// NewGauges registers the gauges.
func NewGauges(opt GaugeOptions, reg prometheus.Registerer) *Gauges {
	if opt.Every == 0 {
		opt.Every = 30 * time.Second
	}
	const help = "Number of records in the Auditor database"
	g := &Gauges{
		opt:   opt,
		total: prometheus.NewDesc("num_records_database", help, nil, nil),
		age:   prometheus.NewDesc("bursar_record_gauges_last_success_timestamp_seconds", "When the records were last counted.", nil, nil),
	}
	for _, p := range []struct{ name, label string }{
		{"num_records_database_per_site", "site"},
		{"num_records_database_per_group", "group_id"},
		{"num_records_database_per_user", "user_id"},
	} {
		g.all = append(g.all, perValue{prometheus.NewDesc(p.name, help, []string{p.label}, nil)})
	}
	g.SetKeys(opt.Site, opt.Group, opt.User)
	reg.MustRegister(g)
	return g
}

// SetKeys says by which meta keys records are counted from the next round on; ""
// for no such gauge.
func (g *Gauges) SetKeys(site, group, user string) { g.keys.Store(&[3]string{site, group, user}) }

// Describe implements prometheus.Collector.
func (g *Gauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.total
	out <- g.age
	for _, p := range g.all {
		out <- p.desc
	}
}

// Collect implements prometheus.Collector.
func (g *Gauges) Collect(out chan<- prometheus.Metric) {
	c := g.last.Load()
	if c == nil {
		return
	}
	out <- prometheus.MustNewConstMetric(g.total, prometheus.GaugeValue, float64(c.total))
	out <- prometheus.MustNewConstMetric(g.age, prometheus.GaugeValue, float64(c.at.UnixNano())/1e9)
	for i, p := range g.all {
		for value, n := range c.per[i] {
			out <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue, float64(n), strings.ToValidUTF8(value, "\uFFFD"))
		}
	}
}

// Run keeps the gauges up to date until ctx ends. A failure is logged and the
// next round tries again; the age of the counts can be seen.
func (g *Gauges) Run(ctx context.Context) error {
	tick := time.NewTicker(g.opt.Every)
	defer tick.Stop()
	for {
		if err := g.Refresh(ctx); err != nil && ctx.Err() == nil {
			g.opt.Log.Warn("records could not be counted", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Refresh counts now. After an error the former counts stay.
func (g *Gauges) Refresh(ctx context.Context) error {
	view, err := g.opt.Reader.Read(ctx, access.Daemon())
	if err != nil {
		return err
	}
	defer view.Close() //nolint:errcheck // a view of a closed store
	next := &recordCounts{seq: view.Seq(), keys: *g.keys.Load(), at: time.Now()}
	if next.total, err = view.Count(); err != nil {
		return err
	}
	if last := g.last.Load(); last != nil && last.seq == next.seq && last.keys == next.keys {
		next.per = last.per
	} else if err = next.countByKeys(ctx, view); err != nil {
		return err
	}
	g.last.Store(next)
	return nil
}

// countByKeys counts by every key that is set.
func (c *recordCounts) countByKeys(ctx context.Context, view *access.View) (err error) {
	for i, key := range c.keys {
		if key == "" {
			continue
		}
		if c.per[i], err = view.MetaCounts(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
