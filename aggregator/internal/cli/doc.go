// Package cli is the command line of bursar: the daemon, `bursar dev`, and the
// commands by which operators look and act.
//
// Data go to stdout, everything else to stderr. Long options take one dash or
// two. The exit code is 0 when all is well, 1 after an error, and 2 when a command
// worked and found something: a check that found differences, files that are not
// formatted, a part of what was asked that could not be done.
//
// `bursar dev` starts an aggregator and an agent with its plugins as real processes in
// one folder, with certificates for the occasion, so that a newcomer sees bursar at work
// within seconds. What is started is what runs in production; only the configuration is
// generated. Everything ends with this process, whatever ends it.
//
// `bursar import` brings old files into a cluster: it starts a source plugin on them,
// maps its jobs, and pushes what they become to the cluster, as an agent whose cursor is
// one of its own. What was read is of rank import, so that what every other source says
// of a run is preferred. Ids are functions of the runs: an import that broke off, or
// that is done again, adds nothing twice.
package cli
