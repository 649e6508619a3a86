package config

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/shared"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// maxDimensions bounds the dimensions: with each one there are more tuples, and
// each tuple takes memory.
const maxDimensions = 8

// Usage is the block usage { … }: questions about usage by its dimensions are
// answered from sums by day, others from the records.
type Usage struct {
	// Dimensions are meta keys; nil is site_id, group_id and user_id, as AUDITOR's
	// collectors name them.
	Dimensions []hcl.String `hcl:"dimensions,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

func defaultDimensions() []string { return []string{"site_id", "group_id", "user_id"} }

func (u *Usage) validate() (diags hcl.Diagnostics) {
	names := make([]string, 0, len(u.Dimensions))
	for _, d := range u.Dimensions {
		if err := checkDimension(names, d.Value); err != nil {
			diags.Add(hcl.Errorf(d.Range, `invalid value in "dimensions"`, "%v", err))
		}
		names = append(names, d.Value)
	}
	return diags
}

// checkDimension says what is wrong with a name behind others.
func checkDimension(before []string, name string) error {
	wrong := record.ValidateName(name)
	switch {
	case name == "":
		return fmt.Errorf("the name of a meta key is empty")
	case wrong != "":
		return fmt.Errorf("%q: %s", name, wrong)
	case slices.Contains(before, name):
		return fmt.Errorf("%q is there twice", name)
	case len(before) >= maxDimensions:
		return fmt.Errorf("there are more than %d dimensions", maxDimensions)
	}
	return nil
}

func usageBlocks(c *Config) []shared.Block {
	u := &c.Aggregator.Usage
	if u.Dimensions == nil {
		return nil
	}
	names := make([]string, len(u.Dimensions))
	for i, d := range u.Dimensions {
		names[i] = d.Value
	}
	b := shared.Block{Type: "usage", At: place(u.Range)}
	b.Set("dimensions", names, place(u.Range))
	return []shared.Block{b}
}

func readUsage(s *Shared, b *shared.Block) error {
	if err := only(b, 0, "dimensions"); err != nil {
		return err
	}
	var names []string
	if raw, ok := b.Values["dimensions"]; ok {
		if err := json.Unmarshal(raw, &names); err != nil {
			return fmt.Errorf("dimensions: %s is no list of names: %w", raw, err)
		}
	}
	for i, name := range names {
		if err := checkDimension(names[:i], name); err != nil {
			return fmt.Errorf("dimensions: %w", err)
		}
	}
	s.Dimensions = names
	return nil
}
