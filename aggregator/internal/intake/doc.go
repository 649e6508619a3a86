// Package intake brings old files into a cluster: it starts a source plugin on
// them, maps its jobs, and pushes what they become to the cluster's REST
// interface, as an agent whose cursor is one of its own.
//
//	src, diags, err := intake.Open(ctx, spec)
//	cluster, err := intake.Begin(ctx, client, spec.Name)
//	result, err := src.Read(ctx, cluster, show)
//	committed, err := cluster.Close()
//
// What was read is of rank import, so that what every other source says of a run
// is preferred. Ids are functions of the runs: an import that broke off, or that
// is done again, adds nothing twice.
package intake
