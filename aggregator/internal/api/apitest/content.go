package apitest

import (
	"maps"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// At reads a time in RFC 3339, or a date; "" is none.
func At(text string) record.Time {
	if text == "" {
		return record.None
	}
	if len(text) == len(time.DateOnly) {
		text += "T00:00:00Z"
	}
	t, err := record.ParseTime(text)
	if err != nil {
		panic(err)
	}
	return t
}

// Job is a run of which a record is made.
type Job struct {
	ID, Group, User string
	// Start, Stop and Submit are as [At] reads them; without a Stop the run goes on.
	Start, Stop, Submit string
	Cores, GPUs         int64
	Memory, MemoryUsed  int64 // megabytes
	CPU, GPUTime        int64 // seconds of processors and GPUs that were used
	GPUMemory           int64 // mebibytes of the GPUs
	GPUMemoryUsed       int64
	HS                  float64
	State               string
	Meta                map[string]string
}

// Record is the record of the run.
func (j Job) Record() record.Record {
	r := record.Record{ID: j.ID, Start: At(j.Start), Stop: At(j.Stop), Submit: At(j.Submit), State: j.State}
	meta := map[string]string{"group_id": j.Group, "user_id": j.User}
	maps.Copy(meta, j.Meta)
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		if meta[key] != "" {
			r.Meta = append(r.Meta, record.MetaEntry{Key: key, Values: []string{meta[key]}})
		}
	}
	add := func(name string, amount int64, kind record.Kind, scores ...record.Score) {
		if amount > 0 {
			r.Components = append(r.Components, record.Component{Name: name, Amount: amount, Kind: kind, Scores: scores})
		}
	}
	var scores []record.Score
	if j.HS > 0 {
		scores = append(scores, record.Score{Name: "HS", Value: j.HS})
	}
	add("Cores", j.Cores, record.Rate, scores...)
	add("GPUs", j.GPUs, record.Rate)
	add("Memory", j.Memory, record.Rate)
	add("MemoryUsed", j.MemoryUsed, record.Rate)
	add("TotalCPU", j.CPU, record.Total)
	add("TotalGPU", j.GPUTime, record.Total)
	add("GPUMemory", j.GPUMemory, record.Rate)
	add("GPUMemoryUsed", j.GPUMemoryUsed, record.Rate)
	return r
}

// Records are those of runs.
func Records(jobs ...Job) (list []record.Record) {
	for _, j := range jobs {
		list = append(list, j.Record())
	}
	return list
}

// Nemo is the source of most records of [Filled].
func Nemo() record.Origin { return record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"} }

// quietSource is a source of which nothing has been heard for long; its label is one that no
// terminal may be shown.
func quietSource() record.Origin {
	return record.Origin{Agent: "head2", Type: "slurm", Label: "tiny\x1b[2J"}
}

// Hostile is a name that no terminal may be shown.
const Hostile = "group with a long name \x1b[31m"

// nemoJobs are those of nemo, from January to the first of March.
func nemoJobs() []Job {
	nemo := map[string]string{"site_id": "nemo", "host": "node-1"}
	return []Job{
		{ID: "nemo-1", Group: "atlas", User: "alice", Submit: "2026-01-30T21:56:55Z", Start: "2026-02-01", Stop: "2026-02-02T03:04:05.5Z", Cores: 8, Memory: 16000, MemoryUsed: 8000, CPU: 400_000, HS: 10, State: "COMPLETED", Meta: nemo},
		{ID: "nemo-2", Group: "atlas", User: "bob", Submit: "2026-02-10T11:59:00Z", Start: "2026-02-10T12:00:00Z", Stop: "2026-02-20T12:00:00Z", Cores: 1000, Memory: 4_000_000, MemoryUsed: 1_000_000, CPU: 600_000_000, HS: 10, State: "COMPLETED", Meta: nemo},
		{ID: "nemo-3", Group: Hostile, User: "carol", Submit: "2026-02-14T00:00:00Z", Start: "2026-02-14T01:00:00Z", Stop: "2026-02-14T02:00:00Z", Cores: 777, GPUs: 4, State: "FAILED", Meta: nemo},
		{ID: "nemo-\x1b[31m4", Start: "2026-02-15", Stop: "2026-02-15T00:00:00.0108Z", Cores: 1, State: "CANCELLED", Meta: nemo},
		{ID: "nemo-5", Group: "cms", User: "eve", Start: "2026-01-05", Stop: "2026-01-25", Cores: 100, HS: 10, State: "COMPLETED", Meta: nemo},
		{ID: "nemo-6", Group: "cms", User: "eve", Submit: "2026-02-27T00:00:00Z", Start: "2026-02-28", Cores: 40, HS: 10, State: "RUNNING", Meta: nemo},
		{ID: "nemo-7", Group: "cms", User: "eve", Submit: "2026-02-27T00:00:00Z", Start: "2026-02-28", Cores: 10, GPUs: 2, State: "RUNNING", Meta: map[string]string{"site_id": "nemo", "time_limit": "259200"}},
		{ID: "nemo-8", Group: "chem", User: "b=c", Start: "2026-02-22", Stop: "2026-02-22T12:00:00Z", Cores: 2, State: "COMPLETED", Meta: map[string]string{"site_id": "nemo", "host": "node-gpu-1", "job": "-x"}},
	}
}

// Filled makes a world with a little of everything: records of two agents, a job in
// quarantine, a conflict, gaps, days that lack runs, people, projects, prices, budgets and
// clusters.
func Filled(t testing.TB) *World {
	t.Helper()
	w := New(t)
	w.Apply(&store.SetClusterCommand{ID: "CLUSTERID"})
	list := Records(nemoJobs()...)
	another := list[0]
	another.Start -= record.Hour
	w.Post(another)
	pushed := Job{ID: "pushed-1", Group: "atlas", User: "alice", Start: "2026-02-27", Stop: "2026-02-28", Cores: 4, Meta: map[string]string{"site_id": "elsewhere"}}
	w.Collect(record.Origin{Agent: "head1"}, Records(pushed), nil)
	w.Collect(Nemo(), list, nemoReport(list))
	tiny := Job{ID: "tiny-1", Group: "chem", User: "eve", Start: "2026-02-16", Stop: "2026-02-16T08:00:00Z", Cores: 4, State: "COMPLETED", Meta: map[string]string{"site_id": quietSource().Label}}
	w.Collect(quietSource(), Records(tiny), &store.IngestCommand{
		Now:        At("2026-03-01T11:50:00Z"),
		Watermarks: []store.Watermark{{Source: quietSource(), CompleteTo: At("2026-02-20")}},
		Facts:      []store.Fact{censusFact(quietSource(), "2026-03-01T11:50:00Z", wire.CensusRow{User: "eve\x1b", Queue: "q", Running: 3}), Capacity(quietSource(), "2026-02-01", 4)},
	})
	w.Options.Agents = Agents{
		{Name: "head1", Address: "head1:7070", Connected: true, LastContact: time.Date(2026, 3, 1, 11, 59, 59, 123_456_000, time.UTC), Behind: 12, States: map[string]string{"slurm/nemo": "waiting"}},
		{Name: "head2", Address: "head2:7070", Error: "pull: no route to host"},
	}
	w.Settings = Settings()
	w.Keep()
	return w
}

// nemoReport is what nemo says beside its records.
func nemoReport(list []record.Record) *store.IngestCommand {
	c := &store.IngestCommand{
		Now: At("2026-03-01T00:00:00Z"),
		Quarantine: []store.Quarantined{{
			Source: Nemo(), ID: "4711/a", Reason: "mapping", Message: "agent.hcl:12:5: no attribute", RecordID: "nemo-4711", Raw: []byte("{\"JobID\":\"4711\"}\n\x1b[2J"),
		}},
		Watermarks: []store.Watermark{{Source: Nemo(), CompleteTo: At("2026-03-01T11:58:00Z")}},
		Gaps: []store.Gap{
			{Source: record.Origin{Agent: "head1"}, From: record.None, To: At("2026-02-28T10:00:00Z"), Reason: "the agent's buffer no longer has the frames 1 to 60, which cluster C lacks", Noticed: At("2026-03-01T09:00:00Z")},
			{Source: Nemo(), From: At("2025-01-01"), To: At("2025-02-01"), Reason: "purged\x1b[2J", Noticed: At("2026-03-01T08:00:00Z")},
		},
		Facts: []store.Fact{censusFact(Nemo(), "2026-03-01T11:59:30Z",
			wire.CensusRow{User: "alice", Queue: "gpu", Running: 2, Pending: 40}, wire.CensusRow{User: "bob", Queue: "long", Running: 3}, wire.CensusRow{User: "alice", Queue: "long", Running: 4, Pending: 5})},
	}
	stopped := map[record.Time]int64{}
	for i := range list {
		if !list[i].Open() {
			stopped[list[i].Stop-list[i].Stop%record.Day]++
		}
	}
	first, days := At("2026-01-31"), 28
	for i := range days {
		day := first + record.Time(i)*record.Day
		n := wire.Count{From: day, To: day + record.Day, At: day + 2*record.Day, Records: stopped[day], Filtered: 7}
		switch day {
		case At("2026-02-18"), At("2026-02-19"):
			n.Records, n.Shared = n.Records+4, 1
		case At("2026-02-22"): // one more is stored than the scheduler knows
			n.Records--
		}
		n.Counted = n.Records + n.Filtered + n.Shared
		f := wire.Frame{SourceType: Nemo().Type, SourceLabel: Nemo().Label, Kind: wire.KindCount, Count: n}
		c.Facts = append(c.Facts, store.Fact{Kind: store.FactCount, Source: Nemo(), At: day, Data: wire.AppendFrame(nil, &f)})
	}
	return c
}

func censusFact(source record.Origin, at string, rows ...wire.CensusRow) store.Fact {
	f := wire.Frame{SourceType: source.Type, SourceLabel: source.Label, Kind: wire.KindCensus, Census: wire.Census{At: At(at), Rows: rows}}
	return store.Fact{Kind: store.FactCensus, Source: source, At: At(at), Data: wire.AppendFrame(nil, &f)}
}

// Capacity is what a source says to have from a time on.
func Capacity(source record.Origin, from string, cores int64) store.Fact {
	f := wire.Frame{SourceType: source.Type, SourceLabel: source.Label, Kind: wire.KindCapacity}
	f.Capacity = wire.Capacity{From: At(from), Components: []record.Component{{Name: "Cores", Amount: cores}}}
	return store.Fact{Kind: store.FactCapacity, Source: source, At: At(from), Data: wire.AppendFrame(nil, &f)}
}

// Settings are the people, prices, budgets and clusters of [Filled].
func Settings() accounting.Settings {
	return accounting.Settings{Directory: directorySettings(), Money: priceSettings(), Capacity: capacityPlan()}
}

func directorySettings() accounting.DirectorySettings {
	one, factor, yes := accounting.One, accounting.Decimal(1_900_000_000), true
	return accounting.DirectorySettings{
		People: []accounting.Person{
			{ID: "ann", Name: "Ann Onyma", Address: "ann@example.org", Groups: []accounting.Groups{{From: record.None, Names: []string{"atlas", "higgs"}}}},
			{ID: "bell", Name: "A. Bell"}, {ID: "turing", Name: "A. Turing"},
		},
		Projects: []accounting.Project{
			{ID: "higgs", From: record.None, To: At("2026-07-01"), States: []accounting.ProjectState{{From: record.None, PI: "bell", Groups: []string{"atlas", "higgs"}}}},
			{ID: "guests", From: At("2026-01-01"), To: record.None, States: []accounting.ProjectState{{From: At("2026-01-01"), PI: "support", Groups: []string{"guest"}, Users: []string{"eve"}, Exempt: &yes}}},
			{ID: "enigma", From: record.None, To: record.None, States: []accounting.ProjectState{{From: record.None, PI: "turing", Groups: []string{"enigma"}, Users: []string{"carol"}}}},
		},
		Classes: []accounting.Class{
			{ID: "gpu", Pattern: "^node-gpu"},
			{ID: "node", Pattern: "^node-", Factors: []accounting.Factor{{From: record.None, Factor: factor}}},
		},
		Units: accounting.UnitRates{Rates: []accounting.UnitRate{{Component: "Cores", Worth: one}}},
		Contributions: []accounting.Contribution{
			{ID: "geo nodes", By: "phys", Credit: "bell", Amount: 12 * one, Split: 25 * one, Factor: factor, From: At("2026-01-15"), To: record.None},
			{ID: "old", By: "darwin", Amount: 20 * one, Split: 100 * one, Factor: one, From: record.None, To: record.None},
		},
	}
}

func priceSettings() accounting.PriceSettings {
	amount := func(n int64) accounting.Amount { return accounting.Billionths(big.NewInt(n * 1e9)) }
	is := func(key, value string) []accounting.PriceCondition {
		return []accounting.PriceCondition{{Key: key, Value: value}}
	}
	return accounting.PriceSettings{
		Lists: []accounting.PriceList{
			{Name: "energy", Currency: "EUR", From: record.None, To: At("2027-01-01"), Rules: []accounting.PriceRule{{Component: "Energy", Kind: record.Total, Billionths: 83}}},
			{Name: "standard", Currency: "EUR", From: At("2026-01-01"), To: record.None, Rules: []accounting.PriceRule{
				{Component: "Cores", Billionths: 12_000_000}, {Component: "Cores", Billionths: 0, When: append(is("group_id", "physics"), is("host_class", "gpu")...)},
			}},
		},
		Budgets: []accounting.Budget{
			{Name: "atlas-2026", Scope: is("project", "higgs"), Unit: "EUR", Amount: amount(100_000), Every: calendar.Year, From: record.None, To: record.None, Zone: "Europe/Berlin"},
			{Name: "cms", Scope: append(is("group_id", "cms"), is("site_id", "nemo")...), Unit: accounting.CoreHours, Amount: amount(40_000), Every: calendar.Quarter, From: record.None, To: record.None},
			{Name: "curie\x1b[31m", Scope: is("pi", "curie"), Unit: accounting.HoursOf, Component: "GPUs", Amount: amount(50_000), From: At("2026-06-01"), To: At("2026-09-01")},
			{Name: "soon", Scope: is("project", "guests"), Unit: "EUR", Amount: amount(610), Every: calendar.Year, From: record.None, To: record.None},
		},
	}
}

func capacityPlan() accounting.CapacityPlan {
	return accounting.CapacityPlan{
		Clusters: []accounting.Cluster{{
			Name: "nemo", Match: []accounting.NodeMatch{{Key: "site_id", Values: []string{"nemo"}}}, Factor: 1_900_000_000,
			Parts: []accounting.ClusterPart{
				{From: At("2026-02-01"), To: record.None, Components: map[string]int64{"Cores": 1000, "GPUs": 8}},
				{From: At("2026-02-11"), To: record.None, Components: map[string]int64{"Cores": 200}},
			},
		}},
		Groups: []accounting.NodeGroup{{Name: "grid", Clusters: []string{"nemo", "gone"}}},
	}
}

// Agents are those that the world's node pulls from. A retry of each job succeeds.
type Agents []api.AgentStatus
