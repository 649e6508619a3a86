// Package program is bursar-epilog: it tells the agent that a run has ended.
//
// Called by Slurm it must not cost a job anything: it always exits with 0, after a
// bounded time, and what it cannot hand over it puts into the spool.
package program
