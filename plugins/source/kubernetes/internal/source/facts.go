package source

import (
	"context"
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// tell sends the facts that are due, after the runs: what is wrong with them never holds
// up a record.
func (p *pass) tell(ctx context.Context) error {
	renew := p.listings == 1 && !p.told
	for _, f := range []struct {
		name string
		ask  func(context.Context) error
	}{{facts.Census, p.tellCensus}, {facts.Capacity, p.tellCapacity}} {
		if err := p.facts.Ask(ctx, p.factSettings(), f.name, renew, f.ask); err != nil {
			return err
		}
	}
	p.told = true
	err := p.flush(ctx)
	if err != nil {
		p.facts.Forget()
	}
	return err
}

func (p *pass) factSettings() facts.Settings {
	return facts.Settings{Every: p.config.facts, Now: p.now, Log: p.log, Remedy: func(name string) string {
		if name == "usage" {
			return "check address, ca and token in the block prometheus; runs wait for it"
		}
		return "apply the RBAC manifest in deploy/rbac.yaml, or leave it"
	}}
}

// tellCensus counts the pods that run and wait.
func (p *pass) tellCensus(context.Context) error {
	counts := facts.Counts{}
	for _, e := range p.open {
		if !e.GoneAt.IsZero() || !p.config.wanted(&e.Pod.Metadata) {
			continue
		}
		at := facts.Place{User: e.Lookup(p.config.rules.User), Queue: e.Pod.Metadata.Namespace}
		switch e.Pod.Status.Phase {
		case kube.Running:
			counts.Add(at, 1, 0)
		case kube.Pending, "":
			counts.Add(at, 0, 1)
		}
	}
	rows, err := counts.Rows(facts.Most)
	p.batch.Census = &sdk.Census{At: p.now().UTC(), Rows: rows}
	return err
}

// tellCapacity sends what the nodes have when that has changed.
func (p *pass) tellCapacity(ctx context.Context) error {
	nodes, err := p.cluster.listNodes(ctx, p)
	if err != nil {
		return err
	}
	components, err := p.sum(nodes)
	if now := facts.Digest(components); err == nil && now != p.done.Told.Capacity {
		p.done.Told.Capacity, p.moved = now, true
		p.batch.Capacity = &sdk.Capacity{From: p.now().UTC(), Components: components}
	}
	return err
}

// sum adds up what pods may take of the nodes that are ready.
func (p *pass) sum(nodes []*kube.Node) ([]sdk.Amount, error) {
	total := map[string]int64{"MilliCores": 0, "Memory": 0}
	for _, n := range nodes {
		if !n.Ready() {
			continue
		}
		has, err := run.ParseAmounts(n.Status.Allocatable)
		if err != nil {
			return nil, err
		}
		for name, amount := range has {
			switch {
			case name == "cpu":
				total["MilliCores"] += amount
			case name == "memory":
				total["Memory"] += amount >> 20
			case name == "ephemeral-storage":
				total["Disk"] += amount >> 20
			case run.Extended(name):
				total[name] += amount
			}
			if p.config.rules.GPU(name) {
				total["GPUs"] += amount
				if model := run.Model(n.Metadata.Labels, p.config.rules.Model); model != "" {
					total["GPUs:"+model] += amount
				}
			}
		}
		if n, err := p.config.rules.MilliGPUs(has, n.Metadata.Labels); err == nil && n > 0 { // else runs there have none
			total["MilliGPUs"] += n
		}
	}
	var out []sdk.Amount
	for _, name := range slices.Sorted(maps.Keys(total)) {
		out = append(out, sdk.Amount{Name: name, Amount: total[name]})
	}
	return out, nil
}
