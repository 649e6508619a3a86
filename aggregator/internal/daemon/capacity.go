package daemon

import (
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// capacityGauges are the gauges of what clusters have and of the jobs that run and wait. Every
// node has them, of its own state.
type capacityGauges struct {
	accounts       *accounting.Keeper
	store          *store.Store
	log            *slog.Logger
	has, jobs, age *prometheus.Desc
}

// newCapacityGauges registers the gauges.
func newCapacityGauges(b *accounting.Keeper, s *store.Store, log *slog.Logger, reg prometheus.Registerer) {
	reg.MustRegister(&capacityGauges{
		accounts: b, store: s, log: log,
		has:  prometheus.NewDesc("bursar_capacity", "What a cluster has of a component; absent where it is unknown.", []string{"cluster", "component"}, nil),
		jobs: prometheus.NewDesc("bursar_jobs", "Jobs of a source when it looked last, by what they do: running or pending.", []string{"source", "state"}, nil),
		age:  prometheus.NewDesc("bursar_jobs_timestamp_seconds", "When a source looked last how many jobs it has.", []string{"source"}, nil),
	})
}

// Describe implements prometheus.Collector.
func (s *capacityGauges) Describe(out chan<- *prometheus.Desc) {
	out <- s.has
	out <- s.jobs
	out <- s.age
}

// Collect implements prometheus.Collector.
func (s *capacityGauges) Collect(out chan<- prometheus.Metric) {
	now := record.FromStd(calendar.Now())
	all := s.accounts.Capacity()
	for _, c := range all.List() {
		for _, component := range c.Components {
			step := all.At(c.Name, component, now)
			if !step.Known {
				continue
			}
			amount := step.Amount.Float()
			if component == accounting.SU {
				amount /= accounting.FactorOne
			}
			sendGauge(out, s.has, amount, c.Name, component)
		}
	}
	facts, err := store.With(s.store, func(v *store.View) ([]store.Fact, error) { return v.Facts(store.FactCensus) })
	list, wrong := accounting.Censuses(facts)
	if err := errors.Join(err, wrong); err != nil {
		s.log.Error("the census of jobs is not in the metrics", "error", err)
		return
	}
	for i := range list {
		c, source := &list[i], list[i].Source.String()
		sendGauge(out, s.jobs, float64(c.Running), source, "running")
		sendGauge(out, s.jobs, float64(c.Pending), source, "pending")
		sendGauge(out, s.age, float64(c.At)/float64(record.Second), source)
	}
}

// sendGauge sends a value, unless it has a name that is no text: sources choose names.
func sendGauge(out chan<- prometheus.Metric, desc *prometheus.Desc, value float64, labels ...string) {
	if m, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, value, labels...); err == nil {
		out <- m
	}
}
