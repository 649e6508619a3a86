package cluster

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/mig"
)

// Part returns how much of a card one of a resource is, gpu, shard or mps, of a model or of
// all, on the nodes of a list: those of that name, and where it is a list of several all
// nodes that have the resource. Shares are spread evenly over the cards of a node, as Slurm
// spreads them. What nodes are not known to have is a whole card of a gpu, and an error of a
// share; so is what differs among them.
func Part(nodes []Node, resource, model, list string) (*big.Rat, error) {
	several := strings.ContainsAny(list, "[,")
	var part *big.Rat
	for i := range nodes {
		n := &nodes[i]
		if !several && n.Name != list {
			continue
		}
		parts, err := n.cardParts(resource, model)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		for _, p := range parts {
			if part != nil && part.Cmp(p) != 0 {
				return nil, fmt.Errorf("one %s is %s of a card or %s, by the nodes of %s", resource, part.RatString(), p.RatString(), list)
			}
			part = p
		}
	}
	switch {
	case part != nil:
		return part, nil
	case resource == "gpu":
		return big.NewRat(1, 1), nil
	}
	return nil, fmt.Errorf("how many %s a card of %s has is not known: Slurm's nodes have none there now", resource, list)
}

// cardParts returns how much of a card one of a resource of the node may be.
func (n *Node) cardParts(resource, model string) (parts []*big.Rat, err error) {
	if resource == "gpu" {
		for _, name := range slices.Sorted(maps.Keys(n.GPUs)) {
			part, err := mig.Card(name)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		return parts, nil
	}
	shares := n.Shares[resource]
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		if shares[name] == 0 || model != "" && name != "" && name != model {
			continue
		}
		cards, err := n.Cards(func(gpu string) bool { return name == "" || name == gpu })
		if err == nil && cards.Sign() == 0 {
			err = errors.New("it has no GPUs of the model of its " + resource)
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, cards.Quo(cards, big.NewRat(shares[name], 1)))
	}
	return parts, nil
}

// Cards adds up how many cards the GPUs of some models are.
func (n *Node) Cards(of func(model string) bool) (*big.Rat, error) {
	sum := new(big.Rat)
	for _, name := range slices.Sorted(maps.Keys(n.GPUs)) {
		if !of(name) {
			continue
		}
		part, err := mig.Card(name)
		if err != nil {
			return nil, err
		}
		sum.Add(sum, part.Mul(part, big.NewRat(n.GPUs[name], 1)))
	}
	return sum, nil
}

// IsSplit reports whether jobs may have parts of the node's cards of a model.
func (n *Node) IsSplit(model string) bool {
	for _, shares := range n.Shares {
		if shares[""] > 0 || shares[model] > 0 {
			return true
		}
	}
	_, _, slice := mig.Profile(model)
	return slice
}
