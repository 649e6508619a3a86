package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Time is an instant, in UTC with microseconds; the zero Time is unknown, null in JSON.
type Time struct{ time.Time }

// Stamp is the Time of an instant, of none the zero Time.
func Stamp(t record.Time) Time { return Time{t.Std()} }

// MarshalJSON writes RFC 3339, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	at := record.FromStd(t.Time)
	if at < record.MinTime || at > record.MaxTime {
		return nil, fmt.Errorf("time %v: the year must be between 0 and 9999", t.Time)
	}
	return append(at.Append([]byte{'"'}), '"'), nil
}

// UnmarshalJSON reads what [Time.MarshalJSON] writes. An error wraps [record.ErrTime].
func (t *Time) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("null")) {
		*t = Time{}
		return nil
	}
	word, err := textOf(text)
	if err != nil {
		return err
	}
	at, err := record.ParseTime(word)
	*t = Stamp(at)
	return err
}

// textOf decodes a string of JSON.
func textOf(text []byte) (word string, err error) {
	if n := len(text); n > 1 && text[0] == '"' && text[n-1] == '"' && bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : n-1]), nil // as it is
	}
	err = json.Unmarshal(text, &word)
	return word, err
}

// String is t as in JSON, "" when it is unknown.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return record.FromStd(t.Time).String()
}

// Text is a text that may be missing: "" is null in JSON.
type Text string

// MarshalJSON writes a string, or null.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(t))
}

// Outcome says for people how the effects of a run stand, such as "3 done, 1 unknown".
func (r *ActionRun) Outcome() string {
	switch {
	case r.Ended.IsZero():
		return "running"
	case r.Failure != "":
		return "not planned: " + string(r.Failure)
	}
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{{r.Done, "done"}, {r.Rejected, "rejected"}, {r.Unknown, "unknown"}, {r.Skipped, "skipped"}, {r.Superseded, "superseded"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing to do")
	}
	if r.Partial {
		parts = append(parts, "partial")
	}
	return strings.Join(parts, ", ")
}

// First is the first value of a key; "" where there is none.
func (m Meta) First(key string) string {
	if len(m[key]) == 0 {
		return ""
	}
	return m[key][0]
}

// Find returns the measure of a name, which belongs to the answer; nil where the answer does
// not have it, such as a component that no record has.
func (u *Usage) Find(name string) *Measure {
	i := slices.IndexFunc(u.Measures, func(m Measure) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &u.Measures[i]
}
