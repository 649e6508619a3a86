package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Completeness is what every answer of /v1/usage says of itself, read from its JSON.
type Completeness struct{ completeness }

// Limited reports whether the reader sees some of the records only.
func (c *Completeness) Limited() bool { return c.Complete.Limited }

// Remarks are sentences about what is not in the answer, and up to when it is
// complete.
func (c *Completeness) Remarks() []string {
	list := c.notes("")
	for i, note := range list {
		note = strings.TrimPrefix(note, ": ")
		first, size := utf8.DecodeRuneInString(note)
		list[i] = string(unicode.ToUpper(first)) + note[size:]
	}
	return list
}
