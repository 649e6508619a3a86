package hcl

import (
	"errors"
	"fmt"
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
				return cty.NilVal, fmt.Errorf("expected a string, a list or a map, not %s", friendly(v.Type()))
			}
		},
	})
}

// lookupFunction is lookup(map, key) and lookup(map, key, default), where the
// default may be null. Without a default a key that is not there is an error.
func lookupFunction() function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "map", Type: cty.DynamicPseudoType}, {Name: "key", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true},
		Type:     lookupType,
		Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
			key := args[1].AsString()
			if v, ok := elementOf(args[0], key); ok {
				return convert.Convert(v, t)
			}
			if len(args) == 3 {
				return convert.Convert(args[2], t)
			}
			return cty.NilVal, fmt.Errorf("the map has no key %q; a default may be given: lookup(map, key, default)", clip(key))
		},
	})
}

// lookupPrefixFunction is lookupprefix(map, text) and lookupprefix(map, text, default):
// the element with the longest key that the text begins with.
func lookupPrefixFunction() function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "map", Type: cty.DynamicPseudoType}, {Name: "text", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true},
		Type: func(args []cty.Value) (cty.Type, error) {
			m := args[0].Type()
			switch {
			case len(args) > 3:
				return cty.NilType, errors.New("expected lookupprefix(map, text) or lookupprefix(map, text, default)")
			case m.IsMapType():
				return common(m.ElementType(), args[2:])
			case m.IsObjectType() && args[0].IsWhollyKnown():
				return elementType(m, args[2:])
			case m.IsObjectType():
				return cty.DynamicPseudoType, nil
			}
			return cty.NilType, function.NewArgErrorf(0, "expected a map, not %s", friendly(m))
		},
		Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
			text, best := args[1].AsString(), ""
			found := cty.NilVal
			for it := args[0].ElementIterator(); it.Next(); {
				k, v := it.Element()
				if key := k.AsString(); strings.HasPrefix(text, key) && (found == cty.NilVal || len(key) > len(best)) {
					best, found = key, v
				}
			}
			switch {
			case found != cty.NilVal:
				return convert.Convert(found, t)
			case len(args) == 3:
				return convert.Convert(args[2], t)
			}
			return cty.NilVal, fmt.Errorf("%q begins with no key of the map; a default may be given: lookupprefix(map, text, default)", clip(text))
		},
	})
}

// elementType is what the elements of an object and the default have in common.
func elementType(object cty.Type, fallback []cty.Value) (cty.Type, error) {
	types := []cty.Type{}
	for _, t := range object.AttributeTypes() {
		types = append(types, t)
	}
	if len(types) == 0 {
		return cty.DynamicPseudoType, nil
	}
	u, _ := convert.Unify(types)
	if u == cty.NilType {
		return cty.NilType, function.NewArgErrorf(0, "the elements are of different types")
	}
	return common(u, fallback)
}

func elementOf(m cty.Value, key string) (cty.Value, bool) {
	if m.Type().IsObjectType() {
		if !m.Type().HasAttribute(key) {
			return cty.NilVal, false
		}
		return m.GetAttr(key), true
	}
	if k := cty.StringVal(key); m.HasIndex(k).True() {
		return m.Index(k), true
	}
	return cty.NilVal, false
}

// lookupType is the type of the element, or what it and the default have in common.
func lookupType(args []cty.Value) (cty.Type, error) {
	if len(args) > 3 {
		return cty.NilType, errors.New("expected lookup(map, key) or lookup(map, key, default)")
	}
	m := args[0].Type()
	switch {
	case m.IsMapType():
		return common(m.ElementType(), args[2:])
	case !m.IsObjectType():
		return cty.NilType, function.NewArgErrorf(0, "expected a map, not %s", friendly(m))
	case !args[1].IsKnown():
		return cty.DynamicPseudoType, nil
	}
	if key := args[1].AsString(); m.HasAttribute(key) {
		return m.AttributeType(key), nil
	}
	if len(args) == 3 {
		return args[2].Type(), nil
	}
	return cty.DynamicPseudoType, nil
}

func common(t cty.Type, fallback []cty.Value) (cty.Type, error) {
	if len(fallback) == 0 || fallback[0].Type() == cty.DynamicPseudoType {
		return t, nil
	}
	u, _ := convert.Unify([]cty.Type{t, fallback[0].Type()})
	if u == cty.NilType {
		return cty.NilType, function.NewArgErrorf(2, "the default is %s, the elements are %s", friendly(fallback[0].Type()), friendly(t))
	}
	return u, nil
}
