package source

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/cluster"
)

// lookedAt is what the nodes were when they were asked for.
type lookedAt struct {
	nodes []cluster.Node
	err   error
	when  time.Time
}

// partOf returns how much of a card shares are by what the nodes have now; nil where the
// source is not to ask for them.
func (p *pass) partOf(ctx context.Context) job.Part {
	if _, wanted := p.config.facts[facts.Capacity]; !wanted {
		return nil
	}
	type answer struct {
		part *big.Rat
		err  error
	}
	known := map[[3]string]answer{}
	return func(resource, model, list string) (*big.Rat, error) {
		key := [3]string{resource, model, list}
		a, before := known[key]
		if !before {
			a.part, a.err = p.askPart(ctx, resource, model, list)
			known[key] = a
		}
		return a.part, a.err
	}
}

func (p *pass) askPart(ctx context.Context, resource, model, list string) (*big.Rat, error) {
	nodes, err := p.askNodes(ctx)
	if err != nil && resource != "gpu" {
		return nil, fmt.Errorf("how many %s a card has is not known: %w", resource, err)
	}
	return cluster.Part(nodes, resource, model, list)
}

// askNodes returns the nodes as they were within the interval of the capacity, for which they
// are asked once in a pass at most.
func (p *pass) askNodes(ctx context.Context) ([]cluster.Node, error) {
	last, every := &p.Source.looked, p.config.CapacityInterval
	if last.err != nil {
		every = min(every, facts.Retry)
	}
	age := p.began.Sub(last.when)
	if age == 0 || age > 0 && age < every {
		return last.nodes, last.err
	}
	nodes, err := p.slurm.Nodes(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	*last = lookedAt{nodes, err, p.began}
	return nodes, err
}
