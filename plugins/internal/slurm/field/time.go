package field

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Time reads a time: seconds since the epoch, or ISO 8601 in UTC. The zero time
// means that there is none: Unknown, None, N/A, 0 or nothing.
func Time(s string) (time.Time, error) {
	switch s {
	case "", "Unknown", "None", "N/A", "0", "INVALID":
		return time.Time{}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n < 0 || n > maxSecond {
			return time.Time{}, fmt.Errorf("%q is not a time of this age", s)
		}
		return time.Unix(n, 0).UTC(), nil
	}
	t, err := time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(s, "Z"))
	if err != nil || t.Unix() < 0 {
		return time.Time{}, fmt.Errorf("%q is not a time", s)
	}
	return t, nil
}

// maxSecond is the last second of the year 9999.
const maxSecond = 253402300799

// Micros is a duration in microseconds. Slurm sums CPU time over a job's cores,
// which time.Duration cannot hold for a large job.
type Micros int64

// Seconds returns the whole seconds of m, rounded half to even.
func (m Micros) Seconds() int64 { return divideHalfEven(int64(m), 1_000_000) }

// Float returns m in seconds.
func (m Micros) Float() float64 { return float64(m) / 1e6 }

// Duration reads a duration written as [days-]hours:minutes:seconds[.fraction]
// or minutes:seconds[.fraction]. Known is false where Slurm has no number:
// UNLIMITED, Partition_Limit, INVALID, Unknown or nothing.
func Duration(s string) (m Micros, known bool, err error) {
	switch strings.ToUpper(s) {
	case "", "UNLIMITED", "PARTITION_LIMIT", "INVALID", "UNKNOWN", "NONE", "N/A":
		return 0, false, nil
	}
	total, ok := parseClock(s)
	if !ok {
		return 0, false, fmt.Errorf("%q is not a duration", s)
	}
	return total, true, nil
}

func parseClock(s string) (Micros, bool) {
	var days uint64
	if d, rest, found := strings.Cut(s, "-"); found {
		n, ok := parseDigits(d, maxDays)
		if !ok || strings.Count(rest, ":") != 2 {
			return 0, false
		}
		days, s = n, rest
	}
	s, fraction, dotted := strings.Cut(s, ".")
	micros, ok := fractionOf(fraction, dotted)
	parts := strings.Split(s, ":")
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return 0, false
	}
	seconds := days * 24
	if len(parts) == 2 {
		seconds *= 60
	}
	for i, p := range parts {
		n, ok := parseDigits(p, maxHours)
		if !ok {
			return 0, false
		}
		if i > 0 || len(parts) == 2 {
			seconds *= 60
		}
		seconds += n
	}
	if seconds > math.MaxInt64/2_000_000 {
		return 0, false
	}
	return Micros(seconds*1_000_000 + micros), true
}

// Limits that keep every sum far from overflow: a million cores for 200 years.
const (
	maxDays  = 100_000_000
	maxHours = 2_400_000_000
)

func parseDigits(s string, limit uint64) (uint64, bool) {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n <= limit
}

// fractionOf reads the digits after the point as microseconds; further digits
// are cut.
func fractionOf(s string, dotted bool) (uint64, bool) {
	if !dotted {
		return 0, true
	}
	if s == "" || len(s) > 18 {
		return 0, false
	}
	if _, ok := parseDigits(s, math.MaxUint64); !ok {
		return 0, false
	}
	return parseDigits((s + "000000")[:6], math.MaxUint64)
}

// divideHalfEven returns n/d rounded half to even, for n ≥ 0 and d > 0.
func divideHalfEven(n, d int64) int64 {
	q, r := n/d, n%d
	if r > d-r || (r == d-r && q%2 == 1) {
		q++
	}
	return q
}
