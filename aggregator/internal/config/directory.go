package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Directory is the block directory { … }: which meta keys name users, groups and
// hosts, and files that say who belongs where.
type Directory struct {
	DirectoryKeys
	// Files are comma separated values, see [accounting.DirectoryTable].
	Files []hcl.Path `hcl:"files,optional"`
	Range hcl.Range  `hcl:",def_range"`

	tables []Table // what the files say
}

// DirectoryKeys are the meta keys that name users, groups and hosts.
type DirectoryKeys struct {
	UserKey  hcl.String `hcl:"user_key,optional"`
	GroupKey hcl.String `hcl:"group_key,optional"`
	HostKey  hcl.String `hcl:"host_key,optional"`
}

// DirectoryTables are the block directory { … } as it is committed, with what its files say.
type DirectoryTables struct {
	DirectoryKeys
	Tables []Table   `hcl:"file,block,repeat"`
	Range  hcl.Range `hcl:",def_range"`
}

// Table is a file of the directory, see [accounting.DirectoryTable].
type Table struct {
	File    hcl.String `hcl:"file,label"`
	Columns []string   `hcl:"columns"`
	Rows    rows       `hcl:"rows"`
	Range   hcl.Range  `hcl:",def_range"`

	table accounting.DirectoryTable // with the lines, when it was read from the file
	open  []int                     // rows of factors whose end is not in the file, in order
}

// Person is a block person "id" { … }.
type Person struct {
	ID     hcl.String   `hcl:"id,label"`
	Name   hcl.String   `hcl:"name,optional"`
	Email  hcl.String   `hcl:"email,optional"`
	Groups []hcl.String `hcl:"groups,optional"`
	// Leads are the groups whose records the person may see where access follows from the
	// directory.
	Leads []hcl.String  `hcl:"leads,optional"`
	Since []PersonSince `hcl:"since,block"`
	Range hcl.Range     `hcl:",def_range"`
}

// PersonSince is a block since "date" { … } of a person: the groups from then on.
type PersonSince struct {
	From   hcl.String   `hcl:"from,label"`
	Groups []hcl.String `hcl:"groups"`
	Range  hcl.Range    `hcl:",def_range"`
}

// Project is a block project "id" { … }.
type Project struct {
	ID   hcl.String `hcl:"id,label"`
	From hcl.String `hcl:"from,optional"`
	To   hcl.String `hcl:"to,optional"`

	ProjectState
	Since []ProjectSince `hcl:"since,block"`
	Range hcl.Range      `hcl:",def_range"`
}

// ProjectSince is a block since "date" { … } of a project: what is written there
// holds from then on, and what is not stays as it was.
type ProjectSince struct {
	From hcl.String `hcl:"from,label"`
	ProjectState
	Range hcl.Range `hcl:",def_range"`
}

// ProjectState is what may change of a project; nil is not written.
type ProjectState struct {
	PI     *hcl.String  `hcl:"pi"`
	Groups []hcl.String `hcl:"groups,optional"`
	Users  []hcl.String `hcl:"users,optional"`
	Exempt *bool        `hcl:"exempt"`
}

// HostClass is a block host_class "id" { … }. A host is in the first one whose
// pattern matches.
type HostClass struct {
	ID      hcl.String   `hcl:"id,label"`
	Pattern hcl.String   `hcl:"pattern"`
	Factor  hcl.String   `hcl:"su_factor,optional"`
	Since   []ClassSince `hcl:"since,block"`
	Range   hcl.Range    `hcl:",def_range"`
}

// ClassSince is a block since "date" { … } of a host_class: the factor from then on.
type ClassSince struct {
	From   hcl.String `hcl:"from,label"`
	Factor hcl.String `hcl:"su_factor"`
	Range  hcl.Range  `hcl:",def_range"`
}

// ServiceUnits is the block service_units { … }: what usage is worth.
type ServiceUnits struct {
	Unit hcl.String `hcl:"unit,optional"`
	// Components are what one of a rate is worth for an hour.
	Components map[string]hcl.String `hcl:"components,optional"`
	// Seconds are totals counted in seconds, and what 3600 of them are worth.
	Seconds map[string]hcl.String `hcl:"seconds,optional"`
	Default hcl.String            `hcl:"default_factor,optional"`
	Range   hcl.Range             `hcl:",def_range"`
}

// Contribution is a block contribution "id" { … }.
type Contribution struct {
	ID     hcl.String `hcl:"id,label"`
	By     hcl.String `hcl:"by"`
	Credit hcl.String `hcl:"credit,optional"`
	Amount hcl.String `hcl:"amount"`
	Split  hcl.String `hcl:"split,optional"`
	Factor hcl.String `hcl:"su_factor,optional"`
	From   hcl.String `hcl:"from,optional"`
	To     hcl.String `hcl:"to,optional"`
	Range  hcl.Range  `hcl:",def_range"`
}

// loadFiles reads the files. Where a configuration is only looked at, files that are not
// there are a warning.
func (d *Directory) loadFiles(offline bool) (diags hcl.Diagnostics) {
	for _, path := range d.Files {
		text, err := os.ReadFile(path.Path)
		switch {
		case offline && errors.Is(err, fs.ErrNotExist):
			diags.Add(hcl.Warnf(path.Range, "file is not here", "%v; what it says is not checked", hcl.FileError(err)))
			continue
		case err != nil:
			diags.Add(hcl.Errorf(path.Range, "file cannot be read", "%v", hcl.FileError(err)))
			continue
		}
		t, err := accounting.ReadDirectoryTable(path.Path, text)
		if problems, ok := errors.AsType[accounting.DirectoryProblems](err); ok {
			for _, p := range problems {
				diags.Add(hcl.Errorf(rangeOf(p.Place, path.Range), "wrong row", "%s", p.Text))
			}
			continue
		}
		d.tables = append(d.tables, Table{
			File: hcl.String{Value: filepath.Base(t.File), Range: path.Range}, Columns: t.Columns, Rows: t.Rows, Range: d.Range, table: t,
		})
	}
	return diags
}

// rangeOf reads a place such as people.csv:3:7; or else is where the file is named.
func rangeOf(place string, or hcl.Range) hcl.Range {
	words := strings.Split(place, ":")
	numbers := []int{}
	for len(words) > 1 && len(numbers) < 2 {
		n, err := strconv.Atoi(words[len(words)-1])
		if err != nil {
			break
		}
		numbers, words = append([]int{n}, numbers...), words[:len(words)-1]
	}
	if len(numbers) == 0 {
		return or
	}
	r := hcl.Range{Filename: strings.Join(words, ":")}
	r.Start.Line, r.Start.Column = numbers[0], 1
	if len(numbers) > 1 {
		r.Start.Column = numbers[1]
	}
	r.End = r.Start
	return r
}

func (r *reader) readTime(name string, v hcl.String) record.Time {
	t, err := accounting.ParseTime(v.Value, r.site)
	r.addProblem(name, v, err)
	return t
}

// readSince reads the label of a block since.
func (r *reader) readSince(v hcl.String) record.Time {
	t, err := accounting.ParseTime(v.Value, r.site)
	if err == nil && t == record.None {
		err = errors.New("it is empty")
	}
	r.addProblem("since", v, err)
	return t
}

// readDecimal reads a number; without one it is or.
func (r *reader) readDecimal(name string, v hcl.String, or accounting.Decimal) accounting.Decimal {
	if v.Range == (hcl.Range{}) {
		return or
	}
	d, err := accounting.ParseDecimal(v.Value)
	r.addProblem(name, v, err)
	return d
}

// readUnitRates reads a map of components to numbers.
func (r *reader) readUnitRates(name string, worth map[string]hcl.String, at hcl.Range) (list []accounting.UnitRate) {
	for _, component := range slices.Sorted(maps.Keys(worth)) {
		d, err := accounting.ParseDecimal(worth[component].Value)
		if err != nil {
			r.addProblem(name, worth[component], fmt.Errorf("%s: %w", component, err))
		}
		list = append(list, accounting.UnitRate{Component: component, Worth: d, Place: r.addPlace(at)})
	}
	return list
}

// readDirectory reads to whom usage belongs.
func (s *Settings) readDirectory(to *Shared) hcl.Diagnostics {
	r := &reader{places: map[string]hcl.Range{}, site: s.siteZone()}
	d := &to.Directory
	d.UserKey, d.GroupKey, d.HostKey = s.Directory.UserKey.Value, s.Directory.GroupKey.Value, s.Directory.HostKey.Value
	for i := range s.Directory.Tables {
		t := &s.Directory.Tables[i]
		if t.table.File == "" {
			t.table = accounting.DirectoryTable{File: t.File.Value, Columns: t.Columns, Rows: t.Rows}
		}
		table := t.table
		table.Zone = r.site.String()
		d.Tables = append(d.Tables, table)
	}
	for i := range s.HostClasses {
		d.Classes = append(d.Classes, r.readClass(&s.HostClasses[i]))
	}
	for i := range s.People {
		d.People = append(d.People, r.readPerson(&s.People[i]))
	}
	for i := range s.Projects {
		d.Projects = append(d.Projects, r.readProject(&s.Projects[i]))
	}
	for i := range s.Contributions {
		d.Contributions = append(d.Contributions, r.readContribution(&s.Contributions[i]))
	}
	if s.ServiceUnits != nil {
		d.Units = r.readUnits(s.ServiceUnits)
	}
	unnamed := func(c Contribution) bool { return c.By.Range == (hcl.Range{}) } // which has been said
	if r.diags.HasErrors() || slices.ContainsFunc(s.Contributions, unnamed) {
		return r.diags
	}
	_, err := accounting.NewDirectory(*d, nil)
	problems, _ := errors.AsType[accounting.DirectoryProblems](err)
	for _, p := range problems {
		at, ok := r.places[p.Place]
		if !ok {
			at = rangeOf(p.Place, s.Directory.Range)
		}
		r.diags.Add(hcl.Errorf(at, "wrong directory", "%s", p.Text))
	}
	return r.diags
}

func (r *reader) readClass(h *HostClass) accounting.Class {
	c := accounting.Class{ID: h.ID.Value, Pattern: h.Pattern.Value, Place: r.addPlace(h.Range)}
	if h.Factor.Range != (hcl.Range{}) {
		c.Factors = append(c.Factors, accounting.Factor{From: record.None, Factor: r.readDecimal("su_factor", h.Factor, 0), Place: c.Place})
	}
	for i := range h.Since {
		s := &h.Since[i]
		c.Factors = append(c.Factors, accounting.Factor{From: r.readSince(s.From), Factor: r.readDecimal("su_factor", s.Factor, 0), Place: r.addPlace(s.Range)})
	}
	return c
}

func (r *reader) readPerson(in *Person) accounting.Person {
	p := accounting.Person{ID: in.ID.Value, Name: in.Name.Value, Address: in.Email.Value, Leads: textsOf(in.Leads), Place: r.addPlace(in.Range)}
	if in.Groups != nil {
		p.Groups = append(p.Groups, accounting.Groups{From: record.None, Names: textsOf(in.Groups), Place: p.Place})
	}
	for i := range in.Since {
		s := &in.Since[i]
		p.Groups = append(p.Groups, accounting.Groups{From: r.readSince(s.From), Names: textsOf(s.Groups), Place: r.addPlace(s.Range)})
	}
	return p
}

func (r *reader) readProject(in *Project) accounting.Project {
	p := accounting.Project{ID: in.ID.Value, From: r.readTime("from", in.From), To: r.readTime("to", in.To), Place: r.addPlace(in.Range)}
	state := accounting.ProjectState{From: p.From, Place: p.Place}
	in.applyTo(&state)
	p.States = append(p.States, state)
	for i := range in.Since {
		s := &in.Since[i]
		state.From, state.Place = r.readSince(s.From), r.addPlace(s.Range)
		s.applyTo(&state)
		p.States = append(p.States, state)
	}
	return p
}

// applyTo changes what is written; all else stays as it was.
func (p *ProjectState) applyTo(to *accounting.ProjectState) {
	if p.PI != nil {
		to.PI = p.PI.Value
	}
	if p.Groups != nil {
		to.Groups = textsOf(p.Groups)
	}
	if p.Users != nil {
		to.Users = textsOf(p.Users)
	}
	if p.Exempt != nil {
		to.Exempt = p.Exempt
	}
}

func (r *reader) readUnits(in *ServiceUnits) accounting.UnitRates {
	u := accounting.UnitRates{
		Name: in.Unit.Value, Rates: r.readUnitRates("components", in.Components, in.Range), Seconds: r.readUnitRates("seconds", in.Seconds, in.Range),
		Place: r.addPlace(in.Range),
	}
	if in.Default.Range != (hcl.Range{}) {
		f := r.readDecimal("default_factor", in.Default, 0)
		u.Default = &f
	}
	return u
}

func (r *reader) readContribution(c *Contribution) accounting.Contribution {
	return accounting.Contribution{
		ID: c.ID.Value, By: c.By.Value, Credit: c.Credit.Value, Amount: r.readDecimal("amount", c.Amount, 0),
		Split: r.readDecimal("split", c.Split, 100*accounting.One), Factor: r.readDecimal("su_factor", c.Factor, accounting.One),
		From: r.readTime("from", c.From), To: r.readTime("to", c.To), Place: r.addPlace(c.Range),
	}
}
