package field

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Per says what an amount of memory is requested for.
type Per uint8

// Slurm before 21.08 marks requests per node with n and per core with c.
const (
	PerJob Per = iota
	PerNode
	PerCore
)

// Memory reads an amount of memory in bytes: digits with an optional fraction,
// a unit K, M, G, T, P or E of 1024 and, before Slurm 21.08, n (per node) or c
// (per core). Fractions of a byte are rounded half to even. Known is false
// where there is no value.
func Memory(s string) (bytes int64, per Per, known bool, err error) {
	number := s
	switch {
	case strings.HasSuffix(s, "n"):
		number, per = s[:len(s)-1], PerNode
	case strings.HasSuffix(s, "c"):
		number, per = s[:len(s)-1], PerCore
	}
	bytes, known, err = Size(number)
	if err != nil || (number == "" && s != "") {
		return 0, PerJob, false, fmt.Errorf("%q is not an amount of memory", s)
	}
	return bytes, per, known, nil
}

// MB returns bytes in units of 2^20, rounded half to even.
func MB(bytes int64) int64 { return divideHalfEven(bytes, 1<<20) }

// Size reads a number of bytes or pieces with an optional unit of 1024. Known is
// false for nothing, INVALID and the numbers by which Slurm says "no value".
func Size(s string) (n int64, known bool, err error) {
	switch s {
	case "", "INVALID", "Unknown", "None", "N/A", "18446744073709551614", "18446744073709551615", "4294967294", "4294967295":
		return 0, false, nil
	}
	number, unit := s, int64(1)
	if i := strings.IndexByte("KMGTPE", s[len(s)-1]); i >= 0 {
		number, unit = s[:len(s)-1], 1<<(10*(i+1))
	}
	whole, fraction, dotted := strings.Cut(number, ".")
	w, ok := parseDigits(whole, math.MaxInt64)
	if !ok || w > uint64(math.MaxInt64/unit)-1 {
		return 0, false, fmt.Errorf("%q is not a number", s)
	}
	n = int64(w) * unit
	if !dotted {
		return n, true, nil
	}
	if _, ok := parseDigits(fraction, math.MaxUint64); !ok {
		return 0, false, fmt.Errorf("%q is not a number", s)
	}
	f, err := strconv.ParseFloat("0."+fraction, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%q is not a number", s)
	}
	return n + int64(math.RoundToEven(f*float64(unit))), true, nil
}

// Count reads a whole number. Known is false where there is none, and for the numbers by
// which Slurm says "no value".
func Count(s string) (n int64, known bool, err error) {
	switch s {
	case "", "Unknown", "UNLIMITED", "Partition_Limit", "INVALID", "None", "N/A", "18446744073709551614", "18446744073709551615", "4294967294", "4294967295":
		return 0, false, nil
	}
	u, ok := parseDigits(s, math.MaxInt64)
	if !ok {
		return 0, false, fmt.Errorf("%q is not a whole number", s)
	}
	return int64(u), true, nil
}
