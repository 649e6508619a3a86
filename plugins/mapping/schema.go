package mapping

import (
	"github.com/bursar-accounting/bursar/hcl"
)

// block is the body of a record block.
type block struct {
	When       hcl.Expression `hcl:"when,optional"`
	ID         hcl.Expression `hcl:"id,optional"`
	Start      hcl.Expression `hcl:"start,optional"`
	Stop       hcl.Expression `hcl:"stop,optional"`
	Submit     hcl.Expression `hcl:"submit,optional"`
	State      hcl.Expression `hcl:"state,optional"`
	ExitCode   hcl.Expression `hcl:"exit_code,optional"`
	ExitSignal hcl.Expression `hcl:"exit_signal,optional"`
	Meta       hcl.Expression `hcl:"meta,optional"`
	// All is a list of components as AUDITOR has it, or its JSON; blocks add to it.
	All        hcl.Expression   `hcl:"components,optional"`
	Components []componentBlock `hcl:"component,block,repeat"`
}

type componentBlock struct {
	Name   string         `hcl:"name,label"`
	Amount hcl.Expression `hcl:"amount"`
	Kind   string         `hcl:"kind,optional"`
	When   hcl.Expression `hcl:"when,optional"`
	Scores []scoreBlock   `hcl:"score,block,repeat"`
	Range  hcl.Range      `hcl:",def_range"`
}

type scoreBlock struct {
	Name  string         `hcl:"name,label"`
	Value hcl.Expression `hcl:"value"`
	When  hcl.Expression `hcl:"when,optional"`
	Range hcl.Range      `hcl:",def_range"`
}

// over returns b with what it does not say taken from the default d.
func (b block) over(d block) block {
	for _, p := range []struct{ mine, other *hcl.Expression }{
		{&b.When, &d.When}, {&b.ID, &d.ID}, {&b.Start, &d.Start}, {&b.Stop, &d.Stop}, {&b.Submit, &d.Submit},
		{&b.State, &d.State}, {&b.ExitCode, &d.ExitCode}, {&b.ExitSignal, &d.ExitSignal}, {&b.Meta, &d.Meta},
	} {
		if *p.mine == nil {
			*p.mine = *p.other
		}
	}
	if len(b.Components) == 0 && b.All == nil {
		b.Components, b.All = d.Components, d.All
	}
	return b
}
