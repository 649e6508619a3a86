// Package source is the HTCondor source: it reads the history and the epochs of one or
// several schedds, from files or through commands, and sends each run.
package source
