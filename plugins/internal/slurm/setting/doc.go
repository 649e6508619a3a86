// Package setting reads the settings that all sources of a Slurm have: how sacct is
// called, and which runs are wanted.
package setting
