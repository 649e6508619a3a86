package record

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Time is an instant in microseconds since 1970-01-01T00:00:00Z. [None] means
// that there is no such instant (a run that goes on has no stop).
type Time int64

// None is the absent Time.
const None Time = math.MinInt64

// MinTime and MaxTime bound the instants that a record can carry: years 0 to
// 9999, which RFC 3339 can write.
const (
	MinTime Time = -62167219200_000000
	MaxTime Time = 253402300799_999999
)

// Minute and the others are spans of [Time].
const (
	Second Time = 1_000_000
	Minute      = 60 * Second
	Hour        = 60 * Minute
	Day         = 24 * Hour
)

// Present reports whether t is an instant.
func (t Time) Present() bool { return t != None }

// Std returns t in UTC; the zero time.Time when t is [None].
func (t Time) Std() time.Time {
	if t == None {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// String returns t as RFC 3339 in UTC, with the fraction in 0, 3 or 6 digits as
// AUDITOR prints it, and "none" for [None].
func (t Time) String() string {
	if t == None {
		return "none"
	}
	return string(t.Append(nil))
}

// Append appends the text of [Time.String] for a present t.
func (t Time) Append(b []byte) []byte {
	b = t.Std().AppendFormat(b, "2006-01-02T15:04:05")
	micro := int64(t) % int64(Second)
	if micro < 0 {
		micro += int64(Second)
	}
	switch {
	case micro == 0:
	case micro%1000 == 0:
		b = appendFraction(b, micro/1000, 3)
	default:
		b = appendFraction(b, micro, 6)
	}
	return append(b, 'Z')
}

func appendFraction(b []byte, v int64, digits int) []byte {
	b = append(b, '.')
	for i := digits - 1; i >= 0; i-- {
		d := v
		for range i {
			d /= 10
		}
		b = append(b, byte('0'+d%10))
	}
	return b
}

// FromStd returns t cut to microseconds. The zero time.Time gives [None].
func FromStd(t time.Time) Time {
	if t.IsZero() {
		return None
	}
	return Time(t.UnixMicro())
}

// ErrTime is wrapped by the errors of [ParseTime].
var ErrTime = errors.New("not an RFC 3339 time")

// ParseTime reads an RFC 3339 time as AUDITOR does: any UTC offset, which is
// mandatory, and 'T', 't' or a space before the hour. Digits beyond the
// microsecond are cut off. The error wraps [ErrTime].
func ParseTime(s string) (Time, error) {
	text := s
	if len(s) > 10 && (s[10] == ' ' || s[10] == 't') {
		text = s[:10] + "T" + s[11:]
	}
	if strings.HasSuffix(text, "z") {
		text = text[:len(text)-1] + "Z"
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return None, fmt.Errorf("%q is %w: want for example 2026-11-21T08:15:00Z", s, ErrTime)
	}
	v := Time(t.UnixMicro())
	if v < MinTime || v > MaxTime {
		return None, fmt.Errorf("%q is %w between the years 0 and 9999", s, ErrTime)
	}
	return v, nil
}
