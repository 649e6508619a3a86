package config

import (
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
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

func (c *Component) validate() (diags hcl.Diagnostics) {
	if wrong := record.ValidateName(c.Name.Value); wrong != "" {
		diags.Add(hcl.Errorf(c.Name.Range, "invalid name of a component", "%q: %s", c.Name.Value, wrong))
	}
	if _, ok := record.ParseKind(c.Kind.Value); !ok && c.Kind.Range != (hcl.Range{}) {
		diags.Add(hcl.Errorf(c.Kind.Range, `invalid value for "kind"`, "%q; expected rate (used for as long as the job runs) or total (consumed over the run)", c.Kind.Value))
	}
	return diags
}

func componentBlocks(c *Config) (list []clusterconfig.Block) {
	for i := range c.Components {
		of := &c.Components[i]
		b := clusterconfig.Block{Type: "component", Labels: []string{of.Name.Value}, At: place(of.Name.Range)}
		b.Set("kind", of.Kind.Value, place(of.Kind.Range))
		list = append(list, b)
	}
	return list
}

func readComponent(s *Shared, b *clusterconfig.Block) error {
	if err := only(b, 1, "kind"); err != nil {
		return err
	}
	text, err := b.Text("kind")
	if err != nil {
		return err
	}
	kind, ok := record.ParseKind(text)
	if !ok {
		return fmt.Errorf("kind: %q is neither rate nor total", text)
	}
	if s.Kinds == nil {
		s.Kinds = record.Kinds{}
	}
	s.Kinds[b.Labels[0]] = kind
	return nil
}
