package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// sendFacts sends the facts that are due, after the runs: what is wrong with them never holds
// up a record.
func (p *pass) sendFacts(ctx context.Context) error {
	renew := p.listings == 1 && !p.told
	list := []facts.Fact{{Name: facts.Census, Ask: p.tellCensus}, {Name: facts.Capacity, Ask: p.tellCapacity}}
	return p.facts.Tell(ctx, p.factSettings(), renew, list, func() error {
		p.told = true
		return p.flush(ctx)
	})
}

func (p *pass) factSettings() facts.Settings {
	return facts.Settings{Every: p.config.facts, Now: p.now, Log: p.log, Remedy: func(name string) string {
		if name == "usage" {
			return "check address, ca and token in the block prometheus; runs wait for it"
		}
		return "apply the RBAC manifest in deploy/rbac.yaml, or leave it"
	}}
}

// tellCensus counts the pods that run and wait, and those that suspended jobs wait for.
func (p *pass) tellCensus(ctx context.Context) error {
	counts := facts.Counts{}
	for _, e := range p.Open {
		if !e.GoneAt.IsZero() || !p.config.wantsPod(&e.Pod.Metadata) {
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
	if err := p.countSuspended(ctx, counts); err != nil {
		return err
	}
	rows, err := counts.Rows(facts.Most)
	p.Batch.Census = &sdk.Census{At: p.now().UTC(), Rows: rows}
	return err
}

// countSuspended counts the pods of suspended jobs, which Kueue has not admitted, as waiting.
func (p *pass) countSuspended(ctx context.Context, counts facts.Counts) error {
	for _, namespace := range p.scopes() {
		suspended, err := kube.ListAll(ctx, p.client, kube.In(kube.Jobs, namespace), func(j *kube.Job) bool { return j.Waiting() > 0 })
		if err := p.tolerateDenial(ctx, "listing of jobs", err); err != nil {
			return err
		}
		for _, j := range suspended {
			e := run.New()
			e.Pod.Metadata = j.Spec.Template.Metadata
			e.Pod.Metadata.Namespace = j.Metadata.Namespace
			if !p.config.wantsPod(&e.Pod.Metadata) {
				continue
			}
			if err := p.cluster.addLabels(ctx, p, e); err != nil {
				return err
			}
			counts.Add(facts.Place{User: e.Lookup(p.config.rules.User), Queue: j.Metadata.Namespace}, 0, j.Waiting())
		}
	}
	return nil
}

// tellCapacity sends what the nodes have when that has changed.
func (p *pass) tellCapacity(ctx context.Context) error {
	nodes, err := p.cluster.listNodes(ctx, p)
	if err != nil {
		return err
	}
	offers, err := p.cluster.listSlices(ctx, p)
	if kube.Denied(err) && p.granted["attributes of devices"] { // the capacity of before is better than one without devices
		return err
	}
	if err := p.tolerateDenial(ctx, "attributes of devices", err); err != nil {
		return err
	}
	components, err := p.sumCapacity(nodes, offers)
	if news := p.done.Told.News(p.now().UTC(), components); news != nil {
		p.Batch.Capacity, p.moved = news, true
	}
	return err
}

// sumCapacity adds up what pods may take of the nodes that are ready. A node that offers GPUs by a
// device plugin has no others by ResourceSlices: where both are there, they are the same. A
// resource that cannot be read of some node is in no sum, and the error names it.
func (p *pass) sumCapacity(nodes []*kube.Node, offers []*kube.Slice) ([]sdk.Amount, error) {
	total := map[string]int64{"MilliCores": 0, "Memory": 0}
	byDevices := map[string]map[string]string{} // labels by node
	var problem error
	unread := map[string]bool{}
	for _, node := range nodes {
		if !node.Ready() {
			continue
		}
		has, err := run.ParseAmounts(node.Status.Allocatable)
		if err != nil {
			problem = errors.Join(problem, fmt.Errorf("node %s: %w", node.Metadata.Name, err))
		}
		for name := range node.Status.Allocatable {
			if _, ok := has[name]; !ok {
				unread[name] = true
			}
		}
		plugged := false
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
				plugged = plugged || amount > 0
				total["GPUs"] += amount
				if model := run.Model(node.Metadata.Labels, p.config.rules.Model); model != "" {
					total["GPUs:"+model] += amount
				}
			}
		}
		if n, err := p.config.rules.MilliGPUs(has, node.Metadata.Labels); err == nil && n > 0 { // else runs there have none
			total["MilliGPUs"] += n
			plugged = true
		}
		if !plugged {
			byDevices[node.Metadata.Name] = node.Metadata.Labels
		}
	}
	p.addOffered(total, offers, byDevices)
	for name := range unread {
		p.leaveOut(total, name)
	}
	return facts.Amounts(total), problem
}

// leaveOut leaves the components that a resource is in out of the sums.
func (p *pass) leaveOut(total map[string]int64, resource string) {
	component := map[string]string{"cpu": "MilliCores", "memory": "Memory", "ephemeral-storage": "Disk"}[resource]
	delete(total, cmp.Or(component, resource))
	if p.config.rules.GPU(resource) {
		maps.DeleteFunc(total, func(name string, _ int64) bool {
			return name == "GPUs" || name == "MilliGPUs" || strings.HasPrefix(name, "GPUs:")
		})
	}
}

// addOffered adds the GPUs that ResourceSlices offer on some nodes.
func (p *pass) addOffered(total map[string]int64, offers []*kube.Slice, nodes map[string]map[string]string) {
	offered := p.config.rules.Offered(offers, func(node string) (map[string]string, bool) {
		labels, ok := nodes[node]
		return labels, ok
	})
	for model, n := range offered.Cards {
		total["GPUs"] += n
		if model != "" {
			total["GPUs:"+model] += n
		}
	}
	if n := offered.MilliGPUs(); n > 0 {
		total["MilliGPUs"] += n
	}
}
