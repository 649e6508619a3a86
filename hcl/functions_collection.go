package hcl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// lengthFunction counts the elements of a collection, or the characters of a string.
func lengthFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowUnknown: true}},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			switch v := args[0]; {
			case v.Type() == cty.DynamicPseudoType:
				return cty.UnknownVal(cty.Number), nil
			case v.Type() == cty.String:
				return stdlib.Strlen(v)
			case v.Type().IsTupleType():
				return cty.NumberIntVal(int64(len(v.Type().TupleElementTypes()))), nil
			case v.Type().IsObjectType():
				return cty.NumberIntVal(int64(len(v.Type().AttributeTypes()))), nil
			case v.Type().IsCollectionType():
				return v.Length(), nil
			default:
				return cty.NilVal, fmt.Errorf("expected a string, a list or a map, not %s", friendlyName(v.Type()))
			}
		},
	})
}

// lookupFunction is name(map, text) and name(map, text, default), where the default may be
// null: the element whose key find returns. Without a default it is an error, missing,
// when there is none. Of a uniform map all elements are of one type.
func lookupFunction(name, missing string, uniform bool, find func(m cty.Value, text string) (string, bool)) function.Function {
	usage := fmt.Sprintf("%s(map, text) or %[1]s(map, text, default)", name)
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "map", Type: cty.DynamicPseudoType}, {Name: "text", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true},
		Type: func(args []cty.Value) (cty.Type, error) {
			m, fallback := args[0].Type(), args[2:]
			switch {
			case len(fallback) > 1:
				return cty.NilType, errors.New("expected " + usage)
			case m.IsMapType():
				return commonType(m.ElementType(), fallback)
			case !m.IsObjectType():
				return cty.NilType, function.NewArgErrorf(0, "expected a map, not %s", friendlyName(m))
			case uniform || !args[1].IsKnown():
				t, ok := elementType(m)
				if !ok && uniform {
					return cty.NilType, function.NewArgErrorf(0, "the elements are of different types")
				}
				return commonType(t, fallback)
			}
			if key, ok := find(args[0], args[1].AsString()); ok {
				return m.AttributeType(key), nil
			}
			if len(fallback) == 1 {
				return fallback[0].Type(), nil
			}
			return cty.DynamicPseudoType, nil
		},
		Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
			key, ok := find(args[0], args[1].AsString())
			switch {
			case ok && args[0].Type().IsObjectType():
				return convert.Convert(args[0].GetAttr(key), t)
			case ok:
				return convert.Convert(args[0].Index(cty.StringVal(key)), t)
			case len(args) == 3:
				return convert.Convert(args[2], t)
			}
			return cty.NilVal, fmt.Errorf(missing+"; a default may be given: %s(map, text, default)", clipText(args[1].AsString()), name)
		},
	})
}

// exactKey finds the key that is the text.
func exactKey(m cty.Value, text string) (string, bool) {
	if m.Type().IsObjectType() {
		return text, m.Type().HasAttribute(text)
	}
	return text, m.HasIndex(cty.StringVal(text)).True()
}

// longestPrefix finds the longest key that the text begins with.
func longestPrefix(m cty.Value, text string) (best string, ok bool) {
	try := func(key string) {
		if strings.HasPrefix(text, key) && len(key) >= len(best) {
			best, ok = key, true
		}
	}
	if m.Type().IsObjectType() {
		for key := range m.Type().AttributeTypes() {
			try(key)
		}
		return best, ok
	}
	for it := m.ElementIterator(); it.Next(); {
		key, _ := it.Element()
		try(key.AsString())
	}
	return best, ok
}

// elementType is what the elements of an object have in common, if they have anything.
func elementType(object cty.Type) (cty.Type, bool) {
	types := slices.Collect(maps.Values(object.AttributeTypes()))
	if u, _ := convert.Unify(types); u != cty.NilType {
		return u, true
	}
	return cty.DynamicPseudoType, len(types) == 0
}

func commonType(t cty.Type, fallback []cty.Value) (cty.Type, error) {
	if len(fallback) == 0 || fallback[0].Type() == cty.DynamicPseudoType {
		return t, nil
	}
	u, _ := convert.Unify([]cty.Type{t, fallback[0].Type()})
	if u == cty.NilType {
		return cty.NilType, function.NewArgErrorf(2, "the default is %s, the elements are %s", friendlyName(fallback[0].Type()), friendlyName(t))
	}
	return u, nil
}
