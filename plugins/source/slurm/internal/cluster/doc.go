// Package cluster reads what Slurm's commands tell beside the runs of jobs: the
// nodes (scontrol), the jobs that run and wait now (squeue), who belongs to which
// account (sacctmgr), and the names of users (getent).
//
// The readers take any text without panicking. What they do not understand is an
// error and never counted as less: a cluster that looks smaller than it is, or a
// queue that looks emptier, is worse than none.
package cluster
