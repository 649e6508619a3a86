// Package view is how answers of /v1 are shown to people: the sentences about them, the words of
// their figures, the table of usage and the lists, each once for the terminal, the pages and the
// reports.
package view
