package accounting

import (
	"maps"
	"math/big"
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// People are the ids of all who are known, sorted.
func (d *Directory) People() []string { return slices.Sorted(maps.Keys(d.people)) }

// Settings are what the directory was made of, with what is not written filled in.
func (d *Directory) Settings() DirectorySettings { return d.set }

// ProjectNow is a project at an instant.
type ProjectNow struct {
	ID string
	// PI is "" when it has none.
	PI            string
	Groups, Users []string
	Exempt        bool
	// Since is from when on it has been so, and Until when something changes; None
	// where nothing does.
	Since, Until record.Time
}

// Projects are the projects that have a principal investigator, a group or a user at
// an instant, sorted.
func (d *Directory) Projects(at record.Time) (list []ProjectNow) {
	of := map[string]*ProjectNow{}
	for _, id := range d.projects {
		p := &ProjectNow{ID: id, Exempt: d.Exempt(id, at), Since: record.None, Until: record.None}
		p.PI, _ = d.PI(id, at)
		p.narrowBounds(slices.Concat(d.investors[id], d.exempt[id]), at)
		of[id] = p
	}
	for _, c := range []struct {
		says timelines
		to   func(*ProjectNow) *[]string
	}{{d.byGroup, func(p *ProjectNow) *[]string { return &p.Groups }}, {d.byUser, func(p *ProjectNow) *[]string { return &p.Users }}} {
		for _, key := range slices.Sorted(maps.Keys(c.says)) {
			for _, s := range c.says[key] {
				p := of[s.value]
				p.narrowBounds([]dirSpan{s}, at)
				if s.holdsAt(at) {
					*c.to(p) = append(*c.to(p), key)
				}
			}
		}
	}
	for _, id := range d.projects {
		if p := of[id]; p.PI != "" || p.Groups != nil || p.Users != nil {
			list = append(list, *p)
		}
	}
	return list
}

// narrowBounds narrows the time in which nothing changes.
func (p *ProjectNow) narrowBounds(spans []dirSpan, at record.Time) {
	for _, cut := range timeline(spans).appendCuts(nil) {
		if cut <= at {
			p.Since = max(p.Since, cut) // None is before all
		} else if p.Until == record.None || cut < p.Until {
			p.Until = cut
		}
	}
}

// Claimed reports whether a project claims the group at an instant.
func (d *Directory) Claimed(group string, at record.Time) (string, bool) {
	return d.byGroup.valueAt(group, at)
}

// ContributionNow is what a contribution counts at an instant.
type ContributionNow struct {
	Contribution

	// Credit is to whom it is credited.
	Credit string
	Units  *big.Rat
}

// Contributions are those that are there at an instant, as they are configured.
func (d *Directory) Contributions(at record.Time) (list []ContributionNow) {
	for i := range d.set.Contributions {
		c := &d.set.Contributions[i]
		if s := newSpan(c.From, c.To, "", ""); s.holdsAt(at) {
			list = append(list, ContributionNow{*c, c.creditedTo(), c.Units()})
		}
	}
	return list
}

// ClassNow is a class of hosts at an instant.
type ClassNow struct {
	ID, Pattern string
	// Factor is nil when it is not known.
	Factor *Decimal
}

// ClassesAt are the classes of hosts, in the order in which they are tried.
func (d *Directory) ClassesAt(at record.Time) (list []ClassNow) {
	for i := range d.set.Classes {
		c := ClassNow{ID: d.set.Classes[i].ID, Pattern: d.set.Classes[i].Pattern}
		if f, ok := d.Factor(c.ID, at); ok {
			c.Factor = &f
		}
		list = append(list, c)
	}
	return list
}
