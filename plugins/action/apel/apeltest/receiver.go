package apeltest

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Receiver keeps rows as APEL's database does: a row that comes again replaces the
// one with the same key. The zero Receiver is empty.
type Receiver struct {
	rows map[string]Record
}

// keys are the fields that a row is known by.
func keys(header string) []string {
	switch {
	case strings.HasPrefix(header, "APEL-sync"):
		return words("Site SubmitHost Month Year")
	case strings.HasPrefix(header, "APEL-individual"):
		return words("Site SubmitHost LocalJobId EndTime")
	}
	return words("Site Month Year GlobalUserName VO VOGroup VORole SubmitHost Infrastructure InfrastructureDescription NodeCount Processors")
}

// Take takes a message at that time.
func (r *Receiver) Take(text string, now time.Time) error {
	m, err := Parse(text, now)
	if err != nil {
		return err
	}
	if r.rows == nil {
		r.rows = map[string]Record{}
	}
	for _, row := range m.Records {
		parts := []string{m.Header}
		for _, k := range keys(m.Header) {
			parts = append(parts, row.Values[k])
		}
		r.rows[strings.Join(parts, "\x00")] = row
	}
	return nil
}

// Rows are those of messages whose header begins so.
func (r *Receiver) Rows(header string) []Record {
	var out []Record
	for _, k := range slices.Sorted(maps.Keys(r.rows)) {
		if strings.HasPrefix(k, header) {
			out = append(out, r.rows[k])
		}
	}
	return out
}

// Sum adds up a field of those rows.
func (r *Receiver) Sum(header, field string) int64 {
	var n int64
	for _, row := range r.Rows(header) {
		n += row.Int(field)
	}
	return n
}
