// Package packaging holds what the package of the agent is made of.
package packaging

import _ "embed" // for the configuration

// Configuration is the agent.hcl of the package.
//
//go:embed agent.hcl
var Configuration []byte
