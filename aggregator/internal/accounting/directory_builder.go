package accounting

import (
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
)

// longestName bounds the names of users, groups and projects.
const longestName = 256

// builder puts a directory together.
type builder struct {
	d        *Directory
	problems DirectoryProblems

	users, groups, investors, exempt claims
	projects                         map[string]bool
}

// name reports whether something can be a name.
func (b *builder) name(what, name, place string) bool {
	switch {
	case name == "":
		b.problems.add(place, "the name of a %s is empty", what)
	case len(name) > longestName:
		b.problems.add(place, "the name of a %s is longer than %d bytes: %q", what, longestName, clip(name))
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		b.problems.add(place, "the name of a %s has control characters: %q", what, clip(name))
	default:
		return true
	}
	return false
}

func (b *builder) keys() {
	for _, k := range []struct{ what, name string }{{"user_key", b.d.set.UserKey}, {"group_key", b.d.set.GroupKey}, {"host_key", b.d.set.HostKey}} {
		if wrong := record.ValidateName(k.name); wrong != "" {
			b.problems.add("", "%s: %q: %s", k.what, clip(k.name), wrong)
		}
	}
}

func (b *builder) person(p *Person) {
	if !b.name("person", p.ID, p.Place) {
		return
	}
	b.called(p.ID, p.Name, p.Address, p.Place)
	for _, group := range p.Leads {
		if b.name("group", group, p.Place) {
			b.d.leads[p.ID] = append(b.d.leads[p.ID], group)
		}
	}
	for i := range p.Groups {
		g, to := &p.Groups[i], record.None
		if i+1 < len(p.Groups) {
			to = p.Groups[i+1].From
		}
		if i > 0 {
			b.after(g.From, p.Groups[i-1].From, g.Place)
		}
		for _, name := range g.Names {
			b.member(p.ID, name, newSpan(g.From, to, name, g.Place))
		}
	}
}

// after checks that what holds from a time on stands behind what holds before it.
func (b *builder) after(from, before record.Time, place string) {
	switch {
	case from == record.None:
		b.problems.add(place, "it is not said from when on this holds")
	case before != record.None && from <= before:
		b.problems.add(place, "this holds from %s on, and what stands before it from %s on: write them in the order of time", from, before)
	}
}

// called notes a name and an address.
func (b *builder) called(user, name, address, place string) {
	w := b.d.people[user]
	if w == nil {
		w = &who{}
		b.d.people[user] = w
	}
	for _, say := range []struct {
		what, text string
		to         *string
	}{{"name", name, &w.name}, {"address", address, &w.address}} {
		switch {
		case say.text == "" || *say.to == say.text:
		case *say.to != "":
			b.problems.add(place, "the %s of user %q is %q here, and %q at %s", say.what, clip(user), clip(say.text), clip(*say.to), w.place)
		default:
			*say.to, w.place = say.text, place
		}
	}
}

func (b *builder) member(user, group string, s dirSpan) {
	if !b.name("group", group, s.place) || !b.time(&s) {
		return
	}
	if b.d.people[user] == nil {
		b.d.people[user] = &who{}
	}
	b.d.groups[user] = append(b.d.groups[user], s)
}

// time refuses a span without time.
func (b *builder) time(s *dirSpan) bool {
	if s.from < s.to {
		return true
	}
	b.problems.add(s.place, "it ends at %s and begins at %s: the end must be after the begin", s.to, s.from)
	return false
}

func (b *builder) project(p *Project) {
	if !b.name("project", p.ID, p.Place) {
		return
	}
	b.projects[p.ID] = true
	for i := range p.States {
		s, to := &p.States[i], p.To
		if i+1 < len(p.States) {
			to = p.States[i+1].From
		}
		if i > 0 {
			b.after(s.From, p.States[i-1].From, s.Place)
		}
		when := newSpan(s.From, to, p.ID, s.Place)
		if !b.time(&when) {
			continue
		}
		b.state(p.ID, s, when)
	}
}

func (b *builder) state(project string, s *ProjectState, when dirSpan) {
	for _, g := range s.Groups {
		if b.name("group", g, s.Place) {
			b.groups.add(g, when)
		}
	}
	for _, u := range s.Users {
		if b.name("user", u, s.Place) {
			b.users.add(u, when)
		}
	}
	if s.PI != "" && b.name("principal investigator", s.PI, s.Place) {
		b.investors.add(project, dirSpan{when.from, when.to, s.PI, s.Place})
	}
	if s.Exempt != nil {
		b.exempt.add(project, dirSpan{when.from, when.to, strconv.FormatBool(*s.Exempt), s.Place})
	}
}

func (b *builder) class(c *Class) {
	pattern, err := compilePattern(c.Pattern)
	switch {
	case !b.name("class of hosts", c.ID, c.Place):
		return
	case err != nil:
		b.problems.add(c.Place, "host_class %q: %v", clip(c.ID), err)
		return
	case slices.ContainsFunc(b.d.classes, func(o class) bool { return o.id == c.ID }):
		b.problems.add(c.Place, "duplicate host_class %q", clip(c.ID))
		return
	}
	for i := range c.Factors {
		if i > 0 {
			b.after(c.Factors[i].From, c.Factors[i-1].From, c.Factors[i].Place)
		}
	}
	b.d.classes = append(b.d.classes, class{id: c.ID, pattern: pattern, factors: c.Factors})
}

func (b *builder) units(u *UnitRates) {
	seen := map[string]bool{}
	for _, w := range slices.Concat(u.Rates, u.Seconds) {
		if wrong := record.ValidateName(w.Component); wrong != "" || w.Component == "" {
			b.problems.add(w.Place, "%q is no name of a component: %s", clip(w.Component), wrong)
		}
		if seen[w.Component] {
			b.problems.add(w.Place, "the component %q has a worth twice", clip(w.Component))
		}
		seen[w.Component] = true
		for _, f := range b.factors() {
			if _, fits := f.times(w.Worth); !fits {
				b.problems.add(w.Place, "%s times the factor %s of a class of hosts is too much", w.Worth, f)
			}
		}
	}
}

// factors are all that there are.
func (b *builder) factors() (list []Decimal) {
	if b.d.set.Units.Default != nil {
		list = append(list, *b.d.set.Units.Default)
	}
	for i := range b.d.classes {
		for _, f := range b.d.classes[i].factors {
			list = append(list, f.Factor)
		}
	}
	return list
}

func (b *builder) contribution(c *Contribution) {
	if !b.name("contribution", c.ID, c.Place) || !b.name("contributor", c.By, c.Place) {
		return
	}
	if c.Credit != "" {
		b.name("user to whom a contribution is credited", c.Credit, c.Place)
	}
	if c.Split > 100*One {
		b.problems.add(c.Place, "the split is %s %%; want at most 100", c.Split)
	}
	when := newSpan(c.From, c.To, c.ID, c.Place)
	b.time(&when)
}

// settle makes what is claimed part of the directory.
func (b *builder) settle() {
	d := b.d
	d.byUser = b.users.settle("user %q", "is claimed by project %q", &b.problems)
	d.byGroup = b.groups.settle("group %q", "is claimed by project %q", &b.problems)
	d.investors = b.investors.settle("project %q", "has the principal investigator %q", &b.problems)
	d.exempt = b.exempt.settle("project %q", "has exempt = %s", &b.problems)
	for p := range b.projects {
		d.projects = append(d.projects, p)
	}
	slices.Sort(d.projects)
}
