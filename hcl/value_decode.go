package hcl

import (
	"encoding"
	"fmt"
	"reflect"
	"time"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/gocty"
)

// DecodeExpression evaluates an expression into what target points to: any
// type that a field of an attribute may have. Null is an error, except for a
// pointer. The diagnostics carry the place of the expression, or of the element
// of a list or map that is wrong.
func DecodeExpression(expr Expression, target any, ctx *EvalContext) Diagnostics {
	v := reflect.ValueOf(target)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(fmt.Sprintf("hcl: the target is %T, not a pointer", target))
	}
	d := valueDecoder{ctx: ctx}
	return d.decodeExpression(expr, v.Elem())
}

// valueDecoder decodes one attribute.
type valueDecoder struct {
	ctx      *EvalContext
	name     string // of the attribute; may be empty
	optional bool   // null keeps what the field has
	secret   bool   // env() or file() may have a share in the value
	null     *bool  // set when the attribute is null
}

func (d valueDecoder) failAt(r Range, format string, args ...any) Diagnostics {
	summary := "invalid value"
	if d.name != "" {
		summary = fmt.Sprintf("invalid value for %q", d.name)
	}
	return Diagnostics{Errorf(r, summary, format, args...)}
}

// decodeExpression decodes expr; lists and maps that are written out are decoded
// element by element, so that each error has the place of its element.
func (d valueDecoder) decodeExpression(expr Expression, field reflect.Value) Diagnostics {
	if field.Type() == exprType {
		field.Set(reflect.ValueOf(expr))
		return nil
	}
	if !decodesItself(field) {
		switch e := expr.(type) {
		case *hclsyntax.TupleConsExpr:
			if field.Kind() == reflect.Slice {
				return d.decodeTuple(e, field)
			}
		case *hclsyntax.ObjectConsExpr:
			if isMap(field) {
				return d.decodeObject(e, field)
			}
		}
	}
	v, diags := evaluateExpression(expr, d.ctx)
	if diags.HasErrors() {
		return diags
	}
	d.secret = mayHoldSecret(expr, d.ctx)
	diags.Extend(d.decodeValue(v, expr.Range(), field))
	return diags
}

func isMap(field reflect.Value) bool {
	return field.Kind() == reflect.Map && field.Type().Key().Kind() == reflect.String
}

// decodesItself says whether a type reads itself.
func decodesItself(field reflect.Value) bool {
	p := reflect.New(field.Type()).Interface()
	switch p.(type) {
	case ValueDecoder, encoding.TextUnmarshaler, *cty.Value, *time.Duration:
		return true
	}
	return false
}

func (d valueDecoder) decodeTuple(e *hclsyntax.TupleConsExpr, field reflect.Value) Diagnostics {
	var diags Diagnostics
	d.optional = false
	out := reflect.MakeSlice(field.Type(), len(e.Exprs), len(e.Exprs))
	for i, x := range e.Exprs {
		diags.Extend(d.decodeExpression(x, out.Index(i)))
	}
	field.Set(out)
	return diags
}

func (d valueDecoder) decodeObject(e *hclsyntax.ObjectConsExpr, field reflect.Value) Diagnostics {
	var diags Diagnostics
	d.optional = false
	out := reflect.MakeMap(field.Type())
	first := map[string]Range{}
	for _, item := range e.Items {
		key, more := objectKey(item.KeyExpr, d.ctx, first)
		diags.Extend(more)
		elem := reflect.New(field.Type().Elem()).Elem()
		diags.Extend(d.decodeExpression(item.ValueExpr, elem))
		if !more.HasErrors() {
			out.SetMapIndex(reflect.ValueOf(key).Convert(field.Type().Key()), elem)
		}
	}
	field.Set(out)
	return diags
}

// objectKey evaluates a key of a map; a key that is in first already is an
// error that names both places.
func objectKey(expr Expression, ctx *EvalContext, first map[string]Range) (string, Diagnostics) {
	v, diags := evaluateExpression(expr, ctx)
	if diags.HasErrors() {
		return "", diags
	}
	if v.IsNull() || !v.IsKnown() {
		diags.Add(Errorf(expr.Range(), "invalid key", "a key must be a string"))
		return "", diags
	}
	key, err := stringOf(v)
	if err != nil {
		diags.Add(Errorf(expr.Range(), "invalid key", "%v", err))
		return "", diags
	}
	if old, ok := first[key]; ok {
		shown := clipText(key)
		if mayHoldSecret(expr, ctx) {
			shown = masked
		}
		diags.Add(setTwice("key", shown, expr.Range(), old))
	}
	first[key] = expr.Range()
	return key, diags
}

// decodeValue decodes v, which is written at r.
func (d valueDecoder) decodeValue(v cty.Value, r Range, field reflect.Value) Diagnostics {
	if field.Type() == exprType {
		field.Set(reflect.ValueOf(hcl2.StaticExpr(v, r)))
		return nil
	}
	bare, marks := v.Unmark()
	if bare.IsNull() {
		return d.decodeNull(r, field)
	}
	if !bare.IsWhollyKnown() {
		return d.failAt(r, "the value is not known here")
	}
	switch target := field.Addr().Interface().(type) {
	case ValueDecoder:
		return d.reportFailure(v, r, target.DecodeHCL(v, r))
	case *cty.Value:
		*target = v
		return nil
	case *time.Duration:
		var length Duration
		err := length.DecodeHCL(v, r)
		*target = length.Duration
		return d.reportFailure(v, r, err)
	case encoding.TextUnmarshaler:
		return d.decodeText(v, r, target)
	}
	switch {
	case field.Kind() == reflect.Pointer:
		elem := reflect.New(field.Type().Elem())
		diags := d.decodeValue(v, r, elem.Elem())
		field.Set(elem)
		return diags
	case field.Kind() == reflect.Slice:
		return d.decodeList(bare, marks, r, field)
	case isMap(field):
		return d.decodeMap(bare, marks, r, field)
	}
	return d.decodePlain(bare, r, field)
}

func (d valueDecoder) decodeNull(r Range, field reflect.Value) Diagnostics {
	switch target := field.Addr().Interface().(type) {
	case *cty.Value:
		*target = cty.NullVal(cty.DynamicPseudoType)
		return nil
	}
	if field.Kind() == reflect.Pointer || d.optional {
		if d.null != nil {
			*d.null = true
		}
		return nil
	}
	return d.failAt(r, "a value is needed here, not null")
}

// reportFailure reports what the reader of v says, which may quote v.
func (d valueDecoder) reportFailure(v cty.Value, r Range, err error) Diagnostics {
	if err == nil {
		return nil
	}
	if plain, _ := v.Unmark(); d.secret && !(plain.Type() == cty.String && plain.AsString() == "") {
		return d.failAt(r, "%s", unseen)
	}
	return d.failAt(r, "%v", err)
}

func (d valueDecoder) decodeText(v cty.Value, r Range, target encoding.TextUnmarshaler) Diagnostics {
	s, err := stringOf(v)
	if err != nil {
		return d.reportFailure(v, r, err)
	}
	return d.reportFailure(v, r, target.UnmarshalText([]byte(s)))
}

func (d valueDecoder) decodeList(v cty.Value, marks cty.ValueMarks, r Range, field reflect.Value) Diagnostics {
	t := v.Type()
	if !t.IsListType() && !t.IsSetType() && !t.IsTupleType() {
		if _, ok := reflect.TypeAssert[interface{ orOne() }](field); ok {
			one := reflect.MakeSlice(field.Type(), 1, 1)
			field.Set(one)
			return d.decodeValue(v.WithMarks(marks), r, one.Index(0))
		}
		return d.failAt(r, "expected a list, not %s; did you mean [ … ]?", friendlyName(t))
	}
	d.optional = false
	var diags Diagnostics
	out := reflect.MakeSlice(field.Type(), 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		_, x := it.Element()
		elem := reflect.New(field.Type().Elem()).Elem()
		diags.Extend(d.decodeValue(x.WithMarks(marks), r, elem))
		out = reflect.Append(out, elem)
	}
	field.Set(out)
	return diags
}

func (d valueDecoder) decodeMap(v cty.Value, marks cty.ValueMarks, r Range, field reflect.Value) Diagnostics {
	t := v.Type()
	if !t.IsMapType() && !t.IsObjectType() {
		return d.failAt(r, "expected a map, not %s; did you mean { … }?", friendlyName(t))
	}
	d.optional = false
	var diags Diagnostics
	out := reflect.MakeMap(field.Type())
	for it := v.ElementIterator(); it.Next(); {
		k, x := it.Element()
		k, _ = k.Unmark()
		elem := reflect.New(field.Type().Elem()).Elem()
		diags.Extend(d.decodeValue(x.WithMarks(marks), r, elem))
		out.SetMapIndex(reflect.ValueOf(k.AsString()).Convert(field.Type().Key()), elem)
	}
	field.Set(out)
	return diags
}

// decodePlain decodes strings, booleans and numbers. Text that reads as a number or
// a boolean counts as one, and the other way round.
func (d valueDecoder) decodePlain(v cty.Value, r Range, field reflect.Value) Diagnostics {
	want, err := gocty.ImpliedType(field.Interface())
	if err != nil {
		panic(fmt.Sprintf("hcl: a field of type %s cannot hold an attribute", field.Type()))
	}
	v, _ = v.UnmarkDeep()
	got, err := convert.Convert(v, want)
	if err != nil {
		return d.failAt(r, "expected %s, not %s", friendlyName(want), friendlyName(v.Type()))
	}
	return d.reportFailure(v, r, gocty.FromCtyValue(got, field.Addr().Interface()))
}
