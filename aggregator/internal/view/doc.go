// Package view is how answers of /v1 are shown to people: the sentences about them and the
// words of their figures, each once for the terminal, the pages and the reports.
package view
