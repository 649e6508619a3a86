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

// checkName reports whether something can be a name.
func (b *builder) checkName(what, name, place string) bool {
	switch {
	case name == "":
		b.problems.addProblem(place, "the name of a %s is empty", what)
	case len(name) > longestName:
		b.problems.addProblem(place, "the name of a %s is longer than %d bytes: %q", what, longestName, clipText(name))
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		b.problems.addProblem(place, "the name of a %s has control characters: %q", what, clipText(name))
	default:
		return true
	}
	return false
}

func (b *builder) checkKeys() {
	for _, k := range []struct{ what, name string }{{"user_key", b.d.set.UserKey}, {"group_key", b.d.set.GroupKey}, {"host_key", b.d.set.HostKey}} {
		if wrong := record.ValidateName(k.name); wrong != "" {
			b.problems.addProblem("", "%s: %q: %s", k.what, clipText(k.name), wrong)
		}
	}
}

func (b *builder) addPerson(p *Person) {
	if !b.checkName("person", p.ID, p.Place) {
		return
	}
	b.setContact(p.ID, p.Name, p.Address, p.Place)
	for _, group := range p.Leads {
		if b.checkName("group", group, p.Place) {
			b.d.leads[p.ID] = append(b.d.leads[p.ID], group)
		}
	}
	for i := range p.Groups {
		g, to := &p.Groups[i], record.None
		if i+1 < len(p.Groups) {
			to = p.Groups[i+1].From
		}
		if i > 0 {
			b.checkOrder(g.From, p.Groups[i-1].From, g.Place)
		}
		for _, name := range g.Names {
			b.addMember(p.ID, name, newSpan(g.From, to, name, g.Place))
		}
	}
}

// checkOrder checks that what holds from a time on stands behind what holds before it.
func (b *builder) checkOrder(from, before record.Time, place string) {
	switch {
	case from == record.None:
		b.problems.addProblem(place, "it is not said from when on this holds")
	case before != record.None && from <= before:
		b.problems.addProblem(place, "this holds from %s on, and what stands before it from %s on: write them in the order of time", from, before)
	}
}

// setContact notes a name and an address.
func (b *builder) setContact(user, name, address, place string) {
	w := b.d.people[user]
	if w == nil {
		w = &contact{}
		b.d.people[user] = w
	}
	for _, say := range []struct {
		what, text string
		to         *string
	}{{"name", name, &w.name}, {"address", address, &w.address}} {
		switch {
		case say.text == "" || *say.to == say.text:
		case *say.to != "":
			b.problems.addProblem(place, "the %s of user %q is %q here, and %q at %s", say.what, clipText(user), clipText(say.text), clipText(*say.to), w.place)
		default:
			*say.to, w.place = say.text, place
		}
	}
}

func (b *builder) addMember(user, group string, s dirSpan) {
	if !b.checkName("group", group, s.place) || !b.checkSpan(&s) {
		return
	}
	if b.d.people[user] == nil {
		b.d.people[user] = &contact{}
	}
	b.d.groups[user] = append(b.d.groups[user], s)
}

// checkSpan refuses a span without time.
func (b *builder) checkSpan(s *dirSpan) bool {
	if s.from < s.to {
		return true
	}
	b.problems.addProblem(s.place, "it ends at %s and begins at %s: the end must be after the begin", s.to, s.from)
	return false
}

func (b *builder) addProject(p *Project) {
	if !b.checkName("project", p.ID, p.Place) {
		return
	}
	b.projects[p.ID] = true
	for i := range p.States {
		s, to := &p.States[i], p.To
		if i+1 < len(p.States) {
			to = p.States[i+1].From
		}
		if i > 0 {
			b.checkOrder(s.From, p.States[i-1].From, s.Place)
		}
		when := newSpan(s.From, to, p.ID, s.Place)
		if !b.checkSpan(&when) {
			continue
		}
		b.addState(p.ID, s, when)
	}
}

func (b *builder) addState(project string, s *ProjectState, when dirSpan) {
	for _, g := range s.Groups {
		if b.checkName("group", g, s.Place) {
			b.groups.addClaim(g, when)
		}
	}
	for _, u := range s.Users {
		if b.checkName("user", u, s.Place) {
			b.users.addClaim(u, when)
		}
	}
	if s.PI != "" && b.checkName("principal investigator", s.PI, s.Place) {
		b.investors.addClaim(project, dirSpan{when.from, when.to, s.PI, s.Place})
	}
	if s.Exempt != nil {
		b.exempt.addClaim(project, dirSpan{when.from, when.to, strconv.FormatBool(*s.Exempt), s.Place})
	}
}

func (b *builder) addClass(c *Class) {
	pattern, err := compilePattern(c.Pattern)
	switch {
	case !b.checkName("class of hosts", c.ID, c.Place):
		return
	case err != nil:
		b.problems.addProblem(c.Place, "host_class %q: %v", clipText(c.ID), err)
		return
	case slices.ContainsFunc(b.d.classes, func(o class) bool { return o.id == c.ID }):
		b.problems.addProblem(c.Place, "duplicate host_class %q", clipText(c.ID))
		return
	}
	for i := range c.Factors {
		if i > 0 {
			b.checkOrder(c.Factors[i].From, c.Factors[i-1].From, c.Factors[i].Place)
		}
	}
	b.d.classes = append(b.d.classes, class{id: c.ID, pattern: pattern, factors: c.Factors})
}

func (b *builder) checkUnits(u *UnitRates) {
	seen := map[string]bool{}
	for _, w := range slices.Concat(u.Rates, u.Seconds) {
		if wrong := record.ValidateName(w.Component); wrong != "" || w.Component == "" {
			b.problems.addProblem(w.Place, "%q is no name of a component: %s", clipText(w.Component), wrong)
		}
		if seen[w.Component] {
			b.problems.addProblem(w.Place, "the component %q has a worth twice", clipText(w.Component))
		}
		seen[w.Component] = true
		for _, f := range b.allFactors() {
			if _, fits := f.times(w.Worth); !fits {
				b.problems.addProblem(w.Place, "%s times the factor %s of a class of hosts is too much", w.Worth, f)
			}
		}
	}
}

// allFactors are the default factor and those of all classes of hosts.
func (b *builder) allFactors() (list []Decimal) {
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

func (b *builder) checkContribution(c *Contribution) {
	if !b.checkName("contribution", c.ID, c.Place) || !b.checkName("contributor", c.By, c.Place) {
		return
	}
	if c.Credit != "" {
		b.checkName("user to whom a contribution is credited", c.Credit, c.Place)
	}
	if c.Split > 100*One {
		b.problems.addProblem(c.Place, "the split is %s %%; want at most 100", c.Split)
	}
	when := newSpan(c.From, c.To, c.ID, c.Place)
	b.checkSpan(&when)
}

// resolveClaims makes what is claimed part of the directory.
func (b *builder) resolveClaims() {
	d := b.d
	d.byUser = b.users.toTimelines("user %q", "is claimed by project %q", &b.problems)
	d.byGroup = b.groups.toTimelines("group %q", "is claimed by project %q", &b.problems)
	d.investors = b.investors.toTimelines("project %q", "has the principal investigator %q", &b.problems)
	d.exempt = b.exempt.toTimelines("project %q", "has exempt = %s", &b.problems)
	for p := range b.projects {
		d.projects = append(d.projects, p)
	}
	slices.Sort(d.projects)
}
