package getent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesAreTheFirstFieldOfGECOS(t *testing.T) {
	got, err := ReadNames(strings.NewReader("ann:x:1:1:A. Bell,,,:/home/ann:/bin/sh\nbob:x:2:2::/:/bin/sh\nshort:x\n"))
	if d := cmp.Diff(map[string]string{"ann": "A. Bell"}, got); d != "" || err != nil {
		t.Error(d, err)
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
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = ReadNames(strings.NewReader(text))
		_, _ = ReadGroups(strings.NewReader(text))
	})
}
