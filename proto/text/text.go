// Package text bounds and reads texts that come from outside, and suggests names for mistyped ones.
package text

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Cut returns the beginning of s, of at most that many bytes, without half a character,
// and with U+FFFD in place of what is not UTF-8, which may make it longer.
func Cut(s string, most int) string {
	if len(s) > most {
		end := most
		for end > max(0, most-utf8.UTFMax) && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// Clip is Cut with "…" behind what was cut.
func Clip(s string, most int) string {
	if len(s) <= most {
		return Cut(s, most)
	}
	return Cut(s, most) + "…"
}

// ShortName is a name of at most so many bytes, which must be more than 40: a longer one ends in
// a digest of all of it, so that different names stay different.
func ShortName(name string, most int) string {
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.ToValidUTF8(name[:most-40], "") + "~" + hex.EncodeToString(sum[:16])
}

// Digits reads a whole number of at most 18 digits, without a sign; false for all else.
func Digits(s string) (n int64, ok bool) {
	if s == "" || len(s) > 18 {
		return 0, false
	}
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, true
}

// RoundToEven rounds a number half to even; an error where it does not fit.
func RoundToEven(f float64) (int64, error) {
	if f = math.RoundToEven(f); math.IsNaN(f) || math.Abs(f) >= 1<<63 {
		return 0, fmt.Errorf("%g is not a number of at most 2⁶³", f)
	}
	return int64(f), nil
}
