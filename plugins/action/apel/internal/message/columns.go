package message

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// What the receiver's database takes and tells apart, by schemas/server.sql of APEL
// 2.5.0: a value that does not fit its column undoes the whole message, and a row
// replaces the one that has the same primary key. Texts compare without case, as the
// default collations of MySQL and MariaDB do, and none, null and nothing are one.

// maxText is how many characters a column holds that is not in textColumn.
const maxText = 255

// textColumn is how many characters the column of a field holds.
func textColumn(name string) int {
	switch name {
	case "Queue", "InfrastructureDescription":
		return 100
	case "Infrastructure", "InfrastructureType":
		return 20
	}
	return maxText
}

// checkColumns says which numbers a signed integer of 32 bits cannot hold.
func checkColumns(list ...number) error {
	for _, n := range list {
		if n.value > math.MaxInt32 {
			return fmt.Errorf("%s is above the %d that the receiver takes", n.name, math.MaxInt32)
		}
	}
	return nil
}

// maxLevel is the largest service level, a DECIMAL(10,3).
const maxLevel = 9_999_999.999

// keyOf are the fields of the primary key. Of summaries, the benchmark is one more.
func keyOf(kind Kind) []string {
	switch kind {
	case Syncs:
		return []string{"Site", "SubmitHost", "Month", "Year"}
	case Jobs03, Jobs04:
		return []string{"Site", "LocalJobId", "EndTime"}
	}
	return []string{"Site", "Month", "Year", "GlobalUserName", "VO", "VOGroup", "VORole", "SubmitHost", "Infrastructure", "NodeCount", "Processors"}
}

// Fold returns what the receiver compares of a text: equal for texts that it takes for
// one.
func Fold(text string) string {
	if isNone(text) {
		return ""
	}
	return strings.ToLower(text)
}

// Key returns what the receiver tells a record of that kind from others by: records with
// one Key replace each other. It is not for people; Name is.
func Key(kind Kind, record []byte) string {
	var out strings.Builder
	for _, name := range keyOf(kind) {
		out.WriteString(Fold(valueOf(record, name)))
		out.WriteByte('\n')
	}
	if kind == Summaries {
		out.WriteString(keptBenchmark(valueOf(record, "NormalisedWallDuration")))
	}
	return out.String()
}

// Name returns the lines of a record that its Key is made of, joined.
func Name(kind Kind, record []byte) string {
	names := keyOf(kind)
	var out []string
	for line := range strings.Lines(string(record)) {
		if name, _, ok := strings.Cut(line, ": "); ok && slices.Contains(names, name) {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return strings.Join(out, ", ")
}

// valueOf is the value of a field, and "" where the record has none.
func valueOf(record []byte, name string) string {
	for line := range strings.Lines(string(record)) {
		if found, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); ok && found == name {
			return value
		}
	}
	return ""
}

// keptBenchmark is the benchmark that the receiver keeps of several, the others it drops.
func keptBenchmark(amounts string) string {
	for _, b := range benchmarkNames() {
		if strings.Contains(amounts, b+": ") {
			return b
		}
	}
	return ""
}
