// Package membership is a node among the other nodes of its cluster: how a cluster is
// founded and grows, what a follower hands to the leader, and what each node says
// of itself. It speaks the protocol of peer.proto over cluster.Transport.
//
//	p, err := membership.New(membership.Config{…})
//	node.OnLeader(p.MaintainMembers)   // a leader adds, replaces and readdresses nodes
//	err = p.Run(ctx)                   // serves the others, gathers, exchanges facts
//
//	p.Write(ctx, command)              // on any node: the leader commits it
//	p.Linearizable(ctx)                // on any node: what is read afterwards is the newest
//	p.Within(ctx, age)                 // how old this node's state may be
//	p.TransferLeadership(ctx)          // to another leader, and no write fails
//	p.Answer(topic, fn); p.Ask(ctx, topic, body) // what only the leader knows
//	p.Roster().All()                   // the facts of all nodes
//
// A node also looks at itself and at the others, and stops before it does harm: when
// its state differs from that of the others ([Watch]), when its clock does ([Clock]),
// and when it is too old for what the cluster has agreed on ([Gate]).
//
// # Errors
//
// [ErrNotNow] says that nothing was done and a later try may succeed; [ErrRefused]
// that nothing was done and none will; [cluster.ErrUnknownOutcome] that it may
// have been done, or may be later.
//
// # Facts
//
// Every two seconds each node tells each other one its [NodeFact]. A part of the
// daemon that has something to say gives a [FactSource] to [Peer.Source]: it sets
// fields of the fact, or names of its own with [NodeFact.SetExtra].
package membership
