// Package cli is the command line of bursar-agent.
//
// Data go to standard output, everything said to a person to standard error.
// Long flags take one dash or two. The exit code is 0, or 1 for an error; doctor
// answers as monitoring systems want it: 1 for warnings and 2 for errors.
package cli
