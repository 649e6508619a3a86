package accounting

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	spelling "github.com/bursar-accounting/bursar/proto/text"
)

// parseInteger is [spelling.Digits] with an error.
func parseInteger(s string) (int64, error) {
	n, ok := spelling.Digits(s)
	if !ok {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return n, nil
}

// parseDecimal reads a number with or without a fraction. Amounts are never negative, nor more
// than an integer holds: those have run over.
func parseDecimal(s string) (float64, error) {
	if n, ok := spelling.Digits(s); ok {
		return float64(n), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	if f < 0 || f >= 1<<63 {
		return 0, fmt.Errorf("%q is out of range", s)
	}
	return f, nil
}

// parseRounded reads a number that is written with or without a fraction and rounds it
// half to even.
func parseRounded(s string) (int64, error) {
	if n, ok := spelling.Digits(s); ok {
		return n, nil
	}
	f, err := parseDecimal(s)
	if err != nil {
		return 0, err
	}
	return spelling.RoundToEven(f)
}

// Bytes reads an amount of memory as complex(5) has it: a number with one of k, m,
// g, t for powers of 1000, or K, M, G, T for powers of 1024. Ok is false for
// INFINITY and for what is no amount.
func Bytes(s string) (n int64, ok bool) {
	unit := 1.0
	if s == "" {
		return 0, false
	}
	if i := strings.IndexByte("kmgtp", s[len(s)-1]); i >= 0 {
		unit = math.Pow(1000, float64(i+1))
	} else if i := strings.IndexByte("KMGTP", s[len(s)-1]); i >= 0 {
		unit = math.Pow(1024, float64(i+1))
	}
	if unit > 1 {
		s = s[:len(s)-1]
	}
	f, err := parseDecimal(s)
	if err != nil || f < 0 {
		return 0, false
	}
	n, err = spelling.RoundToEven(f * unit)
	return n, err == nil
}

// Seconds reads a time as complex(5) has it: seconds, or hours:minutes:seconds of
// which the first may be left out. Ok is false for INFINITY and for what is none.
func Seconds(s string) (n int64, ok bool) {
	if strings.Count(s, ":") > 2 {
		return 0, false
	}
	for part := range strings.SplitSeq(s, ":") {
		if part == "" {
			part = "0"
		}
		k, ok := spelling.Digits(part)
		if !ok || len(part) > 12 {
			return 0, false
		}
		n = n*60 + k
	}
	return n, s != ""
}

// Requests are what a job asked for: the resources of -l in a category such as
// "-l h_rt=600,h_vmem=2G -pe smp 2", without those that it could do without.
func Requests(category string) map[string]string {
	var out map[string]string
	soft, list := false, false
	for word := range strings.FieldsSeq(category) {
		switch {
		case word == "-soft":
			soft = true
		case word == "-hard":
			soft = false
		case list && !soft:
			for item := range strings.SplitSeq(word, ",") {
				name, value, ok := strings.Cut(item, "=")
				if !ok {
					value = "TRUE"
				}
				if name == "" {
					continue
				}
				if out == nil {
					out = map[string]string{}
				}
				out[name] = value
			}
		}
		list = word == "-l"
	}
	return out
}
