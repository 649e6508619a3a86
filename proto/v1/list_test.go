package v1_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestSplitList_ReadsWhatIsDocumented(t *testing.T) {
	for text, want := range map[string][]string{
		``:                {``},
		`oak`:             {`oak`},
		`oak,elm`:         {`oak`, `elm`},
		`oak\,elm`:        {`oak,elm`},
		`oak\\,elm`:       {`oak\`, `elm`},
		`oak\\\,elm`:      {`oak\,elm`},
		`DOMAIN\user`:     {`DOMAIN\user`},
		`\\server\share`:  {`\\server\share`},
		`a\`:              {`a\`},
		`,`:               {``, ``},
		`\,`:              {`,`},
		`a, b`:            {`a`, ` b`},
		`one\,two,three\`: {`one,two`, `three\`},
	} {
		if got := v1.SplitList(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got := v1.SplitList(`a\`, `b,c`); !slices.Equal(got, []string{`a\`, `b`, `c`}) {
		t.Errorf("two lists: %q", got)
	}
	if got := v1.SplitList(); got != nil {
		t.Errorf("no list: %q", got)
	}
}

func TestLists_RoundTrip(t *testing.T) {
	text := rapid.OneOf(rapid.StringOfN(rapid.SampledFrom([]rune{',', '\\', '\\', 'a', ' ', '=', '"'}), 0, 12, -1), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		list := text.Draw(t, "list")
		values := v1.SplitList(list)
		if again := v1.JoinList(values...); again != list {
			t.Fatalf("%q is read as %q and written as %q", list, values, again)
		}
		if !strings.Contains(list, ",") && !slices.Equal(values, []string{list}) {
			t.Fatalf("%q without a comma is %q", list, values)
		}
		given := rapid.SliceOfN(text, 1, 5).Draw(t, "values")
		if got := v1.SplitList(v1.JoinList(given...)); !slices.Equal(got, given) {
			t.Fatalf("%q is written as %q and read as %q", given, v1.JoinList(given...), got)
		}
	})
}
