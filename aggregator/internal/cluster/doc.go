// Package cluster replicates opaque commands with Raft and applies them, each
// exactly once and in one order, to a State on every node.
//
// It knows nothing of records. A command is at most MaxEntry bytes that only
// the State understands; the State says what became of it as a value, and says
// with an error that this node must stop.
//
// A cluster of one:
//
//	id, err := cluster.Identity(dir)
//	node, err := cluster.Open(cluster.Config{
//		DataDir: dir, State: store, Images: store,
//		Bootstrap: []cluster.Server{{ID: id, Addr: "agg1.example.org:8701"}},
//	})
//	node.OnLeader(pull.Run) // its first duty may be to propose the cluster's id
//	err = node.Run(ctx)     // then close the store
//
// Errors: ErrNotLeader and ErrTooLarge say that nothing was proposed, and so
// does a bare context error; ErrUnknownOutcome says that the command may or may
// not have been applied, or may be applied later; ErrStopped says that the node
// has ended. All are matched with errors.Is.
package cluster
