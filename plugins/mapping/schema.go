package mapping

import (
	"slices"

	"github.com/bursar-accounting/bursar/hcl"
)

// block is the body of a record block, or of a plugin's default mapping.
type block struct {
	Defaults   *bool          `hcl:"defaults,optional"` // false: the default mapping does not count
	When       hcl.Expression `hcl:"when,optional"`
	ID         hcl.Expression `hcl:"id,optional"`
	Start      hcl.Expression `hcl:"start,optional"`
	Stop       hcl.Expression `hcl:"stop,optional"`
	Submit     hcl.Expression `hcl:"submit,optional"`
	State      hcl.Expression `hcl:"state,optional"`
	ExitCode   hcl.Expression `hcl:"exit_code,optional"`
	ExitSignal hcl.Expression `hcl:"exit_signal,optional"`
	Meta       hcl.Expression `hcl:"meta,optional"`
	// All is a list of components as AUDITOR has it, or its JSON.
	All        hcl.Expression   `hcl:"components,optional"`
	Components []componentBlock `hcl:"component,block,repeat"`
}

type componentBlock struct {
	Name   string         `hcl:"name,label"`
	Amount hcl.Expression `hcl:"amount,optional"` // required where the default mapping has no such component
	// Amounts is a map: one component for each entry, whose key takes the place of the star
	// in Name.
	Amounts hcl.Expression `hcl:"amounts,optional"`
	Kind    string         `hcl:"kind,optional"`
	When    hcl.Expression `hcl:"when,optional"`
	Scores  []scoreBlock   `hcl:"score,block,repeat"`
	Range   hcl.Range      `hcl:",def_range"`

	refines bool   // it is written in the record block
	key     string // it is the component of that entry of Amounts alone; "": of all
}

func (c *componentBlock) hasAmount() bool { return c.Amount != nil || c.Amounts != nil }

type scoreBlock struct {
	Name  string         `hcl:"name,label"`
	Value hcl.Expression `hcl:"value"`
	When  hcl.Expression `hcl:"when,optional"`
	Range hcl.Range      `hcl:",def_range"`
}

func (b *block) withoutDefaults() bool { return b.Defaults != nil && !*b.Defaults }

// namedExpressions are the attributes of a block that name one part of a record each.
func (b *block) namedExpressions() []part {
	return []part{
		{"when", &b.When}, {"id", &b.ID}, {"start", &b.Start}, {"stop", &b.Stop}, {"submit", &b.Submit},
		{"state", &b.State}, {"exit_code", &b.ExitCode}, {"exit_signal", &b.ExitSignal},
	}
}

type part struct {
	name string
	expr *hcl.Expression
}

// withFallback returns b, a record block, with what it does not say taken from the default d, but
// for meta and components lists, which are merged when they are evaluated.
func (b block) withFallback(d block) block {
	theirs := d.namedExpressions()
	for i, p := range b.namedExpressions() {
		if *p.expr == nil {
			*p.expr = *theirs[i].expr
		}
	}
	mine := b.Components
	b.Components = nil
	for _, c := range mine {
		c.refines = true
		if !c.hasAmount() {
			c = c.withFallback(d.findComponent(c.Name))
		}
		b.Components = append(b.Components, c)
	}
	for _, c := range d.Components {
		if b.findComponent(c.Name) == nil {
			b.Components = append(b.Components, c)
		}
	}
	for i, c := range b.Components {
		if !c.hasAmount() {
			b.Components[i] = c.ofEntry(b.Components)
		}
	}
	return b
}

// findComponent returns the component of that name; nil without one.
func (b *block) findComponent(name string) *componentBlock {
	for i := range b.Components {
		if b.Components[i].Name == name {
			return &b.Components[i]
		}
	}
	return nil
}

// ofEntry returns c, which has no amount, over the first component with a star that has an
// entry for its name.
func (c componentBlock) ofEntry(all []componentBlock) componentBlock {
	for i := range all {
		if key := keyOf(all[i].Name, c.Name); key != "" && all[i].Amounts != nil {
			c = c.withFallback(&all[i])
			c.key = key
			break
		}
	}
	return c
}

// withFallback returns c, which has no amount, with what it does not say taken from d.
func (c componentBlock) withFallback(d *componentBlock) componentBlock {
	if d == nil {
		return c
	}
	c.Amount, c.Amounts = d.Amount, d.Amounts
	if c.Kind == "" {
		c.Kind = d.Kind
	}
	if c.When == nil {
		c.When = d.When
	}
	for _, s := range d.Scores {
		if !slices.ContainsFunc(c.Scores, func(mine scoreBlock) bool { return mine.Name == s.Name }) {
			c.Scores = append(c.Scores, s)
		}
	}
	return c
}
