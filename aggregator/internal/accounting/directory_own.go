package accounting

import (
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Owns reports whether a budget is that of a person at an instant: their own, or that of a
// project or a group that they lead.
func (d *Directory) Owns(person string, b *Budget, at record.Time) bool {
	return person != "" && slices.ContainsFunc(b.Scope, func(c PriceCondition) bool {
		switch c.Key {
		case d.set.UserKey, PIKey:
			return c.Value == person
		case d.set.GroupKey:
			return slices.Contains(d.leads[person], c.Value)
		case ProjectKey:
			pi, ok := d.PI(c.Value, at)
			return ok && pi == person
		}
		return false
	})
}

// Own says by what meta the records are known that a person may see at an instant: their
// own, those of the projects that they are the principal investigator of, and those of the
// groups that they lead. All tests of one of the lists must hold. What counts is who leads
// and which project claims what at this instant, also for records of before.
func (d *Directory) Own(person string, at record.Time) [][]store.MetaTest {
	if person == "" {
		return nil
	}
	own := [][]store.MetaTest{{{Key: d.set.UserKey, Any: []string{person}}}}
	led := map[string]bool{} // projects
	for _, project := range d.projects {
		if pi, ok := d.PI(project, at); ok && pi == person {
			led[project] = true
		}
	}
	var mine, others []string // users that a project claims
	for _, user := range slices.Sorted(maps.Keys(d.byUser)) {
		switch project, ok := d.byUser.valueAt(user, at); {
		case ok && led[project]:
			mine = append(mine, user)
		case ok:
			others = append(others, user)
		}
	}
	if len(mine) > 0 {
		own = append(own, []store.MetaTest{{Key: d.set.UserKey, Any: mine}})
	}
	var groups []string
	for _, group := range slices.Sorted(maps.Keys(d.byGroup)) {
		if project, ok := d.byGroup.valueAt(group, at); ok && led[project] {
			groups = append(groups, group)
		}
	}
	if len(groups) > 0 {
		tests := []store.MetaTest{{Key: d.set.GroupKey, Any: groups}}
		if len(others) > 0 { // of a user whom another project claims, the records are of that one
			tests = append(tests, store.MetaTest{Key: d.set.UserKey, Lacks: others})
		}
		own = append(own, tests)
	}
	if led := d.leads[person]; len(led) > 0 {
		own = append(own, []store.MetaTest{{Key: d.set.GroupKey, Any: led}})
	}
	return own
}
