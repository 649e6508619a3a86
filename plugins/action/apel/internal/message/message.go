package message

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is a kind of message: its header line.
type Kind string

// The kinds.
const (
	Summaries Kind = "APEL-normalised-summary-message: v0.4"
	Syncs     Kind = "APEL-sync-message: v0.1"
	Jobs03    Kind = "APEL-individual-job-message: v0.3"
	Jobs04    Kind = "APEL-individual-job-message: v0.4"
)

// benchmarkNames are the benchmarks that the receiver knows, as they are written.
func benchmarkNames() []string { return []string{"HEPscore23", "hepspec", "si2k"} }

// Benchmark returns the benchmark of that name, which may be in any case, as it is
// written in messages.
func Benchmark(name string) (string, error) {
	for _, b := range benchmarkNames() {
		if strings.EqualFold(b, name) {
			return b, nil
		}
	}
	return "", fmt.Errorf("%q is no benchmark that APEL knows; expected one of %s", name, strings.Join(benchmarkNames(), ", "))
}

// end closes a record.
const end = "%%\n"

// Pack puts records of one kind into messages of at most limit bytes and most
// records each; a record that is longer than that alone is a message of its own.
// No records make no message.
func Pack(kind Kind, records [][]byte, limit, most int) [][]byte {
	var out [][]byte
	count := 0
	for _, r := range records {
		last := len(out) - 1
		if last < 0 || count >= most || len(out[last])+len(r) > limit {
			out = append(out, []byte(kind+"\n"))
			last, count = len(out)-1, 0
		}
		out[last] = append(out[last], r...)
		count++
	}
	return out
}

// Halve cuts a message into two with about half of the records each. It is false
// for a message of one record.
func Halve(text []byte) (first, second []byte, ok bool) {
	header, records := Records(text)
	if len(records) < 2 {
		return nil, nil, false
	}
	middle := len(records) / 2
	join := func(part [][]byte) []byte {
		return slices.Concat(header, bytes.Join(part, nil))
	}
	return join(records[:middle]), join(records[middle:]), true
}

// Records takes a message apart: its first line, and the records as their Record has
// written them.
func Records(text []byte) (header []byte, records [][]byte) {
	i := bytes.IndexByte(text, '\n') + 1
	records = bytes.SplitAfter(text[i:], []byte("\n"+end))
	return text[:i], slices.DeleteFunc(records, func(r []byte) bool { return len(r) == 0 })
}

// Count returns how many records a message has.
func Count(text []byte) int { return bytes.Count(text, []byte("\n"+end)) }

// record is a record that is being written.
type record struct{ text []byte }

func (r *record) addLine(name, value string) {
	r.text = append(append(append(append(r.text, name...), ": "...), value...), '\n')
}

// named is a text with the name of its field.
type named struct{ name, value string }

// addTexts writes texts; those that are empty are left out.
func (r *record) addTexts(list []named) {
	for _, t := range list {
		if t.value != "" {
			r.addLine(t.name, t.value)
		}
	}
}

func (r *record) addNumber(name string, n int64) { r.addLine(name, strconv.FormatInt(n, 10)) }

// addPositive writes a number and leaves 0 out.
func (r *record) addPositive(name string, n int64) {
	if n > 0 {
		r.addNumber(name, n)
	}
}

func (r *record) endRecord() []byte { return append(r.text, end...) }

// CheckText says why a value cannot stand in a message: it must be printable ASCII
// on one line, without "%%", which ends records, and not too long. Empty is fine.
func CheckText(name, value string) error {
	for i, c := range value {
		if c < ' ' || c > '~' {
			return fmt.Errorf("%s is %q, and messages are printable ASCII only (at byte %d)", name, value, i)
		}
	}
	switch {
	case strings.Contains(value, "%%"):
		return fmt.Errorf("%s is %q, and %%%% would end the record", name, value)
	case strings.TrimSpace(value) != value:
		return fmt.Errorf("%s is %q, and the receiver cuts blanks off", name, value)
	case len(value) > textColumn(name):
		return fmt.Errorf("%s has more than the %d characters that the receiver takes", name, textColumn(name))
	}
	return nil
}

// isNone reports whether the receiver takes a value for none.
func isNone(value string) bool {
	switch strings.ToLower(value) {
	case "", "none", "null":
		return true
	}
	return false
}

func checkTexts(list ...named) error {
	var errs []error
	for _, t := range list {
		errs = append(errs, CheckText(t.name, t.value))
	}
	return errors.Join(errs...)
}

func needText(name, value string) error {
	if isNone(value) {
		return fmt.Errorf("%s is missing", name)
	}
	return nil
}

// number is a named value of which the receiver wants that it is not negative.
type number struct {
	name  string
	value int64
}

func checkNumbers(list ...number) error {
	for _, n := range list {
		if n.value < 0 {
			return fmt.Errorf("%s is negative: %d", n.name, n.value)
		}
	}
	return nil
}

// checkMonth says why no message can be about a month.
func checkMonth(year int, month time.Month, now time.Time) error {
	if month < time.January || month > time.December || year < 1970 || year > 9999 {
		return fmt.Errorf("there is no month %d-%02d", year, month)
	}
	if start := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC); start.After(now) {
		return fmt.Errorf("the month %d-%02d is in the future", year, month)
	}
	return nil
}
