package mapping

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

// star stands in the name of a component for the key of an entry.
const star = "*"

// maxEntries bounds the components that one block makes of a map.
const maxEntries = 100

// keyOf returns what stands in a name in the place of a pattern's star; "" where the name
// does not match, or the pattern has no star.
func keyOf(pattern, name string) string {
	before, after, ok := strings.Cut(pattern, star)
	if !ok || len(name) < len(before)+len(after) || !strings.HasPrefix(name, before) || !strings.HasSuffix(name, after) {
		return ""
	}
	if key := name[len(before) : len(name)-len(after)]; key != star {
		return key
	}
	return ""
}

// compileAmounts compiles the map of a component with a star. One that is an attribute is read
// without HCL.
func (c *compiler) compileAmounts(expr hcl.Expression) program {
	p := c.compileExpression(expr, cty.Map(cty.Number))
	if e, ok := p.(*evaluated); ok && len(e.names) == 1 {
		if path, ok := hcl.Attribute(expr); ok && len(path) == 2 {
			return column{e.names[0].index, e.names[0].typ, expr.Range()}
		}
	}
	return p
}

// checkAmount refuses a component without an amount, or whose amount does not fit its name.
func (c *compiler) checkAmount(b *componentBlock) {
	stars := strings.Count(b.Name, star)
	switch {
	case stars > 1:
		c.addError(b.Range, "invalid component name", "%q has %d stars: use one, for the keys of amounts", b.Name, stars)
	case stars == 1 && b.Amount != nil:
		c.addError(b.Amount.Range(), "invalid amount", "component %q has a star, which stands for the keys of a map: use amounts = MAP, or a name without a star", b.Name)
	case stars == 0 && b.Amounts != nil && b.key == "":
		c.addError(b.Amounts.Range(), "invalid amounts", "component %q has no star, which stands for the keys of the map: use a name such as %q, or amount", b.Name, b.Name+":*")
	case stars == 1 && b.Amounts == nil:
		c.addError(b.Range, "missing attribute", "amounts must be set: the default mapping has no component %q to take it from", b.Name)
	case !b.hasAmount():
		c.addError(b.Range, "missing attribute", "amount must be set: the default mapping has no component %q to take it from", b.Name)
	}
}

// isEach says whether c stands for a component of each entry.
func (c *component) isEach() bool { return c.amounts != nil && c.key == "" }

// entry is an entry of amounts.
type entry struct {
	name    string // of its component
	amount  int64
	problem string // why the amount is unknown; "": it is known
}

// amountEntries are the entries of a component's amounts; none where its condition fails.
func (b *builder) amountEntries(c *component) []entry {
	if c.when != nil && !b.evalCondition(c.whenPart, c.when) {
		return nil
	}
	v := b.evalPart(c.amountPart, c.amounts)
	switch {
	case v.kind == kindNull:
		return nil
	case v.kind != kindOther || !v.other.Type().IsObjectType() && !v.other.Type().IsMapType():
		b.setTypeError(c.amountPart, c.amounts, v, "a map of numbers; a when can leave the components out")
		return nil
	case v.other.LengthInt() > maxEntries && c.isEach():
		return []entry{{name: c.name, problem: fmt.Sprintf("amounts has %d entries, at most %d are allowed", v.other.LengthInt(), maxEntries)}}
	}
	var out []entry
	for it := v.other.ElementIterator(); it.Next(); {
		key, e := it.Element()
		if c.isEach() || key.AsString() == c.key {
			out = append(out, c.newEntry(key.AsString(), fromCty(e)))
		}
	}
	return out
}

func (c *component) newEntry(key string, v value) entry {
	e := entry{name: c.name}
	if c.isEach() {
		e.name = strings.Replace(c.name, star, key, 1)
	}
	var ok bool
	e.amount, ok = v.asCount()
	switch problem := record.ValidateName(e.name); {
	case problem != "":
		e.problem = "the name " + problem
	case isBlank(key):
		e.problem = "the key is blank"
	case !ok:
		e.problem = fmt.Sprintf("invalid amount %q: use a whole number of at least 0", v)
	}
	return e
}

// entriesWithoutBlock are the entries of a component with a star that no other block has by its
// full name.
func (b *builder) entriesWithoutBlock(m *Mapper, c *component) (out []entry) {
	for _, e := range b.amountEntries(c) {
		if !m.hasComponent(e.name) {
			out = append(out, e)
		}
	}
	return out
}

// appendEach appends a component for each entry above 0, beside those that the record block's
// list or a block before has.
func (b *builder) appendEach(m *Mapper, c *component, over, to []record.Component) []record.Component {
	for _, e := range b.entriesWithoutBlock(m, c) {
		if e.problem == "" && e.amount > 0 && (c.mine || !containsComponent(over, e.name)) && !containsComponent(to, e.name) {
			to = append(to, record.Component{Name: e.name, Amount: e.amount, Kind: c.kind, Scores: b.evalScores(c)})
		}
	}
	return to
}

// Unread is a component whose amount a map has and that cannot be counted.
type Unread struct {
	Component string // with the star where that is all of the map
	Problem   string // for people
}

// Unread returns the entries of maps of which r, which Map made of the job, has no component
// since they cannot be amounts or names of components.
func (m *Mapper) Unread(job *bursarv1.Job, r *record.Record) (unread []Unread) {
	b := builder{job: job}
	for i := range m.components {
		c := &m.components[i]
		if c.amounts == nil {
			continue
		}
		entries := b.amountEntries
		if c.isEach() {
			entries = func(c *component) []entry { return b.entriesWithoutBlock(m, c) }
		}
		for _, e := range entries(c) {
			if e.problem != "" && r.Component(e.name) == nil {
				unread = append(unread, Unread{e.name, e.problem})
			}
		}
	}
	return unread
}
