package accounting

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// SourcePeople is what a source has told of people.
type SourcePeople struct {
	// Source and At say who told it, and when.
	Source record.Origin
	At     record.Time
	People []Person
}

// PeopleOf reads facts of the kind [store.FactDirectory]. Sources that told something
// newer come first, and others in the order of the facts, which is that of sources.
func PeopleOf(facts []store.Fact) ([]SourcePeople, error) {
	out := make([]SourcePeople, 0, len(facts))
	for i := range facts {
		f := &facts[i]
		var frame wire.Frame
		if err := wire.DecodeFrame(f.Data, &frame); err != nil {
			return nil, fmt.Errorf("what %s says of people: %w", f.Source, err)
		}
		t := SourcePeople{Source: f.Source, At: f.At}
		for _, r := range frame.Directory.Rows {
			t.People = append(t.People, Person{ID: r.User, Name: r.Name, Address: r.Address, Groups: []Groups{{From: record.None, Names: r.Groups}}})
		}
		out = append(out, t)
	}
	slices.SortStableFunc(out, func(a, b SourcePeople) int { return cmp.Compare(b.At, a.At) })
	return out, nil
}

// addSourcePeople takes what a source says of users of whom nothing else does.
func (d *Directory) addSourcePeople(t *SourcePeople) {
	for i := range t.People {
		p := &t.People[i]
		if p.ID == "" || len(p.ID) > longestName {
			continue
		}
		w := d.people[p.ID]
		if w == nil {
			w = &contact{}
			d.people[p.ID] = w
		}
		if w.name == "" {
			w.name = p.Name
		}
		if w.address == "" {
			w.address = p.Address
		}
		if d.groups[p.ID] != nil {
			continue
		}
		for _, g := range p.Groups {
			for _, name := range g.Names {
				if name != "" && len(name) <= longestName {
					d.groups[p.ID] = append(d.groups[p.ID], newSpan(g.From, record.None, name, t.Source.String()))
				}
			}
		}
	}
}
