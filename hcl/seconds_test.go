package hcl

import (
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestParseSeconds_AnyClock_IsWhatExactNumbersGive compares with a reader that counts in
// exact fractions.
func TestParseSeconds_AnyClock_IsWhatExactNumbersGive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.SampledFrom([]string{"", "0", "5", "23", "24", "59", "60", "07", "100", "99998", "99999", "123456", "106751", "106752", "99999999999999999999", "x", "+1", "1.5"})
		point := rapid.SampledFrom([]string{"", ".", ".1", ".123456789", ".1234567894", ".000", ".x"})
		s := field.Draw(t, "a") + rapid.SampledFrom([]string{":", "-", ""}).Draw(t, "mark") + field.Draw(t, "b")
		for range rapid.IntRange(0, 3).Draw(t, "more") {
			s += ":" + field.Draw(t, "c")
		}
		s += point.Draw(t, "point")
		got, err := ParseSeconds(s)
		exact, wantErr := secondsOf(s)
		var want time.Duration
		if wantErr == nil {
			want, wantErr = durationOf(exact, s)
		}
		if got != want || (err == nil) != (wantErr == nil) {
			t.Fatalf("%q is %v, %v; want %v, %v", s, got, err, want, wantErr)
		}
	})
}

func secondsOf(s string) (*big.Rat, error) {
	if !strings.ContainsAny(s, "-:") || strings.HasPrefix(s, "-") {
		if value, ok := parseDecimal(s); ok {
			return value.Mul(value, big.NewRat(int64(time.Second), 1)), nil
		}
		return sumUnits(s)
	}
	days, clock, dashed := strings.Cut(s, "-")
	if !dashed {
		days, clock = "", s
	}
	fields := strings.Split(clock, ":")
	scales, ok := clockScales(len(fields), dashed)
	if !ok {
		return nil, errors.New("no clock")
	}
	total := new(big.Rat)
	if dashed {
		fields, scales = append([]string{days}, fields...), append([]time.Duration{24 * time.Hour}, scales...)
	}
	for i, f := range fields {
		value, ok := parseDecimal(f)
		whole := ok && !strings.Contains(f, ".")
		if !ok || !whole && scales[i] != time.Second || i > 0 && !below(value, scales[i]) {
			return nil, errors.New("no clock")
		}
		total.Add(total, value.Mul(value, big.NewRat(int64(scales[i]), 1)))
	}
	return total, nil
}

// clockScales are the units of n fields with colons: they end in seconds, or
// begin with hours when days stand before them.
func clockScales(n int, days bool) ([]time.Duration, bool) {
	all := []time.Duration{time.Hour, time.Minute, time.Second}
	switch {
	case days && n >= 1 && n <= 3:
		return all[:n], true
	case !days && n >= 2 && n <= 3:
		return all[3-n:], true
	}
	return nil, false
}

func below(v *big.Rat, scale time.Duration) bool {
	limit := int64(60)
	if scale == time.Hour {
		limit = 24
	}
	return v.Cmp(big.NewRat(limit, 1)) < 0
}
