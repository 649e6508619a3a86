package usage

import (
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
