// Package field reads single fields of sacct's output: times, durations,
// amounts of memory, TRES lists, exit codes, states and job ids, as Slurm 17 to
// 26 write them. Every function takes any text without panicking; what Slurm
// writes for "no value" is no error.
package field
