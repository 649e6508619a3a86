// Package packaging holds what the package of the aggregator is made of.
package packaging

import _ "embed" // for the configuration

// Configuration is the aggregator.hcl of the package.
//
//go:embed aggregator.hcl
var Configuration []byte
