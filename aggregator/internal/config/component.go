package config

import (
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Component is a block component "name" { … }: what its amount is in records that
// clients push, which do not say it.
type Component struct {
	Name hcl.String `hcl:"name,label"`
	// Kind is rate or total.
	Kind hcl.String `hcl:"kind"`
}

func (c *Component) readKind() (kind record.Kind, diags hcl.Diagnostics) {
	if wrong := record.ValidateName(c.Name.Value); wrong != "" {
		diags.Add(hcl.Errorf(c.Name.Range, "invalid name of a component", "%q: %s", c.Name.Value, wrong))
	}
	kind, ok := record.ParseKind(c.Kind.Value)
	if !ok && c.Kind.Range != (hcl.Range{}) {
		diags.Add(hcl.Errorf(c.Kind.Range, `invalid value for "kind"`, "%q; expected rate (used for as long as the job runs) or total (consumed over the run)", c.Kind.Value))
	}
	return kind, diags
}
