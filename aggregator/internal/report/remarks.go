package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Remarks are sentences about what is not in an answer, and up to when it is complete.
func Remarks(c *v1.Complete) []string {
	list := notes(c, "")
	for i, note := range list {
		note = strings.TrimPrefix(note, ": ")
		first, size := utf8.DecodeRuneInString(note)
		list[i] = string(unicode.ToUpper(first)) + note[size:]
	}
	return list
}

// unknownNote says that it is unknown how complete the records of a source are, for one of
// the reasons that /v1 gives. Days is how many days were not counted.
func unknownNote(source, reason string, days int64) string {
	switch reason {
	case "no_source":
		return "completeness unknown: no source has reported yet."
	case "no_data":
		return fmt.Sprintf("completeness unknown: nothing received from %s yet.", source)
	case "no_watermark":
		if source == "pushed" {
			return "completeness unknown: clients that push records do not report up to when they are complete."
		}
		return fmt.Sprintf("completeness unknown: %s does not report up to when it is complete.", source)
	case "not_counted":
		return fmt.Sprintf("completeness not checked: %s of %s not compared with the scheduler; see bursar completeness.", counted(days, "day", "days"), source)
	}
	return fmt.Sprintf("completeness of %s unknown: %s.", source, reason)
}
