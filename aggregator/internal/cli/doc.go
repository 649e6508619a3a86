// Package cli is the command line of bursar: the daemon, `bursar dev`, and the
// commands by which operators look and act.
//
// Data go to stdout, everything else to stderr. Long options take one dash or
// two. The exit code is 0 when all is well, 1 after an error, and 2 when a command
// worked and found something: a check that found differences, files that are not
// formatted, a part of what was asked that could not be done.
package cli
