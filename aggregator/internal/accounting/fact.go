package accounting

import (
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// CapacityFact is what a source says that its cluster has from an instant on, until it says
// something else.
type CapacityFact struct {
	Source     record.Origin
	From       record.Time
	Components map[string]int64
}

// CapacityFacts reads what sources said about capacity. A component that is there twice
// counts twice; one below zero counts as zero.
func CapacityFacts(list []store.Fact) ([]CapacityFact, error) {
	var out []CapacityFact
	for i := range list {
		var f wire.Frame
		if err := wire.DecodeFrame(list[i].Data, &f); err != nil {
			return nil, fmt.Errorf("what %s says about capacity: %w", list[i].Source, err)
		}
		fact := CapacityFact{Source: list[i].Source, From: list[i].At, Components: map[string]int64{}}
		for _, c := range f.Capacity.Components {
			fact.Components[c.Name] = addSaturating(fact.Components[c.Name], max(c.Amount, 0))
		}
		out = append(out, fact)
	}
	return out, nil
}

// addSaturating adds amounts, and stops at the greatest there is.
func addSaturating(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<63 - 1
}

// Census is how many jobs a source had when it looked last.
type Census struct {
	Source           record.Origin
	At               record.Time
	Running, Pending int64
	Rows             []wire.CensusRow // by user and queue
}

// Censuses reads what sources said about their jobs, by source.
func Censuses(list []store.Fact) ([]Census, error) {
	var out []Census
	for i := range list {
		var f wire.Frame
		if err := wire.DecodeFrame(list[i].Data, &f); err != nil {
			return nil, fmt.Errorf("what %s says about its jobs: %w", list[i].Source, err)
		}
		c := Census{Source: list[i].Source, At: list[i].At, Rows: f.Census.Rows}
		for k := range c.Rows {
			r := &c.Rows[k]
			r.Running, r.Pending = max(r.Running, 0), max(r.Pending, 0)
			c.Running, c.Pending = addSaturating(c.Running, r.Running), addSaturating(c.Pending, r.Pending)
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Census) int { return a.Source.Compare(b.Source) })
	return out, nil
}
