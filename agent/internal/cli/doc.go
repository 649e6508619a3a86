// Package cli is the command line of bursar-agent.
//
// Data go to standard output, everything said to a person to standard error.
// Long flags take one dash or two. The exit code is 0, 1 after an error, and 2 when a
// command worked and found something, as doctor does.
package cli
