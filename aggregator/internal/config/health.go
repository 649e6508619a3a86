package config

import "github.com/bursar-accounting/bursar/hcl"

// Health is the block health { … }: what is known when this node judges the cluster.
type Health struct {
	// Acknowledged are warnings that become notices.
	Acknowledged []Acknowledged `hcl:"acknowledge,block"`
}

// Acknowledged is a block acknowledge "ID" { … }: a finding that asks for nothing any more.
type Acknowledged struct {
	// ID is that of the finding, as `bursar status -format json` has it.
	ID hcl.String `hcl:"id,label" match:"[a-z][a-z-]*" want:"the id of a finding, such as runs-missing"`
	// About is what the finding is about, likewise; empty for one of the cluster.
	About hcl.String `hcl:"about,optional"`
	// Count is how many jobs, runs, records or gaps it is of at most: with more it is a
	// warning again.
	Count int `hcl:"count,optional" min:"0"`
	// Reason is shown with the notice.
	Reason hcl.String `hcl:"reason"`
}
