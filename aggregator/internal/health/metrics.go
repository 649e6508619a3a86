package health

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/proto/gauges"
)

// Metrics show the newest report of a watch to Prometheus: all that `bursar
// status` says. They are absent until the first report.
type Metrics struct {
	watch *Watch
	descs map[string]*prometheus.Desc
}

// metric is one of the metrics.
type metric struct {
	name, help string
	labels     []string
}

func metricList() []metric {
	node, agent := []string{"node"}, []string{"agent"}
	return []metric{
		{"health_state", "The verdict: 0 healthy, 1 degraded, 2 failing.", nil},
		{"health_findings", "What has been found, by kind and severity.", []string{"id", "severity"}},
		{"health_last_report_timestamp_seconds", "When the cluster was last judged.", nil},
		{"cluster_members", "Members of the cluster.", nil},
		{"cluster_members_heard", "Members that this node hears, itself among them.", nil},
		{"cluster_voters", "Members that vote.", nil},
		{"cluster_has_leader", "1 while this node knows who leads, otherwise 0.", nil},
		{"cluster_state_differs", "1 while two members differ in their state at the same index, otherwise 0.", nil},
		{"node_lag_entries", "Entries of the log that a member has not applied yet.", node},
		{"node_last_contact_timestamp_seconds", "Time of the last contact with a member.", node},
		{"node_clock_offset_seconds", "How far the clock of a member is ahead of this node's.", node},
		{"node_disk_free_ratio", "Free part of a member's disk.", node},
		{"node_fenced", "1 while a member keeps itself from serving, otherwise 0.", node},
		{"node_config_differs", "1 while the files of a member differ from what the cluster uses, otherwise 0.", node},
		{"node_certificate_expiry_timestamp_seconds", "When the certificate of a member ends.", node},
		{"node_info", "1; the version that a member runs is a label.", []string{"node", "version"}},
		{"agent_connected", "1 while the leader's last pull from an agent succeeded, otherwise 0.", agent},
		{"agent_behind_frames", "Frames that wait on an agent, as this node knows it from the leader.", agent},
		{"quarantined_jobs", "Jobs in quarantine.", nil},
		{"conflicting_records", "Runs about whose start origins disagree.", nil},
		{"waiting_stops", "Stops that wait for a record that has not come.", nil},
		{"gaps", "Gaps in what agents could hand over.", nil},
		{"missing_runs", "Runs that schedulers have and that are not counted, of the days that were compared lately.", []string{"source"}},
		{"source_silent_seconds", "For how long a source has said nothing, where that is longer than is usual for it.", []string{"source"}},
		{"sources_not_conserved", "Sources whose counters do not add up; must be 0.", nil},
		{"complete_to_timestamp_seconds", "Up to when the source that is most behind is complete.", nil},
		{"snapshot_last_saved_timestamp_seconds", "When a snapshot was last saved; absent when none is known of.", nil},
	}
}

// NewMetrics registers the metrics of a watch.
func NewMetrics(w *Watch, reg prometheus.Registerer) {
	m := &Metrics{watch: w, descs: map[string]*prometheus.Desc{}}
	for _, d := range metricList() {
		m.descs[d.name] = prometheus.NewDesc("bursar_"+d.name, d.help, d.labels, nil)
	}
	reg.MustRegister(m)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range metricList() {
		to <- m.descs[d.name]
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	r, ok := m.watch.Last()
	if !ok {
		return
	}
	set := func(name string, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(m.descs[name], prometheus.GaugeValue, value, labels...)
	}
	collectVerdict(&r, set)
	collectNodes(&r, set)
	for _, a := range r.Facts.Agents {
		set("agent_connected", gauges.OneIf(a.Connected), a.Name)
		set("agent_behind_frames", float64(a.Behind), a.Name)
	}
	collectData(&r.Facts, set)
}

type setter func(name string, value float64, labels ...string)

func collectVerdict(r *Report, set setter) {
	set("health_state", map[State]float64{Healthy: 0, Degraded: 1, Failing: 2}[r.State])
	set("health_last_report_timestamp_seconds", gauges.UnixSeconds(r.Facts.Now))
	type kind struct{ id, severity string }
	kinds := map[kind]int{}
	differs := false
	for i := range r.Findings {
		f := &r.Findings[i]
		kinds[kind{f.ID, string(f.Severity)}]++
		differs = differs || f.ID == "state-differs"
	}
	for k, n := range kinds {
		set("health_findings", float64(n), k.id, k.severity)
	}
	set("cluster_state_differs", gauges.OneIf(differs))
	set("cluster_has_leader", gauges.OneIf(r.Facts.Leader != ""))
}

func collectNodes(r *Report, set setter) {
	heard, voters := 0, 0
	names := map[string]bool{}
	for i := range r.Facts.Nodes {
		n := &r.Facts.Nodes[i]
		if r.Heard(n) {
			heard++
		}
		if n.Voter {
			voters++
		}
		if names[n.Name] {
			continue // an old id of a node that was replaced
		}
		names[n.Name] = true
		if n.LagKnown {
			set("node_lag_entries", float64(n.Lag), n.Name)
		}
		if !n.Seen.IsZero() {
			set("node_last_contact_timestamp_seconds", gauges.UnixSeconds(n.Seen), n.Name)
		}
		set("node_clock_offset_seconds", n.ClockOffset.Seconds(), n.Name)
		if n.Disk.Size > 0 {
			set("node_disk_free_ratio", n.Disk.Share()/100, n.Name)
		}
		set("node_fenced", gauges.OneIf(n.Fenced != ""), n.Name)
		set("node_config_differs", gauges.OneIf(len(n.ConfigDiffers) > 0), n.Name)
		if !n.CertEnds.IsZero() {
			set("node_certificate_expiry_timestamp_seconds", gauges.UnixSeconds(n.CertEnds), n.Name)
		}
		set("node_info", 1, n.Name, n.Version)
	}
	set("cluster_members", float64(len(r.Facts.Nodes)))
	set("cluster_members_heard", float64(heard))
	set("cluster_voters", float64(voters))
}

func collectData(f *Facts, set setter) {
	if d := &f.Data; d.Known {
		set("quarantined_jobs", float64(d.Quarantined))
		set("conflicting_records", float64(d.Conflicts))
		set("waiting_stops", float64(d.Waiting))
		set("gaps", float64(d.Gaps))
		for _, s := range d.Silent {
			set("source_silent_seconds", f.Now.Sub(s.Since).Seconds(), s.Source)
		}
		missing := map[string]float64{}
		for i := range d.Lacking {
			missing[d.Lacking[i].Source] += float64(d.Lacking[i].Runs)
		}
		for source, runs := range missing {
			set("missing_runs", runs, source)
		}
		set("sources_not_conserved", float64(len(d.Lost)))
		if !d.CompleteTo.IsZero() {
			set("complete_to_timestamp_seconds", gauges.UnixSeconds(d.CompleteTo))
		}
	}
	if !f.Backup.Last.IsZero() {
		set("snapshot_last_saved_timestamp_seconds", gauges.UnixSeconds(f.Backup.Last))
	}
}
