package mapping

import (
	"cmp"
	"slices"

	"github.com/bursar-accounting/bursar/hcl"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Changes are the parts of a plugin's default mapping that a record block changes, without
// those that it only repeats, each by its name: "id", "when", "meta.user_id",
// `component "Cores"`; "meta" and "components" where an expression makes the keys or the
// components for each job.
type Changes struct {
	Replaced []string `json:"replaces,omitempty"` // the default mapping has them, too
	Added    []string `json:"adds,omitempty"`
	LeftOut  []string `json:"leaves_out,omitempty"` // the default mapping alone has them
}

// Changes returns what the record block changes; nothing without one.
func (m *Mapper) Changes() Changes { return m.changes }

// FromBlock returns the parts of a job's record that the record block decides, by the
// names that [Changes] has. Another part is the default mapping's.
func (m *Mapper) FromBlock(job *bursarv1.Job) map[string]bool {
	parts := map[string]bool{}
	for _, name := range m.decided {
		parts[name] = true
	}
	b := builder{job: job}
	_, decided := b.metaAll(m.metaOver)
	for key := range decided {
		parts[MetaPart(key)] = true
	}
	for _, c := range b.evalList(m.listOver) {
		parts[ComponentPart(c.Name)] = true
	}
	for i := range m.components {
		if c := &m.components[i]; c.mine && c.isEach() {
			for _, e := range b.entriesWithoutBlock(m, c) {
				parts[ComponentPart(e.name)] = true
			}
		}
	}
	return parts
}

// MetaPart names a meta key as [Changes] does.
func MetaPart(key string) string { return "meta." + key }

// ComponentPart names a component as [Changes] does.
func ComponentPart(name string) string { return `component "` + name + `"` }

// noteChanges notes what the record block changes.
func (c *compiler) noteChanges(fallback, mine block) {
	theirs, ours := fallback.decidedParts(), mine.decidedParts()
	changes := &c.mapper.changes
	for _, p := range ours {
		c.mapper.decided = append(c.mapper.decided, p.name)
		known := slices.ContainsFunc(theirs, p.isWithin)
		switch {
		case slices.ContainsFunc(theirs, func(t said) bool { return p.isSame(t) && mine.repeatsPart(p, &fallback, t) }):
		case p.gone && known:
			changes.LeftOut = append(changes.LeftOut, p.name)
		case known:
			changes.Replaced = append(changes.Replaced, p.name)
		default:
			changes.Added = append(changes.Added, p.name)
		}
	}
	if !mine.withoutDefaults() {
		return
	}
	for _, p := range theirs {
		if !slices.ContainsFunc(ours, p.isSame) {
			changes.LeftOut = append(changes.LeftOut, p.name)
		}
	}
}

// said is a part of a record that a block decides.
type said struct {
	name      string
	gone      bool           // by leaving it out
	component string         // its name where it is one
	expr      hcl.Expression // its value where it is none
}

func (s said) isSame(other said) bool { return s.name == other.name }

// isWithin also holds for the component of one entry where the other has all.
func (s said) isWithin(other said) bool {
	return s.isSame(other) || keyOf(other.component, s.component) != ""
}

// repeatsPart reports whether a part of b, a record block, is as the default d has it.
func (b *block) repeatsPart(p said, d *block, theirs said) bool {
	if p.component == "" {
		return hcl.SameExpression(p.expr, theirs.expr)
	}
	ours := b.allOf(p.component)
	for i, c := range ours {
		if !c.hasAmount() && !b.withoutDefaults() {
			ours[i] = c.withFallback(d.findComponent(c.Name))
		}
	}
	return slices.EqualFunc(ours, d.allOf(p.component), componentBlock.hasSameContent)
}

// allOf returns the components of that name.
func (b *block) allOf(name string) (list []componentBlock) {
	for _, c := range b.Components {
		if c.Name == name {
			list = append(list, c)
		}
	}
	return list
}

// hasSameContent reports whether c is written as d is, whatever it is called.
func (c componentBlock) hasSameContent(d componentBlock) bool {
	return cmp.Or(c.Kind, "rate") == cmp.Or(d.Kind, "rate") &&
		hcl.SameExpression(c.Amount, d.Amount) && hcl.SameExpression(c.Amounts, d.Amounts) && hcl.SameExpression(c.When, d.When) &&
		slices.EqualFunc(c.Scores, d.Scores, func(s, t scoreBlock) bool {
			return s.Name == t.Name && hcl.SameExpression(s.Value, t.Value) && hcl.SameExpression(s.When, t.When)
		})
}

// decidedParts returns what a block decides: what every record has, then meta keys, then
// components.
func (b *block) decidedParts() []said {
	var parts []said
	for _, p := range b.namedExpressions() {
		if *p.expr != nil {
			parts = append(parts, said{name: p.name, expr: *p.expr})
		}
	}
	keys, listed := metaKeys(b.Meta)
	if !listed {
		parts = append(parts, said{name: "meta", expr: b.Meta})
	}
	for _, k := range keys {
		v, ok := hcl.Literal(k.pair.Value)
		parts = append(parts, said{name: MetaPart(k.key), gone: ok && v.IsNull(), expr: k.pair.Value})
	}
	if b.All != nil {
		parts = append(parts, said{name: "components", expr: b.All})
	}
	for _, c := range b.Components {
		p := said{name: ComponentPart(c.Name), gone: isNeverTrue(c.When), component: c.Name}
		if i := slices.IndexFunc(parts, p.isSame); i >= 0 {
			parts[i].gone = parts[i].gone && p.gone
			continue
		}
		parts = append(parts, p)
	}
	return parts
}

// isNeverTrue says whether a condition is false for every job.
func isNeverTrue(when hcl.Expression) bool {
	if when == nil {
		return false
	}
	v, ok := hcl.Literal(when)
	holds, isBool := fromCty(v).asBool()
	return ok && isBool && !holds
}
