package hcl

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// maxExponent bounds numbers that come from text: a little beyond float64.
// Without a bound "1e999999999" would take minutes to print.
const maxExponent = 1100

func isBounded(f *big.Float) bool {
	e := f.MantExp(nil)
	return !f.IsInf() && e <= maxExponent && e >= -maxExponent
}

func errUnbounded() error { return errors.New("a number is too large or too small") }

// toNumberFunction is tonumber(): text or number to number.
func toNumberFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true}},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if a := args[0]; a.Type() == cty.String && !a.IsNull() && len(a.AsString()) > maxDigits {
				return cty.NilVal, errUnbounded()
			}
			v, err := convert.Convert(args[0], cty.Number)
			if err != nil {
				return cty.NilVal, fmt.Errorf("expected a number, or text that reads as one, not %s", friendlyName(args[0].Type()))
			}
			if !v.IsNull() && v.IsKnown() && !isBounded(v.AsBigFloat()) {
				return cty.NilVal, errUnbounded()
			}
			return v, nil
		},
	})
}

// powFunction is pow(base, exponent) in float64, which bounds the result.
func powFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "base", Type: cty.Number}, {Name: "exponent", Type: cty.Number}},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			a, _ := args[0].AsBigFloat().Float64()
			b, _ := args[1].AsBigFloat().Float64()
			p := math.Pow(a, b)
			if math.IsNaN(p) || math.IsInf(p, 0) {
				return cty.NilVal, errors.New("the result is not a number")
			}
			return cty.NumberFloatVal(p), nil
		},
	})
}

// sumFunction is sum(list) of numbers; that of an empty list is 0.
func sumFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "numbers", Type: cty.List(cty.Number)}},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			total := cty.Zero
			for it := args[0].ElementIterator(); it.Next(); {
				_, v := it.Element()
				switch {
				case !v.IsKnown():
					return cty.UnknownVal(cty.Number), nil
				case v.IsNull():
					return cty.NilVal, errors.New("the list holds null")
				}
				total = total.Add(v)
			}
			return total, nil
		},
	})
}

// roundFunction is round(number), half to even as the IEEE rounds. Numbers too large to
// have a fraction, and infinity, stay as they are.
func roundFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "number", Type: cty.Number}},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			n := args[0].AsBigFloat()
			if n.IsInf() || n.MantExp(nil) > int(n.Prec()) {
				return args[0], nil
			}
			if n.MantExp(nil) < -maxExponent {
				return cty.Zero, nil
			}
			exact, _ := n.Rat(nil)
			return cty.NumberVal(new(big.Float).SetInt(roundHalfEven(exact))), nil
		},
	})
}
