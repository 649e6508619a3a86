// Package source makes records of what epilogs tell.
//
// An epilog only says that a run of a job ended. It is written to the journal, and
// that is all that the job's end waits for. Some seconds later sacct is asked about
// all jobs of which epilogs spoke since, in one call, and what it says is sent as the
// source slurm sends it, under the same id. See ../../DESIGN.md.
package source
