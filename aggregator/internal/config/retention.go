package config

import (
	"cmp"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
	"github.com/bursar-accounting/bursar/hcl"
)

// Retention is the block retention { … }: how long records keep the names of persons. Totals
// stay as they are.
type Retention struct {
	// NamesMonths is how many months from the stop of a run its record keeps names at most.
	// Calendar months go whole, when their first day is so long ago.
	NamesMonths int `hcl:"names_months,optional" default:"18" min:"1" max:"1200"`
	// Drop are meta keys that such a record loses too, for what describes a person in other
	// words.
	Drop []hcl.String `hcl:"drop,optional"`
	// AuditMonths is how many months entries of the audit log are kept.
	AuditMonths int `hcl:"audit_months,optional" default:"12" min:"1" max:"1200"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// readRetention makes the policy of the block.
func (r *Retention) readRetention(keys *DirectoryKeys, to *Shared) (diags hcl.Diagnostics) {
	if r == nil {
		return nil
	}
	needed := erasure.NewKeys(keys.UserKey.Value, keys.GroupKey.Value, cmp.Or(keys.HostKey.Value, "host"))
	var drop []string
	for _, key := range r.Drop {
		switch {
		case key.Value == "":
			diags.Add(hcl.Errorf(key.Range, `invalid value in "drop"`, "the key is empty"))
		case slices.Contains(drop, key.Value):
			diags.Add(hcl.Errorf(key.Range, `invalid value in "drop"`, "duplicate %q", key.Value))
		case needed.Totals[key.Value], needed.Users[key.Value], slices.Contains(to.Dimensions, key.Value):
			diags.Add(hcl.Errorf(key.Range, `invalid value in "drop"`, "totals depend on %q; leave it out", key.Value))
		}
		drop = append(drop, key.Value)
	}
	to.Retention = erasure.Policy{Months: r.NamesMonths, Drop: drop, AuditMonths: r.AuditMonths}
	return diags
}
