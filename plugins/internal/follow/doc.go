// Package follow reads files of lines that grow and rotate, for sources that read
// a scheduler's log. A [Walk] gives the lines of all files of a rotation in the
// order in which they were written, from where the last one ended, whatever the
// rotation did meanwhile: it renamed the file, copied and truncated it, or
// compressed what it had put aside. A [Pass] sends what is read in batches.
//
// DESIGN.md says how a file is known again and what can be promised.
package follow
