package cli

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestReplaceWord_PartOfAnotherName_IsNeverTouched(t *testing.T) {
	// Names as users and groups have them, of few letters, so that many contain each other.
	name := rapid.StringMatching(`[abé1_-](\.?[abé1_-]){0,4}`)
	between := rapid.StringMatching(`[ /=@,:;()'"~+\\\n]{1,2}|\. |/\.`)
	rapid.Check(t, func(t *rapid.T) {
		who := name.Draw(t, "name")
		text, want, has := "", "", false
		for range rapid.IntRange(0, 6).Draw(t, "words") {
			word := rapid.OneOf(name, rapid.Just(who), rapid.Map(name, func(s string) string { return s + who }), rapid.Map(name, func(s string) string { return who + "." + s })).Draw(t, "word")
			sep := between.Draw(t, "separator")
			text += word + sep
			if word == who {
				word, has = "X", true
			}
			want += word + sep
		}
		if got := replaceWord(text, who, "X"); got != want || hasWord(text, who) != has {
			t.Fatalf("%q without %q is %q, want %q", text, who, got, want)
		}
	})
}

func TestReplaceWord_TextsOfJobs_LoseTheName(t *testing.T) {
	for text, want := range map[string]string{
		"al": "X", "/home/al": "/home/X", "/home/al/run": "/home/X/run", "al@example.org": "X@example.org", "/DC=org/CN=al mueller": "/DC=org/CN=X mueller",
		"Job of al.": "Job of X.", "--user=al -n 3": "--user=X -n 3", "al,al;al": "X,X;X", "(al)": "(X)", "~al/.al": "~X/.X",
		"alpha": "alpha", "pal": "pal", "al.b": "al.b", "b.al": "b.al", "x-al": "x-al", "al_1": "al_1", "álal": "álal", "al\u0301": "al\u0301", "AL": "AL", "": "",
	} {
		if got := replaceWord(text, "al", "X"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := replaceWord("aXaXa", "aXa", "Y"); got != "aXaXa" {
		t.Error(got)
	}
	if got := replaceWord("by Erika M, erika@x.org", "Erika M", "Y"); got != "by Y, erika@x.org" {
		t.Error(got)
	}
}

func TestNamesInDirectory_EachPlaceOfAName_IsNamed(t *testing.T) {
	d := &v1.Directory{
		People:   []v1.Person{{ID: "al"}, {ID: "alpha", Groups: []string{"beta"}}},
		Projects: []v1.Project{{ID: "bell", Users: []string{"al"}, PI: "alpha"}, {ID: "beta", Groups: []string{"alpha"}}, {ID: "gamma"}},
	}
	for name, want := range map[string]string{
		"al": "a person, a user of project bell", "alpha": "a person, a group, the PI of project bell", "beta": "a group, a project", "gam": "",
	} {
		if got := strings.Join(namesInDirectory(d, name), ", "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
