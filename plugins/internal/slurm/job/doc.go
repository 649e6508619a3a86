// Package job assembles sacct's rows into runs: the row of a job and those of its
// steps become one Run, and the values of a Run are the attributes that a mapping
// may name.
//
// The table of attributes says for each one which columns it is made from, so
// that only those are asked for that a mapping needs, and what this version of
// sacct does not have is null.
package job
