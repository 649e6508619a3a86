package main

import (
	"context"
	"iter"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/auditor/utilization"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// compatSettings are those of AUDITOR's utilization plugin 0.11.
type compatSettings struct {
	GroupedBy   string            `hcl:"grouped_by,optional" default:"user_id" doc:"the meta key of the first column"`
	GroupedList hcl.Strings       `hcl:"grouped_list,optional" doc:"texts; a value that has one of them counts for the first"`
	Watts       float64           `hcl:"watt_per_core,optional" default:"4.6" doc:"watts of a core"`
	Sites       map[string]string `hcl:"watt_per_core_of_site,optional" doc:"watts of a core by site, in place of watt_per_core; a record of another site has no energy"`
	SiteKey     string            `hcl:"site_key,optional" default:"site" doc:"the meta key of the site"`
	CO2         float64           `hcl:"co2_per_kwh,optional" default:"0.363" doc:"kg of CO2 of a kWh"`
	Collector   string            `hcl:"collector_type,optional" default:"htcondor" allowed:"htcondor slurm kubernetes" doc:"of slurm and kubernetes, CPU time is divided by 1000, as AUDITOR does"`
	TotalCPU    string            `hcl:"total_cpu,optional" default:"TotalCPU" doc:"the component of CPU time"`

	sites map[string]float64
}

// auditorTable makes AUDITOR's table of a month from the records that stopped in it.
func (p *planner) auditorTable(ctx context.Context, from, to time.Time) (table, error) {
	c := p.Compat
	rules := utilization.Rules{
		GroupedBy: c.GroupedBy, GroupedList: c.GroupedList, Watts: c.Watts, Sites: c.sites, SiteKey: c.SiteKey, CO2: c.CO2,
		Collector: c.Collector, Cores: p.Cores, TotalCPU: c.TotalCPU, Benchmark: p.Benchmark,
	}
	rows, err := rules.Table(from, to, func(from, to time.Time) iter.Seq2[record.Record, error] {
		return p.data.Records(ctx, &v1.ListRecordsQuery{Archived: new(true), StopTime: v1.TimeTest{Gte: v1.Time{Time: from}, Lt: v1.Time{Time: to}}})
	})
	return table{columns: utilization.Columns(), rows: rows}, err
}
