package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/proto/record"
)

// directoryParts are the kinds of blocks of the directory.
func directoryParts() map[string]part {
	none := func(*Config) []clusterconfig.Block { return nil }
	return map[string]part{
		"directory": {func(c *Config) []clusterconfig.Block {
			blocks, _ := c.directoryWritten() // all of them
			return blocks
		}, readDirectory},
		"person": {none, readPerson}, "project": {none, readProject},
		"contribution": {none, readContribution}, "service_units": {none, readServiceUnits},
	}
}

// checkDirectory says what is wrong with the directory as a whole.
func (s *Shared) checkDirectory() accounting.DirectoryProblems {
	_, err := accounting.NewDirectory(s.Directory, nil)
	problems, _ := errors.AsType[accounting.DirectoryProblems](err)
	return problems
}

// values reads the values of a block. The first thing that is wrong is its err.
type values struct {
	*clusterconfig.Block
	err  error
	seen map[string]bool
}

func valuesOf(b *clusterconfig.Block) *values { return &values{Block: b, seen: map[string]bool{}} }

func (v *values) at(name string) string {
	if at := v.Places[name]; at != "" {
		return at
	}
	return v.At
}

func (v *values) wrong(at string, err error) {
	if v.err != nil || err == nil {
		return
	}
	if _, ok := errors.AsType[*placed](err); !ok {
		err = &placed{at, err}
	}
	v.err = err
}

// get decodes a value, and reports whether it is there.
func (v *values) get(name string, into any) bool {
	v.seen[name] = true
	raw, ok := v.Values[name]
	if !ok {
		return false
	}
	if err := json.Unmarshal(raw, into); err != nil {
		v.wrong(v.at(name), fmt.Errorf("%s: %w", name, err))
		return false
	}
	return true
}

func (v *values) text(name string) (s string) {
	v.get(name, &s)
	return s
}

func (v *values) time(name string) record.Time {
	t, err := accounting.ParseTime(v.text(name))
	if err != nil {
		v.wrong(v.at(name), fmt.Errorf("%s: %w", name, err))
	}
	return t
}

// decimal reads a number; without one it is or.
func (v *values) decimal(name string, or accounting.Decimal) accounting.Decimal {
	var text string
	if !v.get(name, &text) {
		return or
	}
	d, err := accounting.ParseDecimal(text)
	if err != nil {
		v.wrong(v.at(name), fmt.Errorf("%s: %w", name, err))
	}
	return d
}

// worths reads a map of components to numbers.
func (v *values) worths(name string) (list []accounting.UnitRate) {
	var worth map[string]string
	v.get(name, &worth)
	for _, component := range slices.Sorted(maps.Keys(worth)) {
		d, err := accounting.ParseDecimal(worth[component])
		if err != nil {
			v.wrong(v.at(name), fmt.Errorf("%s: %s: %w", name, component, err))
		}
		list = append(list, accounting.UnitRate{Component: component, Worth: d, Place: v.At})
	}
	return list
}

// since calls read with each block since.
func (v *values) since(read func(b *values, from record.Time)) {
	for i := range v.Blocks {
		b := valuesOf(&v.Blocks[i])
		if b.Type != "since" || len(b.Labels) != 1 || len(b.Blocks) > 0 {
			v.wrong(b.At, fmt.Errorf("this program does not know the block %s here", b.Name()))
			return
		}
		from, err := accounting.ParseTime(b.Labels[0])
		if err == nil && from == record.None {
			err = errors.New("the time of a block since is empty")
		}
		v.wrong(b.At, err)
		read(b, from)
		v.wrong(b.At, b.done(1))
	}
}

// done returns what is wrong, also with values that nobody has read.
func (v *values) done(labels int) error {
	if len(v.Labels) != labels {
		v.wrong(v.At, fmt.Errorf("want %d labels", labels))
	}
	for _, name := range slices.Sorted(maps.Keys(v.Values)) {
		if !v.seen[name] {
			v.wrong(v.at(name), fmt.Errorf("this program does not know %q here", name))
		}
	}
	return v.err
}

// label is the only one.
func (v *values) label() string {
	if len(v.Labels) == 0 {
		return ""
	}
	return v.Labels[0]
}

func readDirectory(s *Shared, b *clusterconfig.Block) error {
	v, d := valuesOf(b), &s.Directory
	d.UserKey, d.GroupKey, d.HostKey = v.text("user_key"), v.text("group_key"), v.text("host_key")
	for i := range b.Blocks {
		switch in := valuesOf(&b.Blocks[i]); in.Type {
		case "file":
			t := accounting.DirectoryTable{File: in.label()}
			in.get("columns", &t.Columns)
			in.get("rows", &t.Rows)
			v.wrong(in.At, in.done(1))
			d.Tables = append(d.Tables, t)
		case "host_class":
			d.Classes = append(d.Classes, in.class())
			v.wrong(in.At, in.done(1))
		default:
			v.wrong(in.At, fmt.Errorf("this program does not know the block %s here", in.Name()))
		}
	}
	return v.done(0)
}

func (v *values) class() accounting.Class {
	c := accounting.Class{ID: v.label(), Pattern: v.text("pattern"), Place: v.At}
	if f := v.decimal("su_factor", -1); f >= 0 {
		c.Factors = append(c.Factors, accounting.Factor{From: record.None, Factor: f, Place: v.At})
	}
	v.since(func(b *values, from record.Time) {
		c.Factors = append(c.Factors, accounting.Factor{From: from, Factor: b.decimal("su_factor", 0), Place: b.At})
	})
	return c
}

func readPerson(s *Shared, b *clusterconfig.Block) error {
	v := valuesOf(b)
	p := accounting.Person{ID: v.label(), Name: v.text("name"), Address: v.text("email"), Place: v.At}
	add := func(v *values, from record.Time) {
		g := accounting.Groups{From: from, Place: v.At}
		if v.get("groups", &g.Names) {
			p.Groups = append(p.Groups, g)
		}
	}
	add(v, record.None)
	v.since(add)
	s.Directory.People = append(s.Directory.People, p)
	return v.done(1)
}

func readProject(s *Shared, b *clusterconfig.Block) error {
	v := valuesOf(b)
	p := accounting.Project{ID: v.label(), From: v.time("from"), To: v.time("to"), Place: v.At}
	state := accounting.ProjectState{}
	add := func(v *values, from record.Time) {
		state.From, state.Place = from, v.At
		v.get("pi", &state.PI)
		state.Groups, state.Users = v.names("groups", state.Groups), v.names("users", state.Users)
		var exempt bool
		if v.get("exempt", &exempt) {
			state.Exempt = &exempt
		}
		p.States = append(p.States, state)
	}
	add(v, p.From)
	v.since(add)
	s.Directory.Projects = append(s.Directory.Projects, p)
	return v.done(1)
}

// names reads a list; without one it is or.
func (v *values) names(name string, or []string) []string {
	var list []string
	if !v.get(name, &list) {
		return or
	}
	return list
}

func readServiceUnits(s *Shared, b *clusterconfig.Block) error {
	v := valuesOf(b)
	u := accounting.UnitRates{Name: v.text("unit"), Rates: v.worths("components"), Seconds: v.worths("seconds"), Place: v.At}
	if f := v.decimal("default_factor", -1); f >= 0 {
		u.Default = &f
	}
	s.Directory.Units = u
	if len(b.Blocks) > 0 {
		v.wrong(b.At, errors.New("want no blocks here"))
	}
	return v.done(0)
}

func readContribution(s *Shared, b *clusterconfig.Block) error {
	v := valuesOf(b)
	s.Directory.Contributions = append(s.Directory.Contributions, accounting.Contribution{
		ID: v.label(), By: v.text("by"), Credit: v.text("credit"), Amount: v.decimal("amount", 0),
		Split: v.decimal("split", 100*accounting.One), Factor: v.decimal("su_factor", accounting.One),
		From: v.time("from"), To: v.time("to"), Place: v.At,
	})
	if len(b.Blocks) > 0 {
		v.wrong(b.At, errors.New("want no blocks here"))
	}
	return v.done(1)
}
