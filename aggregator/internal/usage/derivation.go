package usage

import (
	"context"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Key is a key that follows from meta keys.
type Key struct {
	// Name is how questions name it. It hides a meta key of that name.
	Name string
	// From are the meta keys that Of needs, each once.
	From []string
	// Cuts are the instants at which Of begins to say something else, ascending.
	Cuts []record.Time
	// Of returns the value for a record with these first values of From, at an
	// instant: it is the same from one of Cuts to the next. lacks says of each of From
	// whether the record has no value. False means that no one claims it: it has a
	// line of its own in answers. Of is called by many goroutines at once and keeps
	// nothing that it is given.
	Of func(values []string, lacks []bool, at record.Time) (value string, has bool)
}

// Weight is what usage is worth in some unit.
type Weight struct {
	// Name is that of the measure, and Unit what it is measured in.
	Name, Unit string
	// Components are the names of those that have a worth, each once.
	Components []string
	// Seconds are those of Components whose totals are counted in seconds, such as CPU
	// time: of them Of says what 3600 are worth, so that an hour stays exact.
	Seconds []string
	// From are the keys that Of needs, meta keys or those of a [Key], each once.
	From []string
	// Cuts are the instants at which Of changes, ascending.
	Cuts []record.Time
	// Of returns what an amount of one for an hour of a rate is worth, or one of a
	// total, in billionths of the unit. False means that there is no price for it: that
	// is counted apart and is never zero. Of is as [Key.Of].
	Of func(component string, kind record.Kind, values []string, lacks []bool, at record.Time) (billionths int64, has bool)
	// Energy makes it the part of energy or of CO2 that Part names, which rows say: what is
	// said above is then for what is expected of runs that go on, and nothing for what was used.
	Energy *sums.EnergyModel
	Part   EnergyPart
	// Priced has Of asked for energy and CO2 too: for totals of the names [PricedEnergy] and
	// [PricedCO2], in kWh and kg CO2e by this model, in place of components of those names.
	// It is nil where neither is among Components.
	Priced *sums.EnergyModel
}

// What a [Weight] may value beside components.
const (
	PricedEnergy = "energy"
	PricedCO2    = "co2"
)

// Filter chooses by the value of a key, of a meta key by the first one.
type Filter struct {
	Key string
	// Values are those of which one is wanted; "" stands for what no one claims.
	Values []string
}

// Query is a question whose By may name derived keys.
type Query struct {
	sums.Question

	// Weights are the names of those whose worth is asked for.
	Weights []string
	// Having are conditions, all of which hold.
	Having []Filter
	// Bases asks for the Bases of the answer.
	Bases bool
	// Known is the time of which records are known, as [Request.Known].
	Known Span
}

// Result is what a [Query] got. Its groups have the values of derived keys; a
// group that no one claims lacks the value.
type Result struct {
	*sums.Answer

	// Worths are in the order of the question's Weights.
	Worths []Value
	// Basis is nil where neither energy nor CO2 is asked for.
	Basis *EnergyBasis
	// Bases are those of each cell, without meters; nil where they or energy are not asked for.
	Bases []EnergyBasis
	// AllRecords and AllJobs are how many there are in all buckets together; nil where each
	// run is in one group, or where nothing is counted.
	AllRecords, AllJobs *Whole
}

// Whole is a number of runs of each group in all buckets together, and of all groups: a run
// whose group changes is in two groups and is one of All.
type Whole struct {
	Groups []uint64
	All    uint64
}

// Value is what was used in the unit of a weight.
type Value struct {
	Name, Unit string
	// Sum has a figure for each cell, as [sums.Component.Used] has. It is in 1 ÷ 3600
	// of 10^-15 of the unit, so that it is exact, see [Millionths].
	Sum []sums.Sum
	// Beside is nil, or says of each cell whose Sum is 0 whether that is not known.
	Beside []sums.Sum
	// Apart is nil, or the part of each Sum that is known whatever the rest is: a Sum of no more
	// counts as 0 for Beside.
	Apart []sums.Sum
	// Strict says that a sum of cells is not known where that of one is not.
	Strict bool
	// Lacking are the parts of components that have no price, in their units; none
	// where there is no such part.
	Lacking []sums.Unvalued
}

// AskFunc answers questions without derived keys.
type AskFunc func(context.Context, sums.Question) (*sums.Answer, error)

// Derivation has what derives: it is made once for a configuration and never changed.
type Derivation struct {
	Keys    []Key
	Weights []Weight
}

// KeyNames are the names of the keys.
func (d *Derivation) KeyNames() (list []string) {
	for i := range d.Keys {
		list = append(list, d.Keys[i].Name)
	}
	return list
}

// WeightNames are the names of the weights.
func (d *Derivation) WeightNames() (list []string) {
	for i := range d.Weights {
		list = append(list, d.Weights[i].Name)
	}
	return list
}
