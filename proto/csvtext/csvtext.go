// Package csvtext keeps spreadsheets from taking texts of tables for formulas.
package csvtext

import "strconv"

// Harmless returns a text of a cell that no spreadsheet takes for a formula: one that
// begins like a formula gets a quote before it.
func Harmless(s string) string {
	if s == "" {
		return s
	}
	switch s[0] {
	case '=', '+', '-', '@', '\t', '\r':
		return "'" + s
	}
	return s
}

// Cell is Harmless for a cell that may be a number, which stays as it is.
func Cell(s string) string {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return Harmless(s)
}
