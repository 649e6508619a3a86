package action

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/gauges"
)

// metrics show how the actions do, on the node that leads.
type metrics struct {
	manager *Manager
	leading atomic.Bool

	attempts, runs             *prometheus.CounterVec
	up, last, effects, partial *prometheus.Desc
}

func newMetrics(m *Manager) *metrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("bursar_actions_"+name, help, append([]string{"type", "action"}, labels...), nil)
	}
	s := &metrics{
		manager: m,
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "bursar_actions_attempts_total",
			Help: "Attempts at effects that this node has made, by how they ended."}, []string{"type", "action", "outcome"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "bursar_actions_runs_total",
			Help: "Runs that this node has ended, by whether all of them was done."}, []string{"type", "action", "result"}),
		up:      desc("state", "1 for the state that the action is in, on the leader.", "state"),
		last:    desc("last_success_timestamp_seconds", "When the last run was planned of which nothing was left undone, on the leader."),
		effects: desc("last_run_effects", "Effects of the newest run by their state, when it has ended, on the leader.", "state"),
		partial: desc("last_run_partial", "1 when something was missing from the newest plan, on the leader."),
	}
	m.Metrics.MustRegister(s, shown{s}, s.attempts, s.runs)
	return s
}

func (s *metrics) noteLeader(yes bool) { s.leading.Store(yes) }

func (s *metrics) countEnded(name Name, outcome string) {
	s.attempts.WithLabelValues(name.Type, name.Label, outcome).Inc()
}

func (s *metrics) noteFinished(name Name, run *Run) {
	result := "done"
	if !run.Counts.allWell() {
		result = "not_all_done"
	}
	s.runs.WithLabelValues(name.Type, name.Label, result).Inc()
}

// Describe implements prometheus.Collector.
func (s *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.up, s.last, s.effects, s.partial} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s *metrics) Collect(out chan<- prometheus.Metric) {
	for _, st := range s.listActions() {
		s.showStatus(out, &st)
	}
}

// listActions are the actions of the configuration, on the leader.
func (s *metrics) listActions() []Status {
	if !s.leading.Load() {
		return nil
	}
	list, err := store.With(s.manager.Views, func(view *store.View) ([]Status, error) { return s.manager.List(view) })
	if err != nil {
		return nil // the store is being closed
	}
	return slices.DeleteFunc(list, func(st Status) bool { return !st.Configured })
}

// shown is what plugins show, which is not known before.
type shown struct{ *metrics }

// Describe implements prometheus.Collector.
func (shown) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s shown) Collect(out chan<- prometheus.Metric) {
	seen := map[string]bool{}
	for _, st := range s.listActions() {
		if st.Last == nil {
			continue
		}
		for i := range st.Last.Gauges {
			st.Last.Gauges[i].showGauge(out, st.Name, seen)
		}
	}
}

func (s *metrics) showStatus(out chan<- prometheus.Metric, st *Status) {
	put := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{st.Name.Type, st.Name.Label}, labels...)...)
	}
	now := st.State()
	for _, state := range []string{"healthy", "running", "partial", "failing", "unknown", "paused", "disabled"} {
		put(s.up, gauges.OneIf(state == now), state)
	}
	if st.Stored.LastSuccess != 0 {
		put(s.last, float64(st.Stored.LastSuccess)/1e6)
	}
	if st.Last == nil {
		return
	}
	put(s.partial, gauges.OneIf(st.Last.Partial))
	c := &st.Last.Counts
	for state, n := range map[string]int{Done: c.Done, Rejected: c.Rejected, Unknown: c.Unknown, Skipped: c.Skipped, Superseded: c.Superseded} {
		put(s.effects, float64(n), state)
	}
}

// showGauge shows a gauge of a plugin. One that is there twice is shown once.
func (g *Gauge) showGauge(out chan<- prometheus.Metric, name Name, seen map[string]bool) {
	labels := prometheus.Labels{"action": name.Label}
	maps.Copy(labels, g.Labels)
	id := "bursar_action_" + strings.ReplaceAll(name.Type, "-", "_") + "_" + g.Name
	m, err := prometheus.NewConstMetric(prometheus.NewDesc(id, "As the plugin of an action says of its newest plan, on the leader.", nil, labels), prometheus.GaugeValue, g.Value)
	if err != nil || seen[id+string(encodeDocument(labels))] {
		return
	}
	seen[id+string(encodeDocument(labels))] = true
	out <- m
}
