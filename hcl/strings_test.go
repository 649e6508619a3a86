package hcl

import (
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestStringsAreOneOrAList(t *testing.T) {
	for _, c := range []struct {
		in   cty.Value
		want Strings
		err  string
	}{
		{cty.StringVal("a"), Strings{"a"}, ""},
		{cty.NumberIntVal(7), Strings{"7"}, ""},
		{cty.TupleVal([]cty.Value{cty.StringVal("a"), cty.True}), Strings{"a", "true"}, ""},
		{cty.ListVal([]cty.Value{cty.StringVal("a").Mark(sensitive{})}), Strings{"a"}, ""},
		{cty.EmptyTupleVal, Strings{}, ""},
		{cty.NullVal(cty.List(cty.String)), nil, "expected a string, not a list, or a list of them"},
		{cty.EmptyObjectVal, nil, "expected a string, not a map, or a list of them"},
		{cty.TupleVal([]cty.Value{cty.NullVal(cty.DynamicPseudoType)}), nil, "expected a string, not null"},
	} {
		var got Strings
		err := got.DecodeHCL(c.in, Range{})
		if text := ""; err != nil {
			if text = err.Error(); text != c.err {
				t.Errorf("%#v: %s", c.in, text)
			}
		} else if c.err != "" || !slices.Equal(got, c.want) {
			t.Errorf("%#v: %q", c.in, got)
		}
	}
}
