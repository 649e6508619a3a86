// Package report makes documents for people out of the answers of /v1: what was used
// in two periods side by side, who stands how to what was contributed, how full
// clusters were. A [Document] writes itself as JSON, as CSV and as one HTML file that
// needs nothing else; tables of a terminal are made of it by the command line.
//
// A report asks through a [Reader], which is the REST interface with someone's
// rights, in the same process or over the network. So what a person may not see is in
// no report of that person, and a report has the figures of /v1 and no others.
package report
