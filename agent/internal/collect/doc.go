// Package collect takes jobs from a source plugin, turns them into frames and
// puts these into the buffer: one [Loop] a source.
//
// A batch goes into the buffer in one transaction with the checkpoint that
// covers it, and only then is the plugin told. What has been sent already and
// has not changed is not sent again; what the mapping or the source's own
// filters leave out is counted, and withdrawn when it was sent before; what
// fails goes to quarantine with its raw attributes and the reason. When the
// buffer is full or the disk fails, the loop waits and says so: the scheduler
// still has the jobs.
//
// A source that hands on what clients pushed has no jobs and no mapping: its records
// and stops go on as they are, as statements of the origin that all pushes share.
// None of them is compared with what was sent before.
//
// What a run was sent as is remembered in memory, for the youngest runs, and on
// disk for those that go on. A source that has had a job in quarantine is marked
// on disk for good: from then on a record of a run that memory does not know, as
// after a restart, settles the run's quarantine, which is harmless where there is
// none. Sources without failures pay nothing for that. A closed run that memory
// does not know and that is left out now is only taken back when its window is
// collected again on order: to withdraw whatever is left out after a restart would
// cost a frame for each of them.
package collect
