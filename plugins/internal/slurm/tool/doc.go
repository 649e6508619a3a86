// Package tool runs Slurm's commands. A command that fails in any way – a status
// other than 0, an error on standard error, no output for too long – is an error,
// whatever it printed.
package tool
