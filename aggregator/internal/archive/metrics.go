package archive

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/proto/gauges"
)

// metrics shows a schedule to Prometheus. What there is no plan for is absent.
type metrics struct {
	schedule *Schedule

	last, size, took, interval, failing, failures *prometheus.Desc
}

// NewMetrics registers the metrics of a schedule.
func NewMetrics(s *Schedule, reg prometheus.Registerer) {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("bursar_backup_"+name, help, nil, nil)
	}
	reg.MustRegister(&metrics{
		schedule: s,
		last:     desc("last_success_timestamp_seconds", "When the newest good backup of this node was made."),
		size:     desc("last_success_size_bytes", "Size of the newest good backup of this node."),
		took:     desc("last_success_duration_seconds", "How long the newest backup of this process took, verification included."),
		interval: desc("interval_seconds", "How often this node is to make a backup; absent when it makes none."),
		failing:  desc("failing", "1 while the last backup of this node has failed, otherwise 0."),
		failures: desc("failures_total", "Backups of this node that failed since it was started."),
	})
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.last, m.size, m.took, m.interval, m.failing, m.failures} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	s := m.schedule.Status()
	if s.Plan.None() {
		return
	}
	set := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		to <- prometheus.MustNewConstMetric(d, kind, v)
	}
	set(m.interval, prometheus.GaugeValue, s.Plan.Every.Seconds())
	set(m.failures, prometheus.CounterValue, float64(s.Failures))
	set(m.failing, prometheus.GaugeValue, gauges.OneIf(s.Err != nil))
	if s.Last.IsZero() {
		return
	}
	set(m.last, prometheus.GaugeValue, gauges.UnixSeconds(s.Last))
	set(m.size, prometheus.GaugeValue, float64(s.Bytes))
	if s.Took > 0 {
		set(m.took, prometheus.GaugeValue, s.Took.Seconds())
	}
}
