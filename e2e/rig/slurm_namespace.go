//go:build e2e

package rig

// Init is the process id of the first process of the cluster's namespaces, for what
// has to share its network.
func (c *Cluster) Init() int { return c.box.init.Process.Pid }
