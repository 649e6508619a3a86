// Package buffer keeps what an agent has collected until every aggregator
// cluster that pulls from it has committed it, and for some time beyond.
//
// A [Buffer] is one bbolt file. [Buffer.Append] writes frames, the source's new
// checkpoint and its notes on running jobs in one transaction and returns after
// the fsync: a checkpoint never runs ahead of its records. Frames carry a dense
// sequence number and a chained digest (package frame); they are stored, read
// and sent as whole chunks. Reading removes nothing. [Buffer.Trim] removes what
// every known cluster has acknowledged and what is older than the retention;
// when the buffer is nearly full the oldest acknowledged chunks go early.
// Nothing that is not acknowledged is ever dropped: [ErrFull] stops collection.
// A cluster is known from its first [Buffer.Resume] on until [Buffer.Forget],
// however long it is silent.
//
// An epoch names one buffer on one machine. A new file, a file on another
// machine and a file that ends before what a cluster has committed from it get
// a new epoch; [Buffer.Resume] then takes what the cluster remembers, and
// [Buffer.Begin] tells a source how far to step back.
package buffer
