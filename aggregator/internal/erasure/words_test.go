package erasure

import (
	"testing"

	"pgregory.net/rapid"
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
		if got := ReplaceWord(text, who, "X"); got != want || HasWord(text, who) != has {
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
		if got := ReplaceWord(text, "al", "X"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := ReplaceWord("aXaXa", "aXa", "Y"); got != "aXaXa" {
		t.Error(got)
	}
	if got := ReplaceWord("by Erika M, erika@x.org", "Erika M", "Y"); got != "by Y, erika@x.org" {
		t.Error(got)
	}
}
