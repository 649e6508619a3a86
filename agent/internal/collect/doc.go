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
package collect
