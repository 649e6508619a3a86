package getent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesAreTheFirstFieldOfGECOS(t *testing.T) {
	got, err := ReadNames(strings.NewReader("alice:x:1:1:Alice Adams,Room 7,,:/home/alice:/bin/sh\nbob:x:2:2::/home/bob:/bin/sh\n" +
		"carol:x:3:3: , :/:/bin/sh\nno passwd\ndave:*:4:4:Dave Döring:/home/dave:/bin/sh\n"))
	if d := cmp.Diff(map[string]string{"alice": "Alice Adams", "dave": "Dave Döring"}, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if _, err := ReadNames(strings.NewReader("alice:x:1:1:Alice")); err == nil {
		t.Error("output that was cut is no error")
	}
}

func TestGroupsAreThoseThatNameTheUser(t *testing.T) {
	got, err := ReadGroups(strings.NewReader("phys:x:1:ann,bob\nchem:x:2:\nastro:x:3: bob\nodd\n"))
	if d := cmp.Diff(map[string][]string{"ann": {"phys"}, "bob": {"phys", "astro"}}, got); d != "" || err != nil {
		t.Error(d, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("phys:x:1:ann,bob\nann:x:1:1:A. Bell,,,:/home/ann:/bin/sh\n")
	f.Fuzz(func(t *testing.T, text string) {
		names, _ := ReadNames(strings.NewReader(text))
		for user, name := range names {
			if strings.TrimSpace(name) == "" || strings.Contains(name, ",") {
				t.Errorf("%q: %q", user, name)
			}
		}
		_, _ = ReadGroups(strings.NewReader(text))
	})
}
