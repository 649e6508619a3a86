package config

import (
	"github.com/bursar-accounting/bursar/hcl"
)

// evaluateRunOn reads run_on: agent.NAME, or the name as text.
func (a *Action) evaluateRunOn(ctx *hcl.EvalContext) hcl.Diagnostics {
	if a.RunOn == nil {
		return nil
	}
	path, plain := hcl.Attribute(a.RunOn)
	if !plain || path[0] != "agent" {
		return hcl.DecodeExpression(a.RunOn, &a.runOn, ctx)
	}
	if len(path) != 2 {
		return hcl.Diagnostics{hcl.Errorf(a.RunOn.Range(), `invalid value for "run_on"`, `expected agent.NAME, such as agent.head1, or the name as text, such as "head1"`)}
	}
	a.runOn = hcl.String{Value: path[1], Range: a.RunOn.Range()}
	return nil
}

// validateRunOn reports an agent that there is not.
func (c *Config) validateRunOn(a *Action) hcl.Diagnostics {
	if a.runOn.Value == "" {
		if a.runOn.Range == (hcl.Range{}) {
			return nil
		}
		return hcl.Diagnostics{hcl.Errorf(a.runOn.Range, `invalid value for "run_on"`, "it is empty; leave it out to have the programs run on the leader")}
	}
	var names []string
	for i := range c.Agents {
		if c.Agents[i].Name.Value == a.runOn.Value {
			return nil
		}
		names = append(names, c.Agents[i].Name.Value)
	}
	return hcl.Diagnostics{hcl.Errorf(a.runOn.Range, `invalid value for "run_on"`, "there is no block agent %q { … }; %s", a.runOn.Value, hcl.DidYouMean(a.runOn.Value, names))}
}
