package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/proto/record"
)

// clusterBlock is what is read of a block cluster.
type clusterBlock struct {
	order        int
	match        map[string][]string
	sources      []string
	zone, factor string
}

func readCluster(s *Shared, b *clusterconfig.Block) error {
	inner := b.Blocks
	outer := *b
	outer.Blocks = nil
	if err := only(&outer, 1, "order", "match", "sources", "zone", "su_factor"); err != nil {
		return err
	}
	var in clusterBlock
	err := errors.Join(readValue(b, "order", &in.order), readValue(b, "match", &in.match), readValue(b, "sources", &in.sources),
		readValue(b, "zone", &in.zone), readValue(b, "su_factor", &in.factor))
	if err != nil {
		return err
	}
	c := accounting.Cluster{Name: b.Labels[0], Sources: in.sources}
	if c.Factor, err = factor(in.factor); err != nil {
		return fmt.Errorf("su_factor: %w", err)
	}
	if c.Match, err = in.matches(c.Name); err != nil {
		return err
	}
	for _, source := range c.Sources {
		if err := checkSource(source); err != nil {
			return err
		}
	}
	zone, err := calendar.Zone(cmp.Or(in.zone, "UTC"))
	if err != nil {
		return err
	}
	for i := range inner {
		part, err := readCapacity(&inner[i], zone)
		if err != nil {
			return fmt.Errorf("%s: %w", inner[i].Name(), err)
		}
		c.Parts = append(c.Parts, part)
	}
	at := 0
	for at < len(s.clusterOrder) && s.clusterOrder[at] <= in.order {
		at++
	}
	s.clusterOrder = slices.Insert(s.clusterOrder, at, in.order)
	s.Capacity.Clusters = slices.Insert(s.Capacity.Clusters, at, c)
	return nil
}

func (in *clusterBlock) matches(name string) (list []accounting.NodeMatch, err error) {
	if in.match == nil {
		return []accounting.NodeMatch{{Key: "site_id", Values: []string{name}}}, nil
	}
	for _, key := range sortedKeys(in.match) {
		wrong := record.ValidateName(key)
		if key == "" || wrong != "" || len(in.match[key]) == 0 {
			return nil, fmt.Errorf("match: invalid meta key %q or its values: %s", key, wrong)
		}
		list = append(list, accounting.NodeMatch{Key: key, Values: in.match[key]})
	}
	return list, nil
}

func readCapacity(b *clusterconfig.Block, zone *time.Location) (p accounting.ClusterPart, err error) {
	if b.Type != "capacity" {
		return p, fmt.Errorf("this program does not know %q here", b.Type)
	}
	if err := only(b, 0, "name", "from", "to", "components", "nodes", "su_factor"); err != nil {
		return p, err
	}
	var from, to, text string
	nodes := int64(1)
	err = errors.Join(readValue(b, "name", &p.Name), readValue(b, "from", &from), readValue(b, "to", &to),
		readValue(b, "components", &p.Components), readValue(b, "nodes", &nodes), readValue(b, "su_factor", &text))
	if err != nil {
		return p, err
	}
	if p.From, err = day(from, zone); err != nil {
		return p, fmt.Errorf("from: %w", err)
	}
	if p.To, err = day(to, zone); err != nil {
		return p, fmt.Errorf("to: %w", err)
	}
	if p.From.Present() && p.To.Present() && p.To <= p.From {
		return p, fmt.Errorf("it ends on %s, which is not after %s", to, from)
	}
	if p.Factor, err = factor(text); err != nil {
		return p, fmt.Errorf("su_factor: %w", err)
	}
	if nodes < 1 || nodes > maxNodes {
		return p, fmt.Errorf("%d is no number of nodes", nodes)
	}
	for name, amount := range p.Components {
		if err := checkComponent(name, amount); err != nil {
			return p, err
		}
		if amount > maxAmount/nodes {
			return p, fmt.Errorf("%d nodes with %d of %s each are more than can be counted", nodes, amount, name)
		}
		p.Components[name] = amount * nodes
	}
	return p, nil
}

func readClusterGroup(s *Shared, b *clusterconfig.Block) error {
	if err := only(b, 1, "clusters", "groups"); err != nil {
		return err
	}
	g := accounting.NodeGroup{Name: b.Labels[0]}
	if err := errors.Join(readValue(b, "clusters", &g.Clusters), readValue(b, "groups", &g.Groups)); err != nil {
		return err
	}
	s.Capacity.Groups = append(s.Capacity.Groups, g)
	return nil
}
