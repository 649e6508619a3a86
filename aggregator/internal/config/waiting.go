package config

import "github.com/bursar-accounting/bursar/hcl"

// WaitingStops is the block waiting_stops { … }: stops that clients pushed and whose
// records have not come.
type WaitingStops struct {
	// ExpireAfter is how long they are kept: longer than agents are usually away, for the
	// record of a stop that is dismissed too early stays open.
	ExpireAfter hcl.Duration `hcl:"expire_after" min:"24h"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}
