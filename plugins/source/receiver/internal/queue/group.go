package queue

import (
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/receiver/internal/seen"
	"github.com/bursar-accounting/bursar/proto/record"
)

// group is a number of pushes that are written together.
type group struct {
	entries []*entry
	results []Result // of the entries, once the group is written
	ids     []string // of the records in it
	out     sdk.Batch

	batch    uint64 // by which the ids are known
	numbered bool   // it has one
}

// formGroup puts a group together. What is known, or comes a second time in the group, is
// left out.
func formGroup(entries []*entry, ids *seen.IDs, ignoreKnown bool) (*group, error) {
	var all []string
	for _, e := range entries {
		for i := range e.push.Records {
			all = append(all, e.push.Records[i].ID)
		}
	}
	there, err := ids.Known(all)
	if err != nil {
		return nil, err
	}
	g := &group{entries: entries}
	for _, e := range entries {
		g.results = append(g.results, g.addPush(&e.push, there, ignoreKnown))
	}
	return g, nil
}

// addPush adds a push; there are the ids that are known, to which it adds its own.
func (g *group) addPush(p *Push, there map[string]bool, ignoreKnown bool) Result {
	if p.Stop != nil {
		g.out.Stops = append(g.out.Stops, *p.Stop)
	}
	if p.Refused != nil {
		g.out.Refused = append(g.out.Refused, *p.Refused)
	}
	fresh := newRecords(p.Records, there)
	result := Taken
	if len(fresh) < len(p.Records) {
		if !ignoreKnown {
			return Exists
		}
		result = Some
	}
	for _, r := range fresh {
		there[r.ID] = true
		g.ids = append(g.ids, r.ID)
	}
	g.out.Records = append(g.out.Records, fresh...)
	return result
}

// newRecords returns the records whose ids are not there, each id once.
func newRecords(records []record.Record, there map[string]bool) []record.Record {
	var fresh []record.Record
	mine := map[string]bool{}
	for i := range records {
		id := records[i].ID
		if !there[id] && !mine[id] {
			mine[id] = true
			fresh = append(fresh, records[i])
		}
	}
	return fresh
}

func (g *group) isEmpty() bool {
	return len(g.out.Records)+len(g.out.Stops)+len(g.out.Refused) == 0
}
