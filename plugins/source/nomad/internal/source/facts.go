package source

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math/big"
	"slices"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/mig"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// sendFacts sends the facts that are due, after the runs: what is wrong with them never
// holds up a record.
func (p *pass) sendFacts(ctx context.Context, people []sdk.Person, queue facts.Counts) error {
	before := p.done.Told
	list := []facts.Fact{
		{Name: facts.Census, Ask: func(context.Context) error {
			rows, err := queue.Rows(facts.Most)
			p.Batch.Census = &sdk.Census{At: p.done.Look, Rows: rows}
			return err
		}},
		{Name: facts.Directory, Ask: func(context.Context) error { return p.tellDirectory(people) }},
		{Name: facts.Capacity, Ask: p.tellCapacity},
	}
	return p.facts.Tell(ctx, p.factSettings(), p.listings <= 1, list, func() error {
		if p.done.Told != before {
			p.Batch.Checkpoint = p.done.encodeWire()
		}
		return p.Flush(ctx)
	})
}

func (p *pass) factSettings() facts.Settings {
	return facts.Settings{Every: p.config.facts, Now: p.now, Log: p.log, Remedy: func(name string) string {
		return "give the token the right to it, or set " + name + " = false in the source's config block"
	}}
}

// tellCapacity sends what the nodes have when that has changed.
func (p *pass) tellCapacity(ctx context.Context) error {
	nodes, err := p.nomad.Nodes(ctx)
	if err != nil {
		return err
	}
	p.nodes = map[string]nomad.Node{}
	for _, n := range nodes {
		p.nodes[n.ID] = n
	}
	if news := p.done.Told.News(p.done.Look, p.config.filter.sumCapacity(nodes)); news != nil {
		p.Batch.Capacity = news
	}
	return nil
}

// sumCapacity adds up what the nodes of the wanted pools have that are ready.
func (f *filter) sumCapacity(nodes []nomad.Node) []sdk.Amount {
	total, parts := map[string]int64{"Cores": 0, "MHz": 0, "Memory": 0, "Disk": 0}, new(big.Rat)
	for _, n := range nodes {
		if n.Status != "ready" || n.NodeResources == nil || !allowedBy(f.Pools, n.NodePool) {
			continue
		}
		r := n.NodeResources
		total["Cores"] += r.Cpu.TotalCpuCores
		total["MHz"] += r.Cpu.CpuShares
		total["Memory"] += r.Memory.MemoryMB
		total["Disk"] += r.Disk.DiskMB
		for _, d := range r.Devices {
			if d.Type == "gpu" {
				instances := int64(len(d.Instances))
				total["GPUs"] += instances
				total["GPUs:"+d.Name] += instances
				if profile, model, slice := mig.Profile(d.Name); slice {
					if part, err := mig.Share(profile, model); err == nil { // else tasks there have none
						parts.Add(parts, part.Mul(part, big.NewRat(instances, 1)))
					}
				}
			}
		}
	}
	if n, err := mig.Thousandths(parts); err == nil && n > 0 {
		total["MilliGPUs"] = n
	}
	return facts.Amounts(total)
}

// countAllocations counts the allocations of a job.
func countAllocations(c facts.Counts, j *nomad.JobStub, owner, queue string) {
	if j.JobSummary == nil {
		return
	}
	at := facts.Place{User: j.Meta[owner], Queue: j.Namespace}
	if queue == "node_pool" {
		at.Queue = j.NodePool
	}
	var runs, waits int64
	for _, g := range j.JobSummary.Summary {
		runs += g.Running + g.Unknown
		waits += g.Queued + g.Starting
	}
	if runs+waits > 0 {
		c.Add(at, runs, waits)
	}
}

// ownerOf is the owner of a job; none when its meta names none.
func ownerOf(j *nomad.JobStub, keys run.Owner) []sdk.Person {
	id := j.Meta[keys.ID]
	if id == "" {
		return nil
	}
	return []sdk.Person{{User: id, Groups: []string{j.Namespace}, Name: j.Meta[keys.Name], Address: j.Meta[keys.Email]}}
}

// tellDirectory sends who owns jobs when that has changed. Who has owned one stays,
// though the job has gone.
func (p *pass) tellDirectory(people []sdk.Person) error {
	const name = "people"
	known := map[string]sdk.Person{}
	var before []sdk.Person
	if text := p.Setting(name); len(text) > 0 {
		if err := json.Unmarshal(text, &before); err != nil {
			p.log.Warn("the people in the journal cannot be read; they are learned again", "error", err)
		}
	}
	for _, one := range append(before, people...) {
		old := known[one.User]
		one.Groups = append(slices.Clone(one.Groups), old.Groups...)
		slices.Sort(one.Groups)
		one.Groups = slices.Compact(one.Groups)
		one.Name, one.Address = cmp.Or(one.Name, old.Name), cmp.Or(one.Address, old.Address)
		known[one.User] = one
	}
	var all []sdk.Person
	for _, user := range slices.Sorted(maps.Keys(known)) {
		all = append(all, known[user])
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := p.Set(name, text); err != nil {
		return err
	}
	all, err = facts.Fit(all, facts.Most)
	if now := facts.Digest(all); len(all) > 0 && now != p.done.Told.Directory {
		p.done.Told.Directory, p.Batch.Directory = now, all
	}
	return err
}
