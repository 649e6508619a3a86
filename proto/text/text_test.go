package text_test

import (
	"math"
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

func TestShortName_LongNames_StayDifferentAndWithinTheBound(t *testing.T) {
	long := strings.Repeat("ä", 200)
	for _, name := range []string{"", "short", strings.Repeat("x", 100), strings.Repeat("x", 101), long + "1", long + "2"} {
		got := text.ShortName(name, 100)
		if len(got) > 100 || !utf8.ValidString(got) || len(name) <= 100 && got != name {
			t.Errorf("%q becomes %q", name, got)
		}
	}
	if text.ShortName(long+"1", 100) == text.ShortName(long+"2", 100) {
		t.Error("two names became the same")
	}
}

func TestDigits_WholeNumbersOnly_AreRead(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "007": 7, "999999999999999999": 999999999999999999} {
		if n, ok := text.Digits(s); !ok || n != want {
			t.Errorf("%q is read as %d, %v", s, n, ok)
		}
	}
	for _, s := range []string{"", "-1", "+1", "1.0", " 1", "1000000000000000000", "٣"} {
		if n, ok := text.Digits(s); ok {
			t.Errorf("%q is read as %d", s, n)
		}
	}
}

func TestRoundToEven_Halves_GoToEvenNumbers(t *testing.T) {
	for f, want := range map[float64]int64{0.5: 0, 1.5: 2, -2.5: -2, 2.4999: 2} {
		if n, err := text.RoundToEven(f); err != nil || n != want {
			t.Errorf("%g is rounded to %d: %v", f, n, err)
		}
	}
	for _, f := range []float64{1 << 63, -(1 << 63), math.Inf(1), math.NaN()} {
		if _, err := text.RoundToEven(f); err == nil {
			t.Errorf("%g fits", f)
		}
	}
}
