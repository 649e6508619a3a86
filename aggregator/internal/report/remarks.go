package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Remarks are sentences about what is not in an answer, and up to when it is complete, with
// times by the clock of a zone.
func Remarks(c *v1.Complete, zone string) []string {
	list := notes(c, "", zone)
	for i, note := range list {
		list[i] = withFirst(unicode.ToUpper, strings.TrimPrefix(note, ": "))
	}
	return list
}

// withFirst changes the first letter of a sentence.
func withFirst(change func(rune) rune, text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(change(first)) + text[size:]
}

// KnownNote says of which part of an answer's window records are known, of all sources and of
// single ones; "" where that is all of it.
func KnownNote(a *v1.UsageAbout) string {
	sentences := []string{knownPart(a), laterPart(a)}
	if a.Comparable != nil && !*a.Comparable {
		sentences = slices.Insert(sentences, 0, "Sums are not compared: records are not known for all of both periods.")
	}
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), " ")
}

// laterPart names the sources that have all their runs from later in the known part on.
func laterPart(a *v1.UsageAbout) string {
	if a.Known == nil || len(a.Known.Later) == 0 {
		return ""
	}
	var list []string
	for _, s := range a.Known.Later {
		list = append(list, s.Source+" from "+s.From.In(zoneNamed(a.Zone)).Format(MinuteLayout)+" on")
	}
	return "All runs are known of " + strings.Join(list, ", of ") + "; figures of the time before may lack some."
}

// zoneNamed is the zone of a name, or UTC where that is not known here.
func zoneNamed(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

func knownPart(a *v1.UsageAbout) string {
	if a.Known == nil {
		return "No records are known for this period: its usage is unknown, not 0."
	}
	when := func(t v1.Time) string { return t.In(zoneNamed(a.Zone)).Format(MinuteLayout) }
	from, to := a.Known.From.After(a.Window.From.Time), a.Known.To.Before(a.Window.To.Time)
	span := ""
	switch {
	case from && to:
		span = "from " + when(a.Known.From) + " to " + when(a.Known.To)
	case from:
		span = "from " + when(a.Known.From) + " on"
	case to:
		return "The period goes on: averages, utilization and comparisons are of the time up to " + when(a.Known.To) + " " + a.Zone + "."
	default:
		return ""
	}
	return "Records are known " + span + " " + a.Zone + "; the rest of the period is unknown, not 0, and does not count in averages, utilization and comparisons."
}

// IsPartial reports whether a bucket has figures and is not a whole one.
func IsPartial(a *v1.Usage, bucket int) bool {
	if bucket >= len(a.Partial) || !a.Partial[bucket] {
		return false
	}
	for i := range a.Measures {
		for at := bucket; at < len(a.Measures[i].Values); at += len(a.Partial) {
			if a.Measures[i].Values[at] != nil {
				return true
			}
		}
	}
	return false
}

// PartialLabel is the label of a bucket, marked where it is not a whole one.
func PartialLabel(a *v1.Usage, bucket int) string {
	if IsPartial(a, bucket) {
		return a.Labels[bucket] + partial
	}
	return a.Labels[bucket]
}

// partial ends the label of a bucket that is not a whole one.
const partial = " (partial)"

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
