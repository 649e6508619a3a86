package cli

import (
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/hcl"
)

// own are the configuration files of the user, by whose they are.
type own struct {
	agent, aggregator []string
	describes         bool // they have a block that the demo has, too
	access            bool // a block access is among them
}

// demoBlocks are those of which a configuration of one's own takes the place of the demo.
func demoBlocks() []string {
	return []string{
		"cluster", "cluster_group", "price", "budget", "directory", "project", "person", "host_class",
		"service_units", "contribution", "energy", "health",
	}
}

// sortOut reads a folder, or a file: sources and their plugins, and what actions may
// run, are the agent's; everything else is the aggregator's. What cannot be read is given to the
// aggregator, which says what is wrong with it.
func sortOut(folder string) (own, error) {
	var out own
	if folder == "" {
		return out, nil
	}
	all, diags := hcl.Load(folder)
	if len(all.Paths) == 0 {
		return out, diags.Err()
	}
	for _, path := range all.Paths {
		file, _ := hcl.Load(path)
		headers := file.Headers()
		out.describes = out.describes || slices.ContainsFunc(headers, func(b hcl.Header) bool {
			return slices.Contains(demoBlocks(), b.Type)
		})
		out.access = out.access || slices.ContainsFunc(headers, func(b hcl.Header) bool { return b.Type == "access" })
		agents, others := blockOwners(headers)
		switch {
		case agents != "" && others != "":
			return out, fmt.Errorf("%s: a block %q is for the agent and a block %q for the aggregator; put them into two files", path, agents, others)
		case agents != "":
			out.agent = append(out.agent, path)
		default:
			out.aggregator = append(out.aggregator, path)
		}
	}
	return out, nil
}

// blockOwners names a block of the agent's and one of the aggregator's, if there are any.
func blockOwners(blocks []hcl.Header) (agents, others string) {
	for _, b := range blocks {
		switch {
		case b.Type == "source", b.Type == "allow_action", b.Type == "plugin" && len(b.Labels) > 0 && b.Labels[0] == "source":
			agents = b.Type
		default:
			others = b.Type
		}
	}
	return agents, others
}
