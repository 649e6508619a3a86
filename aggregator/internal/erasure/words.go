package erasure

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// HasWord reports whether the name stands in the text as a word.
func HasWord(text, name string) bool { return ReplaceWord(text, name, "") != text }

// ReplaceWord returns the text with the replacement wherever the name stands as a word, so that
// no name of which it is a part is touched: letters, digits, marks, _ and - beside it belong to
// another name, and so does a point that stands between it and one of them.
func ReplaceWord(text, name, by string) string {
	var out strings.Builder
	from, at := 0, 0
	for {
		i := strings.Index(text[at:], name)
		if i < 0 || name == "" {
			return out.String() + text[from:]
		}
		i += at
		end := i + len(name)
		if continuesName(text[:i], utf8.DecodeLastRuneInString, strings.TrimSuffix) || continuesName(text[end:], utf8.DecodeRuneInString, strings.TrimPrefix) {
			_, size := utf8.DecodeRuneInString(text[i:])
			at = i + size
			continue
		}
		out.WriteString(text[from:i] + by)
		from, at = end, end
	}
}

// continuesName reports whether the text beside a name belongs to the same name. next is the
// rune beside it, and trim takes a point away from that side.
func continuesName(text string, next func(string) (rune, int), trim func(text, point string) string) bool {
	r, size := next(trim(text, "."))
	return size > 0 && (r == '_' || r == '-' || r == utf8.RuneError || unicode.In(r, unicode.L, unicode.M, unicode.N))
}
