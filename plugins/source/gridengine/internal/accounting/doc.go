// Package accounting reads the lines of Grid Engine's accounting file, as
// accounting(5) describes it: 43 columns in Grid Engine 6.0 and 6.1, 45 since 6.2,
// and more in Univa's and Altair's, whose times are in milliseconds. What a line is
// is decided by the line alone, since a file may hold lines of several versions.
package accounting
