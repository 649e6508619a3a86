package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/hcl"
)

// Directory is the block directory { … }: which meta keys name users, groups and
// hosts, and files that say who belongs where.
type Directory struct {
	UserKey  hcl.String `hcl:"user_key,optional"`
	GroupKey hcl.String `hcl:"group_key,optional"`
	HostKey  hcl.String `hcl:"host_key,optional"`
	// Files are comma separated values, see [accounting.DirectoryTable].
	Files []hcl.Path `hcl:"files,optional"`
	Range hcl.Range  `hcl:",def_range"`

	tables []accounting.DirectoryTable // what the files say
}

// Person is a block person "id" { … }.
type Person struct {
	ID     hcl.String    `hcl:"id,label"`
	Name   hcl.String    `hcl:"name,optional"`
	Email  hcl.String    `hcl:"email,optional"`
	Groups []hcl.String  `hcl:"groups,optional"`
	Since  []PersonSince `hcl:"since,block"`
	Range  hcl.Range     `hcl:",def_range"`
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

	PI       hcl.String     `hcl:"pi,optional"`
	Groups   []hcl.String   `hcl:"groups,optional"`
	GroupsAt hcl.Range      `hcl:"groups,attr_range"`
	Users    []hcl.String   `hcl:"users,optional"`
	UsersAt  hcl.Range      `hcl:"users,attr_range"`
	Exempt   *bool          `hcl:"exempt"`
	Since    []ProjectSince `hcl:"since,block"`
	Range    hcl.Range      `hcl:",def_range"`
}

// ProjectSince is a block since "date" { … } of a project: what is written there
// holds from then on, and what is not stays as it was.
type ProjectSince struct {
	From     hcl.String   `hcl:"from,label"`
	PI       hcl.String   `hcl:"pi,optional"`
	Groups   []hcl.String `hcl:"groups,optional"`
	GroupsAt hcl.Range    `hcl:"groups,attr_range"`
	Users    []hcl.String `hcl:"users,optional"`
	UsersAt  hcl.Range    `hcl:"users,attr_range"`
	Exempt   *bool        `hcl:"exempt"`
	Range    hcl.Range    `hcl:",def_range"`
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

// load reads the files. Where a configuration is only looked at, files that are not
// there are a warning.
func (d *Directory) load(offline bool) (diags hcl.Diagnostics) {
	for _, path := range d.Files {
		text, err := os.ReadFile(path.Path)
		switch {
		case offline && errors.Is(err, fs.ErrNotExist):
			diags.Add(hcl.Warnf(path.Range, "file is not here", "%v; what it says is not checked", err))
			continue
		case err != nil:
			diags.Add(hcl.Errorf(path.Range, "file cannot be read", "%v", err))
			continue
		}
		t, err := accounting.ReadDirectoryTable(path.Path, text)
		if problems, ok := errors.AsType[accounting.DirectoryProblems](err); ok {
			for _, p := range problems {
				diags.Add(hcl.Errorf(rangeOf(p.Place, path.Range), "wrong row", "%s", p.Text))
			}
			continue
		}
		d.tables = append(d.tables, t)
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

// writer makes blocks of the shared configuration, and remembers where they stand.
type writer struct {
	clusterconfig.Block
	places map[string]hcl.Range
}

func (w *writer) block(typ string, at hcl.Range, labels ...string) *writer {
	w.places[place(at)] = at
	return &writer{clusterconfig.Block{Type: typ, Labels: labels, At: place(at)}, w.places}
}

func (w *writer) text(name string, s hcl.String) {
	if s.Range != (hcl.Range{}) {
		w.places[place(s.Range)] = s.Range
		w.Set(name, s.Value, place(s.Range))
	}
}

func (w *writer) texts(name string, list []hcl.String, at hcl.Range) {
	if list == nil && at == (hcl.Range{}) {
		return
	}
	values := make([]string, len(list))
	for i := range list {
		values[i] = list[i].Value
	}
	w.Set(name, values, w.At)
}

func (w *writer) flag(name string, yes *bool) {
	if yes != nil {
		w.Set(name, *yes, w.At)
	}
}

func (w *writer) add(b *writer) { w.Blocks = append(w.Blocks, b.Block) }

// directoryWritten returns the blocks of the directory with where they stand.
func (c *Config) directoryWritten() (list []clusterconfig.Block, places map[string]hcl.Range) {
	top := &writer{places: map[string]hcl.Range{}}
	d := top.block("directory", c.Directory.Range)
	d.text("user_key", c.Directory.UserKey)
	d.text("group_key", c.Directory.GroupKey)
	d.text("host_key", c.Directory.HostKey)
	for i := range c.Directory.tables {
		t := &c.Directory.tables[i]
		f := d.block("file", c.Directory.Range, filepath.Base(t.File))
		f.Set("columns", t.Columns, f.At)
		f.Set("rows", t.Rows, f.At)
		d.add(f)
	}
	for i := range c.HostClasses {
		d.add(c.HostClasses[i].written(d))
	}
	if len(d.Values)+len(d.Blocks) > 0 {
		top.add(d)
	}
	if c.ServiceUnits != nil {
		top.add(c.ServiceUnits.written(top))
	}
	for i := range c.People {
		top.add(c.People[i].written(top))
	}
	for i := range c.Projects {
		top.add(c.Projects[i].written(top))
	}
	for i := range c.Contributions {
		top.add(c.Contributions[i].written(top))
	}
	return top.Blocks, top.places
}

func (p *Person) written(in *writer) *writer {
	w := in.block("person", p.Range, p.ID.Value)
	w.text("name", p.Name)
	w.text("email", p.Email)
	w.texts("groups", p.Groups, hcl.Range{})
	for i := range p.Since {
		s := w.block("since", p.Since[i].Range, p.Since[i].From.Value)
		s.texts("groups", p.Since[i].Groups, p.Since[i].Range)
		w.add(s)
	}
	return w
}

func (p *Project) written(in *writer) *writer {
	w := in.block("project", p.Range, p.ID.Value)
	w.text("from", p.From)
	w.text("to", p.To)
	w.text("pi", p.PI)
	w.texts("groups", p.Groups, p.GroupsAt)
	w.texts("users", p.Users, p.UsersAt)
	w.flag("exempt", p.Exempt)
	for i := range p.Since {
		c := &p.Since[i]
		s := w.block("since", c.Range, c.From.Value)
		s.text("pi", c.PI)
		s.texts("groups", c.Groups, c.GroupsAt)
		s.texts("users", c.Users, c.UsersAt)
		s.flag("exempt", c.Exempt)
		w.add(s)
	}
	return w
}

func (h *HostClass) written(in *writer) *writer {
	w := in.block("host_class", h.Range, h.ID.Value)
	w.text("pattern", h.Pattern)
	w.text("su_factor", h.Factor)
	for i := range h.Since {
		s := w.block("since", h.Since[i].Range, h.Since[i].From.Value)
		s.text("su_factor", h.Since[i].Factor)
		w.add(s)
	}
	return w
}

func (u *ServiceUnits) written(in *writer) *writer {
	w := in.block("service_units", u.Range)
	w.text("unit", u.Unit)
	w.text("default_factor", u.Default)
	for name, worth := range map[string]map[string]hcl.String{"components": u.Components, "seconds": u.Seconds} {
		if worth == nil {
			continue
		}
		values := map[string]string{}
		for component, v := range worth {
			values[component] = v.Value
		}
		w.Set(name, values, w.At)
	}
	return w
}

func (c *Contribution) written(in *writer) *writer {
	w := in.block("contribution", c.Range, c.ID.Value)
	for _, v := range []struct {
		name string
		text hcl.String
	}{{"by", c.By}, {"credit", c.Credit}, {"amount", c.Amount}, {"split", c.Split}, {"su_factor", c.Factor}, {"from", c.From}, {"to", c.To}} {
		w.text(v.name, v.text)
	}
	return w
}

// validateDirectory reports what cannot be so, with where it is written.
func (c *Config) validateDirectory() (diags hcl.Diagnostics) {
	blocks, places := c.directoryWritten()
	where := func(place string) hcl.Range {
		if r, ok := places[place]; ok {
			return r
		}
		return rangeOf(place, c.Directory.Range)
	}
	s := &Shared{}
	known := parts()
	for i := range blocks {
		if err := known[blocks[i].Type].read(s, &blocks[i]); err != nil {
			at := blocks[i].At
			if wrong, ok := errors.AsType[*placed](err); ok {
				at, err = wrong.at, wrong.err
			}
			diags.Add(hcl.Errorf(where(at), "invalid "+blocks[i].Name(), "%v", err))
		}
	}
	if diags.HasErrors() {
		return diags
	}
	for i := range s.Directory.Tables { // read from the files, they have lines
		s.Directory.Tables[i] = c.Directory.tables[i]
	}
	if problems := s.checkDirectory(); problems != nil {
		for _, p := range problems {
			diags.Add(hcl.Errorf(where(p.Place), "wrong directory", "%s", p.Text))
		}
	}
	if len(c.Directory.tables) > 0 {
		if err := c.Shared().Fits(); err != nil {
			diags.Add(hcl.Errorf(c.Directory.Range, "too much for a cluster", "%v", err))
		}
	}
	return diags
}

// placed is an error with where what is wrong is written.
type placed struct {
	at  string
	err error
}

// Error implements error.
func (p *placed) Error() string { return fmt.Sprintf("%s: %v", p.at, p.err) }

// Unwrap returns the error itself.
func (p *placed) Unwrap() error { return p.err }
