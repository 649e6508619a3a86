package classad

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParse_EveryTypeOfValue_IsRead(t *testing.T) {
	str := func(s string) Value { return Value{Kind: String, Text: s} }
	for text, want := range map[string]Value{
		`42`:                   {Kind: Int, Int: 42},
		`-1`:                   {Kind: Int, Int: -1},
		`3.0`:                  {Kind: Real, Real: 3},
		`5.75877880000000E+07`: {Kind: Real, Real: 57587788},
		`true`:                 {Kind: Bool, Int: 1},
		`FALSE`:                {Kind: Bool},
		`undefined`:            {},
		`UNDEFINED`:            {},
		`error`:                {Kind: Error},
		`"plain"`:              str("plain"),
		`""`:                   str(""),
		`"a, \"b\" * [;] = x"`: str(`a, "b" * [;] = x`),
		`"C:\temp\new"`:        str(`C:\temp\new`), // the old syntax has no other escape
		`"ends with \"`:        str(`ends with \`),
		"\"two\nlines\"":       str("two\nlines"),
		`"a" + "b"`:            {Kind: Expression, Text: `"a" + "b"`},
		`DiskUsage`:            {Kind: Expression, Text: "DiskUsage"},
		`((A + 1023) / 1024)`:  {Kind: Expression, Text: `((A + 1023) / 1024)`},
		`1 + 2`:                {Kind: Expression, Text: `1 + 2`},
		`{ 1, "x\ty", { } }`:   {Kind: List, List: []Value{{Kind: Int, Int: 1}, str("x\ty"), {Kind: List}}},
		`[  ]`:                 {Kind: Nested},
		`[ How = "A;B"; When = 7; In = [ X = {1,2} ]; E = f(a, b) ]`: {Kind: Nested, Ad: []Member{
			{"How", str("A;B")}, {"When", Value{Kind: Int, Int: 7}},
			{"In", Value{Kind: Nested, Ad: []Member{{"X", Value{Kind: List, List: []Value{{Kind: Int, Int: 1}, {Kind: Int, Int: 2}}}}}}},
			{"E", Value{Kind: Expression, Text: "f(a, b)"}},
		}},
		`[ broken`:            {Kind: Expression, Text: "[ broken"},
		`{ 1, "x }`:           {Kind: Expression, Text: `{ 1, "x }`},
		`[ "no" ]`:            {Kind: Expression, Text: `[ "no" ]`},
		`9999999999999999999`: {Kind: Real, Real: 1e19},
		`1.2.3`:               {Kind: Expression, Text: "1.2.3"},
		``:                    {Kind: Expression},
	} {
		if d := cmp.Diff(want, Parse(text)); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func names(ad *Ad) (out []string) {
	for _, a := range ad.Attributes {
		out = append(out, a.Name)
	}
	return out
}

func TestRead_OddAds_AreReadOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
		cut  string
		err  string
	}{
		"without spaces":      {"A=1\nB =\"x\"\n", []string{"A", "B"}, "", ""},
		"blank and comments":  {"\n# what\nA = 1\n\n", []string{"A"}, "", ""},
		"a newline in a text": {"A = \"one\ntwo \\\" three\nfour\"\nB = 2\n", []string{"A", "B"}, "", ""},
		"a text without end":  {"A = 1\nB = \"open\nC = 3\n", nil, "", "B: the string has no end"},
		"no attribute":        {"A = 1\nnonsense\n", nil, "", `"nonsense" is not an attribute`},
		"zero bytes":          {"A = 1\n\x00\x00\n", nil, "", "is not an attribute"},
		"nothing":             {"\n", nil, "", ErrEmpty.Error()},
		"an ad behind the beginning of another": {
			"Args = \"1\"\nClusterId = 1\nOwner = \"a\"\nAcct = 1\nClusterId = 2\nOwner = \"b\"\n", []string{"Acct", "ClusterId", "Owner"},
			"Args = \"1\"\nClusterId = 1\nOwner = \"a\"\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ad Ad
			err := ad.Read(c.text)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v", err)
				}
				return
			}
			if d := cmp.Diff(c.want, names(&ad)); err != nil || d != "" || ad.Cut != c.cut {
				t.Errorf("%v, cut %q\n%s", err, ad.Cut, d)
			}
		})
	}
}

// The two forms of one ad have the same values.
func TestReadJSON_RealAds_AreThoseOfTheHistory(t *testing.T) {
	const id = "GlobalJobId"
	history := map[string]map[string]Value{}
	text, err := os.ReadFile("../../testdata/history-23.9.6")
	if err != nil {
		t.Fatal(err)
	}
	var ad Ad
	values := func(ad *Ad) map[string]Value {
		out := map[string]Value{}
		for _, a := range ad.Attributes {
			out[a.Name] = a.Value()
		}
		return out
	}
	for text := range strings.SplitSeq(string(text), "\n*** Offset") {
		_, text, _ = strings.Cut("\n"+text, "\nA")
		if ad.Read("A"+text) == nil {
			v := values(&ad)
			history[v[id].Text] = v
		}
	}
	f, err := os.Open("../../testdata/condor_history-23.9.6.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	err = ReadJSON(f, func(ad *Ad, _ []byte, err error) error {
		got := values(ad)
		want := history[got[id].Text]
		// An operator is written in another way there.
		opts := cmp.Options{cmpopts.IgnoreMapEntries(func(_ string, v Value) bool { return v.Kind == Expression })}
		if d := cmp.Diff(want, got, opts); err != nil || want == nil || d != "" {
			t.Errorf("%s: %v\n%s", got[id].Text, err, d)
		}
		n++
		return nil
	})
	if err != nil || n != 10 {
		t.Errorf("%d ads, %v", n, err)
	}
}

func TestReadJSON_WhatIsNotWhole_IsAnError(t *testing.T) {
	ads := func(text string) (n, bad int, err error) {
		err = ReadJSON(strings.NewReader(text), func(_ *Ad, _ []byte, err error) error {
			if n++; err != nil {
				bad++
			}
			return nil
		})
		return n, bad, err
	}
	for _, text := range []string{"", "[\n]\n", `[{"A":1},{"B":"/Expr(x)/"}]`} {
		if n, bad, err := ads(text); err != nil || bad > 0 || n != strings.Count(text, "{") {
			t.Errorf("%s: %d ads, %d bad, %v", text, n, bad, err)
		}
	}
	for _, text := range []string{"{}", "nothing", `[{"A":1}`, `[{"A":1},{"B`} {
		if _, _, err := ads(text); err == nil {
			t.Errorf("%s is right", text)
		}
	}
	if n, bad, err := ads(`[{"A":1},7,{},{"B":[1,"x\n",{"C":null}]}]`); n != 4 || bad != 2 || err != nil {
		t.Errorf("%d ads, %d bad, %v", n, bad, err)
	}
	stop := errors.New("stop")
	if err := ReadJSON(strings.NewReader(`[{"A":1}]`), func(*Ad, []byte, error) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestReadEntry_Banners_AreUnderstood(t *testing.T) {
	for text, want := range map[string]Entry{
		"A = 1\n*** Offset = 3099 ClusterId = 7 ProcId = 0 Owner = \"bob\" CompletionDate = 1": {Text: "A = 1\n", Offset: 3099},
		"A = 1\n*** EPOCH ClusterId=5 ProcId=0 RunInstanceId=1 Owner=\"bob\" CurrentTime=17":   {Text: "A = 1\n", Kind: "EPOCH", Offset: -1},
		"*** SPAWN ClusterId=5 ProcId=0": {Kind: "SPAWN", Offset: -1},
		"A = 1\nB = 2":                   {Text: "A = 1\nB = 2", Offset: -1, Missing: true},
		"*** ":                           {Offset: -1},
	} {
		if d := cmp.Diff(want, ReadEntry(text), cmpopts.IgnoreUnexported(Entry{})); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("A = 1\nB = \"x\ny\"\nClusterId = 1\nClusterId = 2\n*** Offset = 1")
	f.Add("A = [ x = { 1, \"\\101\" }; y = f(1) ]\n")
	f.Fuzz(func(t *testing.T, text string) {
		e := ReadEntry(text)
		_ = e.Field("RunInstanceId")
		var ad Ad
		_ = ad.Read(e.Text)
		for i := range ad.Attributes {
			_ = ad.Attributes[i].Value()
		}
	})
}

func FuzzReadJSON(f *testing.F) {
	f.Add(`[{"A":"/Expr(x)/","B":[1,{"C":"\u0000"}],"D":null}]`)
	f.Fuzz(func(t *testing.T, text string) {
		_ = ReadJSON(strings.NewReader(text), func(ad *Ad, _ []byte, _ error) error {
			for i := range ad.Attributes {
				_ = ad.Attributes[i].Value()
			}
			return nil
		})
	})
}
