package store

import (
	"github.com/prometheus/client_golang/prometheus"
)

// collector shows what a store holds when it is asked.
type collector struct {
	store   *Store
	records *prometheus.Desc
	seq     *prometheus.Desc
	applied *prometheus.Desc
	bytes   *prometheus.Desc
	blocks  *prometheus.Desc
	writes  *prometheus.Desc
}

func newCollector(s *Store) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("bursar_store_"+name, help, labels, nil)
	}
	return &collector{
		store:   s,
		records: desc("records", "Records that are shown."),
		seq:     desc("sequence", "Number of the last change in the feed."),
		applied: desc("applied_index", "Index of the last command that was applied."),
		bytes:   desc("disk_bytes", "Bytes that the database takes on disk."),
		blocks:  desc("blocks", "Columnar blocks."),
		writes:  desc("writes_total", "Writes by what became of them; pulled is their sum.", "agent", "type", "label", "outcome"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.records, c.seq, c.applied, c.bytes, c.blocks, c.writes} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. A store that is closed shows nothing.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	v, err := c.store.View()
	if err != nil {
		return
	}
	defer func() { _ = v.Close() }() // it was only read
	gauge := func(d *prometheus.Desc, value float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	index, _ := v.Applied()
	gauge(c.records, float64(v.Count()))
	gauge(c.seq, float64(v.Seq()))
	gauge(c.applied, float64(index))
	gauge(c.bytes, float64(c.store.BytesOnDisk()))
	gauge(c.blocks, float64(len(v.memory.zones)))
	c.collectWrites(v, ch)
}

func (c *collector) collectWrites(v *View, ch chan<- prometheus.Metric) {
	sources, err := v.Counters()
	if err != nil {
		return
	}
	for i := range sources {
		o, n := sources[i].Source, &sources[i].Counts
		for _, p := range []struct {
			outcome string
			value   int64
		}{{"pulled", n.Pulled}, {"added", n.Added}, {"merged", n.Merged}, {"unchanged", n.Unchanged}, {"stale", n.Stale},
			{"withdrawn", n.Withdrawn}, {"deleted", n.Deleted}, {"conflicting", n.Conflicting}, {"quarantined", n.Quarantined}} {
			ch <- prometheus.MustNewConstMetric(c.writes, prometheus.CounterValue, float64(p.value), o.Agent, o.Type, o.Label, p.outcome)
		}
	}
}
