// Package sacct runs Slurm's sacct and gives its rows.
//
// sacct prints text as users wrote it, so a job's name or comment may hold
// newlines and any delimiter. Therefore every query has a random delimiter of its
// own, and every field, the last one too, ends with it: a row is over after as
// many delimiters as there are columns, followed by a newline. Times are asked
// for in UTC and epoch seconds, numbers without conversion, rows with duplicates,
// so that requeued runs are there.
package sacct
