package run

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/bursar-accounting/bursar/agent/internal/collect"
	"github.com/bursar-accounting/bursar/proto/gauges"
	"github.com/bursar-accounting/bursar/proto/record"
)

// serveMetrics serves the metrics until ctx ends.
func (a *Agent) serveMetrics(ctx context.Context, l net.Listener, path string) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(a.newCollectors()...)
	mux := http.NewServeMux()
	mux.Handle("GET "+path, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// newCollectors returns the collectors of all metrics of the agent.
func (a *Agent) newCollectors() []prometheus.Collector {
	all := []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newMetrics(a), a.runner.Collector()}
	if a.keys != nil {
		all = append(all, a.keys.Collector())
	}
	return all
}

// metrics reads the agent's state whenever it is asked.
type metrics struct {
	agent *Agent
	all   []*prometheus.Desc

	build, success, lag, up, jobs, failures                *prometheus.Desc
	frames, bytes, maxBytes, behind, acknowledged, records *prometheus.Desc
	damaged                                                *prometheus.Desc
}

func newMetrics(a *Agent) *metrics {
	var all []*prometheus.Desc
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		all = append(all, prometheus.NewDesc("bursar_"+name, help, labels, nil))
		return all[len(all)-1]
	}
	m := &metrics{
		agent:        a,
		build:        desc("build_info", "The agent's version; always 1.", "version", "goversion"),
		success:      desc("source_last_success_timestamp_seconds", "When the source was last collected to its end.", "source"),
		lag:          desc("source_lag_seconds", "How far the source's completeness is behind now.", "source"),
		up:           desc("source_up", "Whether the source is being collected (1) or has failed or is paused (0).", "source"),
		failures:     desc("source_plugin_failures_total", "How often the source's plugin hung and was killed (hung), or ended by itself or did not start (ended).", "source", "reason"),
		jobs:         desc("source_jobs_total", "Jobs of the source by what became of them.", "source", "result"),
		records:      desc("source_records_total", "Records that the source has sent.", "source"),
		frames:       desc("buffer_frames", "Frames in the buffer."),
		bytes:        desc("buffer_bytes", "Bytes of the frames in the buffer."),
		maxBytes:     desc("buffer_max_bytes", "Bytes that the buffer may hold."),
		damaged:      desc("buffer_damaged", "1 while frames in the buffer were found that cannot be read, otherwise 0."),
		behind:       desc("buffer_unacknowledged_frames", "Frames that the cluster has not acknowledged.", "cluster"),
		acknowledged: desc("buffer_last_acknowledgement_timestamp_seconds", "When the cluster last acknowledged.", "cluster"),
	}
	m.all = all
	return m
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range m.all {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(m.build, 1, m.agent.opt.Version, runtime.Version())
	if stats, err := m.agent.buffer.Stats(); err == nil {
		b := bufferOf(stats)
		gauge(m.frames, float64(b.Last+1-b.First))
		gauge(m.bytes, float64(b.Bytes))
		gauge(m.maxBytes, float64(b.MaxBytes))
		gauge(m.damaged, gauges.OneIf(b.Damage != ""))
		for _, c := range b.Clusters {
			gauge(m.behind, float64(c.Behind), c.ID)
			gauge(m.acknowledged, float64(c.At.UnixMicro())/1e6, c.ID)
		}
	}
	for _, s := range m.agent.runningSources() {
		m.collectSource(s, gauge, ch)
	}
}

func (m *metrics) collectSource(s *source, gauge func(*prometheus.Desc, float64, ...string), ch chan<- prometheus.Metric) {
	cfg, status := s.currentStatus()
	name := cfg.Name()
	gauge(m.up, gauges.OneIf(status.Err == nil), name)
	if !status.LastSuccess.IsZero() {
		gauge(m.success, float64(status.LastSuccess.UnixMicro())/1e6, name)
	}
	if at := completeTo(status); !at.IsZero() {
		gauge(m.lag, max(0, time.Since(at).Seconds()), name)
	}
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	c := status.Counts
	count(m.records, c.Records, name)
	hung, ended := s.failureCounts()
	count(m.failures, int64(hung), name, "hung")
	count(m.failures, int64(ended), name, "ended")
	for result, n := range map[string]int64{
		"sent": c.Records, "unchanged": c.Unchanged, "filtered": c.Filtered, "withdrawn": c.Withdrawn,
		"quarantined": c.Quarantined, "refused": c.Refused, "skipped": c.Skipped,
	} {
		count(m.jobs, n, name, result)
	}
}

// completeTo is the watermark, or the last success of a source that gives none.
func completeTo(s collect.Status) time.Time {
	if s.Watermark != record.None {
		return time.UnixMicro(int64(s.Watermark))
	}
	return s.LastSuccess
}
