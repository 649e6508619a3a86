package record

import (
	"errors"
	"fmt"
	"math"
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

// Append appends the text of [Time.String] for a present t within [MinTime] and
// [MaxTime].
func (t Time) Append(b []byte) []byte {
	days, rest := floorDivide(int64(t), int64(Day))
	seconds, micro := floorDivide(rest, int64(Second))
	year, month, day := civilDate(days)
	b = appendDigits(b, year, 4)
	b = appendDigits(append(b, '-'), month, 2)
	b = appendDigits(append(b, '-'), day, 2)
	b = appendDigits(append(b, 'T'), seconds/3600, 2)
	b = appendDigits(append(b, ':'), seconds/60%60, 2)
	b = appendDigits(append(b, ':'), seconds%60, 2)
	switch {
	case micro == 0:
	case micro%1000 == 0:
		b = appendDigits(append(b, '.'), micro/1000, 3)
	default:
		b = appendDigits(append(b, '.'), micro, 6)
	}
	return append(b, 'Z')
}

func appendDigits(b []byte, v int64, digits int) []byte {
	b = append(b, "000000"[:digits]...)
	for i := len(b) - 1; digits > 0; digits-- {
		b[i] = byte('0' + v%10)
		v /= 10
		i--
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
// mandatory and whose colon is not, and 'T', 't' or a space before the hour.
// Digits beyond the microsecond are cut off, and a leap second is the first
// second of the next minute. The error wraps [ErrTime].
func ParseTime(s string) (Time, error) {
	t, ok := parseTime(s)
	if !ok {
		return None, fmt.Errorf("%q is %w: want for example 2026-11-21T08:15:00Z", excerptOf(s), ErrTime)
	}
	if t < MinTime || t > MaxTime {
		return None, fmt.Errorf("%q is %w between the years 0 and 9999", s, ErrTime)
	}
	return t, nil
}

// excerptOf is the start of a text that is too long for a message.
func excerptOf(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
