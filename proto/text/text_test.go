package text_test

import (
	"testing"
	"unicode/utf8"

	"github.com/bursar-accounting/bursar/proto/text"
)

func TestClip_CutsBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		in   string
		most int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"aäb", 2, "a…"}, {"aäb", 3, "aä…"},
		{"a\xffb", 9, "a\uFFFDb"}, {"\U0001F600", 2, "…"}, {"ab", 0, "…"},
	} {
		if got := text.Clip(c.in, c.most); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.most, got, c.want)
		}
	}
}

func FuzzCut_ReturnsValidText(f *testing.F) {
	f.Add("aäb\xff\x80\x80\x80\x80\x80", 7)
	f.Fuzz(func(t *testing.T, s string, most int) {
		if most < 0 {
			return
		}
		got := text.Cut(s, most)
		if !utf8.ValidString(got) || utf8.ValidString(s) && (len(got) > most || got != s[:len(got)]) {
			t.Errorf("%q of %q", got, s)
		}
	})
}
