package hcl_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/hcl"
)

func TestAListIsOneValueOrSeveral(t *testing.T) {
	type target struct {
		Names hcl.Strings            `hcl:"names,optional"`
		Paths hcl.List[hcl.Absolute] `hcl:"paths,optional"`
	}
	for src, want := range map[string]string{
		`names = "a"`:               "[a]",
		`names = 7`:                 "[7]",
		`names = ["a", true]`:       "[a true]",
		`names = split(",", "a,b")`: "[a b]",
		`names = []`:                "[]",
		`names = null`:              "[]",
		`names = {}`:                "x.hcl:1:9: invalid value for \"names\"; expected a string, not a map",
		`names = ["a", null]`:       "x.hcl:1:15: invalid value for \"names\"; a value is needed here, not null",
		`paths = "/a"`:              "[/a]",
		`paths = ["/a", "b"]`:       `x.hcl:1:16: invalid value for "paths"; "b" is not an absolute path`,
		`paths = "b"`:               `x.hcl:1:9: invalid value for "paths"; "b" is not an absolute path`,
	} {
		var got target
		file, diags := hcl.Parse("x.hcl", []byte(src+"\n"))
		diags.Extend(hcl.Decode(file, &got, file.Context()))
		var all []string
		for _, p := range got.Paths {
			all = append(all, string(p))
		}
		if text := "[" + strings.Join(slices.Concat(got.Names, all), " ") + "]"; diags.Error() != want && (len(diags) > 0 || text != want) {
			t.Errorf("%s: %s %v", src, text, diags.Error())
		}
	}
}
