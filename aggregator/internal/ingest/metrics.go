package ingest

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Metrics count what the loops do.
type Metrics struct {
	frames   *prometheus.CounterVec
	outcomes *prometheus.CounterVec
	failures *prometheus.CounterVec
	gaps     *prometheus.CounterVec
	behind   *prometheus.GaugeVec
	contact  *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	agent := []string{"agent"}
	m := &Metrics{
		frames:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "bursar_pull_bytes_total", Help: "Bytes of chunks that came from the agent."}, agent),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "bursar_records_ingested_total", Help: "What became of the writes that came from the agent; the outcomes add up to what was pulled."}, []string{"agent", "outcome"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "bursar_pull_failures_total", Help: "Pulls that failed and were tried again."}, agent),
		gaps:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "bursar_pull_gaps_total", Help: "Parts of a source's history that the agent says cannot be had or are lost. Look into the log."}, agent),
		behind:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "bursar_agent_backlog_frames", Help: "Frames that wait on the agent."}, agent),
		contact:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "bursar_agent_last_contact_timestamp_seconds", Help: "When the agent last answered."}, agent),
	}
	reg.MustRegister(m.frames, m.outcomes, m.failures, m.gaps, m.behind, m.contact)
	return m
}

func (m *Metrics) countFailure(agent string) { m.failures.WithLabelValues(agent).Inc() }

func (m *Metrics) countPulled(agent string, resp *bursarv1.PullResponse) {
	size := 0
	for _, c := range resp.GetChunks() {
		size += len(c)
	}
	m.frames.WithLabelValues(agent).Add(float64(size))
	m.behind.WithLabelValues(agent).Set(float64(resp.GetBehind()))
	m.contact.WithLabelValues(agent).SetToCurrentTime()
}

func (m *Metrics) countCommitted(agent string, c store.Counts) {
	for _, o := range []struct {
		name  string
		count int64
	}{
		{"added", c.Added}, {"merged", c.Merged}, {"unchanged", c.Unchanged}, {"stale", c.Stale}, {"withdrawn", c.Withdrawn},
		{"deleted", c.Deleted}, {"conflicting", c.Conflicting}, {"quarantined", c.Quarantined},
	} {
		m.outcomes.WithLabelValues(agent, o.name).Add(float64(o.count))
	}
}
