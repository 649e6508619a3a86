package hcl

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// maxDigits bounds the text of a number; a float64 never needs as many.
const maxDigits = 400

// jsonDecodeFunction is jsondecode(), in one pass, which refuses numbers beyond
// any use. Its type is known only with its value.
func jsonDecodeFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return decodeJSON(args[0].AsString())
		},
	})
}

func decodeJSON(text string) (cty.Value, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var plain any
	if err := d.Decode(&plain); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return cty.NilVal, errors.New("not JSON: " + err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return cty.NilVal, errors.New("not JSON: there is more after the value")
	}
	return jsonValue(plain)
}

func jsonValue(plain any) (cty.Value, error) {
	switch x := plain.(type) {
	case string:
		return cty.StringVal(x), nil
	case bool:
		return cty.BoolVal(x), nil
	case json.Number:
		return numberOf(x.String())
	case []any:
		return jsonList(x)
	case map[string]any:
		return jsonObject(x)
	}
	return cty.NullVal(cty.DynamicPseudoType), nil
}

func jsonList(list []any) (cty.Value, error) {
	out := make([]cty.Value, len(list))
	for i, x := range list {
		v, err := jsonValue(x)
		if err != nil {
			return cty.NilVal, err
		}
		out[i] = v
	}
	return cty.TupleVal(out), nil
}

func jsonObject(object map[string]any) (cty.Value, error) {
	out := make(map[string]cty.Value, len(object))
	for k, x := range object {
		v, err := jsonValue(x)
		if err != nil {
			return cty.NilVal, err
		}
		out[k] = v
	}
	return cty.ObjectVal(out), nil
}

// numberOf reads a number of bounded length and size.
func numberOf(text string) (cty.Value, error) {
	if len(text) > maxDigits {
		return cty.NilVal, errUnbounded()
	}
	v, err := cty.ParseNumberVal(text)
	if err != nil {
		return cty.NilVal, errors.New("expected a number")
	}
	if !bounded(v.AsBigFloat()) {
		return cty.NilVal, errUnbounded()
	}
	return v, nil
}
