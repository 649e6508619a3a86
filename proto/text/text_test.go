package text_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

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

func TestSuggest_FirstWordsOfOneName_FindIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Names of words that are far from each other, since each has a letter of its own.
		var names []string
		for i := range rapid.IntRange(1, 5).Draw(t, "names") {
			var words []string
			for range rapid.IntRange(2, 4).Draw(t, "words") {
				words = append(words, strings.Repeat(string(rune('a'+i)), rapid.IntRange(3, 9).Draw(t, "length")))
			}
			names = append(names, strings.Join(words, rapid.SampledFrom([]string{"_", "-"}).Draw(t, "separator")))
		}
		names = rapid.Permutation(names).Draw(t, "order")
		wanted := rapid.SampledFrom(names).Draw(t, "wanted")
		words := strings.FieldsFunc(wanted, func(r rune) bool { return r == '_' || r == '-' })
		typed := strings.Join(words[:rapid.IntRange(1, len(words)-1).Draw(t, "typed")], "_")
		if got := text.Suggest(strings.ToUpper(typed), names); got != wanted {
			t.Errorf("%q of %q: %q, want %q", typed, names, got, wanted)
		}
		twin := typed + "_qqqqqqqqqqqqqqq"
		if got := text.Suggest(typed, append(names, twin)); got != "" && got != wanted {
			t.Errorf("%q of %q and %q: %q", typed, names, twin, got)
		} else if len(wanted) > len(typed)+3 && got != "" {
			t.Errorf("%q may be %q and %q: %q", typed, wanted, twin, got)
		}
	})
}

func TestSuggest_Names(t *testing.T) {
	keys := []string{"group_id", "user_id", "site_id", "state", "time_limit", "project", "pi"}
	for name, want := range map[string]string{
		"group": "group_id", "grup": "group_id", "usr": "user_id", "time": "time_limit", "projekt": "project", "GROUP-ID": "group_id",
		"site": "site_id", "": "", "colour": "",
	} {
		if got := text.Suggest(name, keys); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for _, list := range [][]string{{"group_id", "group_name"}, {"group_name", "group_id", "user_id"}} {
		if got := text.Suggest("group", list); slices.Contains(list, got) {
			t.Errorf("group of %q: %q", list, got)
		}
	}
}
