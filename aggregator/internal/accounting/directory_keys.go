package accounting

import (
	"slices"
	"strconv"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/proto/record"
)

// The names of keys that follow from a directory.
const (
	ProjectKey = "project"
	PIKey      = "pi"
	ExemptKey  = "exempt"
	ClassKey   = "host_class"
	// Weight is the name of the weight.
	ServiceUnitMeasure = "su"
)

// Keys are the keys of records that follow from the user and the group: the project,
// its principal investigator, and whether it is exempt. There are none while nothing
// is said of projects, so that meta keys of these names stay what they are.
func (d *Directory) Keys() []usage.Key {
	if len(d.projects) == 0 {
		return nil
	}
	from := []string{d.set.UserKey, d.set.GroupKey}
	if from[0] == from[1] {
		from = from[:1]
	}
	project := func(values []string, lacks []bool, at record.Time) (string, bool) {
		group := ""
		if k := len(from) - 1; !lacks[k] {
			group = values[k]
		}
		user := ""
		if !lacks[0] {
			user = values[0]
		}
		return d.Project(user, group, at)
	}
	investor := func(values []string, lacks []bool, at record.Time) (string, bool) {
		p, _ := project(values, lacks, at)
		return d.PI(p, at)
	}
	exempt := func(values []string, lacks []bool, at record.Time) (string, bool) {
		p, ok := project(values, lacks, at)
		return strconv.FormatBool(d.Exempt(p, at)), ok
	}
	return []usage.Key{
		{Name: ProjectKey, From: from, Cuts: d.cutsProject, Of: project},
		{Name: PIKey, From: from, Cuts: d.cutsPI, Of: investor},
		{Name: ExemptKey, From: from, Cuts: d.cutsExempt, Of: exempt},
	}
}

// Classes is the class of a host, as a key of package usage; none when there are no
// classes.
func (d *Directory) Classes() []sums.Class {
	if len(d.classes) == 0 {
		return nil
	}
	c := sums.Class{Name: ClassKey, From: d.set.HostKey}
	for i := range d.classes {
		c.Rules = append(c.Rules, sums.Rule{Pattern: d.classes[i].pattern, Value: d.classes[i].id})
	}
	return []sums.Class{c}
}

// Units is what usage is worth in service units; false when nothing says how much
// that is.
func (d *Directory) Units() (usage.Weight, bool) {
	if len(d.classes) == 0 && d.set.Units.Default == nil {
		return usage.Weight{}, false
	}
	w := usage.Weight{Name: ServiceUnitMeasure, Unit: d.set.Units.Name}
	if len(d.classes) > 0 {
		w.From = []string{ClassKey}
	}
	worth := map[string]worthOf{}
	for _, r := range d.set.Units.Rates {
		w.Components = append(w.Components, r.Component)
		worth[r.Component] = worthOf{r.Worth, record.Rate}
	}
	for _, s := range d.set.Units.Seconds {
		w.Components, w.Seconds = append(w.Components, s.Component), append(w.Seconds, s.Component)
		worth[s.Component] = worthOf{s.Worth, record.Total}
	}
	slices.Sort(w.Components)
	var cuts []record.Time
	for i := range d.classes {
		for _, f := range d.classes[i].factors {
			if f.From != record.None {
				cuts = append(cuts, f.From)
			}
		}
	}
	w.Cuts = sortDistinct(cuts)
	w.Of = func(component string, kind record.Kind, values []string, _ []bool, at record.Time) (int64, bool) {
		is, ok := worth[component]
		if !ok || is.kind != kind {
			return 0, false
		}
		host := ""
		if len(values) > 0 {
			host = values[0]
		}
		factor, known := d.Factor(host, at)
		if !known {
			return 0, false
		}
		product, fits := factor.times(is.worth)
		return int64(product), fits
	}
	return w, true
}

// worthOf is what a component of a kind is worth.
type worthOf struct {
	worth Decimal
	kind  record.Kind
}
