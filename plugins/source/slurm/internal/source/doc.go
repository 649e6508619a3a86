// Package source collects the runs of a Slurm from slurmdbd by sacct.
//
// A Collect walks in windows from its checkpoint, less an overlap, to now. A run
// belongs to the window in which it ended; runs that go on belong to the last
// one. The checkpoint moves past a window only after all of its runs are on the
// daemon's disk, and never when sacct failed. See ../../DESIGN.md.
package source
