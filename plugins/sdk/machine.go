package sdk

import (
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/hcl/preflight"
)

// CheckListen reports a TCP address of the attribute that cannot be listened on, where
// the daemon asks for that.
func (c *Config) CheckListen(name, address string) {
	if c.CheckMachine {
		c.lacks(name, preflight.Listen(address, c.RangeOf(name).HCL()))
	}
}

// CheckSocket reports a unix socket of the attribute that another process has or that
// cannot be made, where the daemon asks for that.
func (c *Config) CheckSocket(name, path string) {
	if c.CheckMachine {
		c.lacks(name, preflight.Socket(path, c.RangeOf(name).HCL()))
	}
}

// lacks adds what the machine lacks for an attribute, without showing a secret.
func (c *Config) lacks(name string, diags hcl.Diagnostics) {
	for _, d := range diags {
		d.Detail = c.wordProblem(name, "%s", []any{d.Detail})
	}
	c.Add(diags)
}
