// Package text bounds texts that come from outside, and suggests names for mistyped ones.
package text

import (
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
