// Package source collects the runs of a Slurm from slurmdbd by sacct.
//
// A Collect walks in windows from its checkpoint, less an overlap, to now. A run
// belongs to the window in which it ended; runs that go on belong to the last
// one. The checkpoint moves past a window only after all of its runs are on the
// daemon's disk, and never when sacct failed. Behind the jobs it tells facts: what
// the cluster has, who has jobs in the queue, and who may charge which account.
// See ../../DESIGN.md.
package source
