package accounting

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Directory says to whom usage belongs. It is safe for concurrent use.
type Directory struct {
	set DirectorySettings

	people    map[string]*contact  // by user
	groups    map[string][]dirSpan // of users; the first that holds counts
	byUser    timelines            // projects
	byGroup   timelines
	investors timelines // principal investigators, by project
	exempt    timelines // "true" or "false", by project
	projects  []string  // sorted
	classes   []class
	leads     map[string][]string // groups, by person

	cutsProject, cutsPI, cutsExempt []record.Time
}

// contact is what is known of a person.
type contact struct {
	name, address string
	place         string // where the name or the address is said
}

// class is a Class that is ready for use.
type class struct {
	id      string
	pattern *regexp.Regexp
	factors []Factor
}

// NewDirectory makes a directory of what is configured and of what sources have told, which
// counts where the configuration says nothing of a user. The error is [DirectoryProblems].
func NewDirectory(set DirectorySettings, told []SourcePeople) (*Directory, error) {
	set.setDefaults()
	d := &Directory{set: set, people: map[string]*contact{}, groups: map[string][]dirSpan{}, leads: map[string][]string{}}
	b := &builder{d: d, users: claims{}, groups: claims{}, investors: claims{}, exempt: claims{}, projects: map[string]bool{}}
	b.checkKeys()
	for i := range set.People {
		b.addPerson(&set.People[i])
	}
	for i := range set.Projects {
		b.addProject(&set.Projects[i])
	}
	for i := range set.Tables {
		b.addTable(&set.Tables[i])
	}
	for i := range set.Classes {
		b.addClass(&set.Classes[i])
	}
	b.checkUnits(&set.Units)
	for i := range set.Contributions {
		b.checkContribution(&set.Contributions[i])
	}
	b.resolveClaims()
	if len(b.problems) > 0 {
		return nil, b.problems
	}
	for i := range told {
		d.addSourcePeople(&told[i])
	}
	d.collectCuts()
	return d, nil
}

// collectCuts finds the instants at which something changes.
func (d *Directory) collectCuts() {
	var list []record.Time
	for _, spans := range d.groups {
		list = timeline(spans).appendCuts(list)
	}
	list = d.byGroup.appendCuts(d.byUser.appendCuts(list))
	d.cutsProject = sortDistinct(slices.Clone(list))
	d.cutsPI = sortDistinct(d.investors.appendCuts(slices.Clone(list)))
	d.cutsExempt = sortDistinct(d.exempt.appendCuts(slices.Clone(list)))
}

// Group is the group that counts for a user who has none in a record.
func (d *Directory) Group(user string, at record.Time) (string, bool) {
	list := d.groups[user]
	for i := range list {
		if list[i].holdsAt(at) {
			return list[i].value, true
		}
	}
	return "", false
}

// Groups are all groups of a user.
func (d *Directory) Groups(user string, at record.Time) (names []string) {
	list := d.groups[user]
	for i := range list {
		if list[i].holdsAt(at) && !slices.Contains(names, list[i].value) {
			names = append(names, list[i].value)
		}
	}
	return names
}

// Project is the project that claims the user, else the one that claims the group. A
// group that is "" is the user's. The name in the place of an erased one says the project
// itself, where that followed from the user.
func (d *Directory) Project(user, group string, at record.Time) (string, bool) {
	if p, ok := erasedProject(user); ok {
		return p, true
	}
	if p, ok := d.byUser.valueAt(user, at); ok {
		return p, true
	}
	if group == "" {
		group, _ = d.Group(user, at)
	}
	return d.byGroup.valueAt(group, at)
}

// PI is the principal investigator of a project.
func (d *Directory) PI(project string, at record.Time) (string, bool) {
	return d.investors.valueAt(project, at)
}

// Exempt reports whether the usage of a project counts against no contribution.
func (d *Directory) Exempt(project string, at record.Time) bool {
	yes, _ := d.exempt.valueAt(project, at)
	return yes == "true"
}

// Name returns the name and the address of a person, "" for what no one has said.
func (d *Directory) Name(user string) (name, address string) {
	if w := d.people[user]; w != nil {
		return w.name, w.address
	}
	return "", ""
}

// Factor is what an hour on a host of a class is worth, "" for none. False means
// that it is not known.
func (d *Directory) Factor(class string, at record.Time) (Decimal, bool) {
	for i := range d.classes {
		if d.classes[i].id != class {
			continue
		}
		for _, f := range slices.Backward(d.classes[i].factors) {
			if f.From == record.None || f.From <= at {
				return f.Factor, true
			}
		}
	}
	if d.set.Units.Default == nil {
		return 0, false
	}
	return *d.set.Units.Default, true
}

// compilePattern reads a pattern of a class.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	const longest = 1000
	if pattern == "" {
		return nil, fmt.Errorf("the pattern is empty; want a regular expression such as ^node-[0-9]+")
	}
	if len(pattern) > longest {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", longest)
	}
	return hcl.CompilePattern(pattern)
}
