package config

import (
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// maxDimensions bounds the dimensions: with each one there are more tuples, and
// each tuple takes memory.
const maxDimensions = 8

// maxZones bounds the time zones, beside that of the site: the sums of each one take as
// much memory.
const maxZones = 4

// Usage is the block usage { … }: questions about usage by its dimensions and days
// are answered from sums by day, others from the records.
type Usage struct {
	// Dimensions are meta keys; nil is site_id, group_id and user_id, as AUDITOR's
	// collectors name them.
	Dimensions []hcl.String `hcl:"dimensions,optional"`
	// Zones are time zones of whose days sums are kept, beside that of the site; nil is UTC.
	Zones []hcl.String `hcl:"zones,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

func (u *Usage) readUsage(to *Shared) (diags hcl.Diagnostics) {
	for _, list := range []struct {
		name   string
		values []hcl.String
		check  func(before []string, name string) error
		to     *[]string
	}{{"dimensions", u.Dimensions, checkDimension, &to.Dimensions}, {"zones", u.Zones, checkZone, &to.Zones}} {
		names := make([]string, 0, len(list.values))
		for _, v := range list.values {
			if err := list.check(names, v.Value); err != nil {
				diags.Add(hcl.Errorf(v.Range, fmt.Sprintf("invalid value in %q", list.name), "%v", err))
			}
			names = append(names, v.Value)
		}
		if list.values != nil {
			*list.to = names
		}
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
