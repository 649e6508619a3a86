package hcl

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// maxDigits bounds the text of a number; a float64 never needs as many.
const maxDigits = 400

// decodeJSON reads JSON in one pass and refuses numbers beyond any use.
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

func jsonValue(plain any) (_ cty.Value, err error) {
	switch x := plain.(type) {
	case string:
		return cty.StringVal(x), nil
	case bool:
		return cty.BoolVal(x), nil
	case json.Number:
		return numberOf(x.String())
	case []any:
		out := make([]cty.Value, len(x))
		for i := range x {
			if out[i], err = jsonValue(x[i]); err != nil {
				return cty.NilVal, err
			}
		}
		return cty.TupleVal(out), nil
	case map[string]any:
		out := make(map[string]cty.Value, len(x))
		for k := range x {
			if out[k], err = jsonValue(x[k]); err != nil {
				return cty.NilVal, err
			}
		}
		return cty.ObjectVal(out), nil
	}
	return cty.NullVal(cty.DynamicPseudoType), nil
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
	if !isBounded(v.AsBigFloat()) {
		return cty.NilVal, errUnbounded()
	}
	return v, nil
}
