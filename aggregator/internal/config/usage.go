package config

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// maxDimensions bounds the dimensions: with each one there are more tuples, and
// each tuple takes memory.
const maxDimensions = 8

// maxZones bounds the time zones: the sums of each one take as much memory.
const maxZones = 4

// Usage is the block usage { … }: questions about usage by its dimensions and days
// are answered from sums by day, others from the records.
type Usage struct {
	// Dimensions are meta keys; nil is site_id, group_id and user_id, as AUDITOR's
	// collectors name them.
	Dimensions []hcl.String `hcl:"dimensions,optional"`
	// Zones are time zones of whose days sums are kept; nil is UTC.
	Zones []hcl.String `hcl:"zones,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

func defaultDimensions() []string { return []string{"site_id", "group_id", "user_id"} }

func defaultZones() []string { return []string{"UTC"} }

func (u *Usage) validate() (diags hcl.Diagnostics) {
	names := make([]string, 0, len(u.Dimensions))
	for _, d := range u.Dimensions {
		if err := checkDimension(names, d.Value); err != nil {
			diags.Add(hcl.Errorf(d.Range, `invalid value in "dimensions"`, "%v", err))
		}
		names = append(names, d.Value)
	}
	zones := make([]string, 0, len(u.Zones))
	for _, z := range u.Zones {
		if err := checkZone(zones, z.Value); err != nil {
			diags.Add(hcl.Errorf(z.Range, `invalid value in "zones"`, "%v", err))
		}
		zones = append(zones, z.Value)
	}
	return diags
}

// checkZone says what is wrong with a time zone behind others.
func checkZone(before []string, name string) error {
	switch {
	case slices.Contains(before, name):
		return fmt.Errorf("duplicate %q", name)
	case len(before) >= maxZones:
		return fmt.Errorf("there are more than %d zones", maxZones)
	}
	_, err := calendar.Zone(name)
	return err
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
		return fmt.Errorf("duplicate %q", name)
	case len(before) >= maxDimensions:
		return fmt.Errorf("there are more than %d dimensions", maxDimensions)
	}
	return nil
}

func usageBlocks(c *Config) []clusterconfig.Block {
	u := &c.Aggregator.Usage
	b := clusterconfig.Block{Type: "usage", At: place(u.Range)}
	for name, list := range map[string][]hcl.String{"dimensions": u.Dimensions, "zones": u.Zones} {
		if list == nil {
			continue
		}
		values := make([]string, len(list))
		for i := range list {
			values[i] = list[i].Value
		}
		b.Set(name, values, place(u.Range))
	}
	if len(b.Values) == 0 {
		return nil
	}
	return []clusterconfig.Block{b}
}

func readUsage(s *Shared, b *clusterconfig.Block) error {
	if err := only(b, 0, "dimensions", "zones"); err != nil {
		return err
	}
	for name, to := range map[string]*[]string{"dimensions": &s.Dimensions, "zones": &s.Zones} {
		if err := readNames(b, name, to); err != nil {
			return err
		}
	}
	for i, name := range s.Dimensions {
		if err := checkDimension(s.Dimensions[:i], name); err != nil {
			return fmt.Errorf("dimensions: %w", err)
		}
	}
	for i, name := range s.Zones {
		if err := checkZone(s.Zones[:i], name); err != nil {
			return fmt.Errorf("zones: %w", err)
		}
	}
	return nil
}

func readNames(b *clusterconfig.Block, name string, to *[]string) error {
	raw, ok := b.Values[name]
	if !ok {
		return nil
	}
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil {
		return fmt.Errorf("%s: %s is no list of names: %w", name, raw, err)
	}
	*to = names
	return nil
}
