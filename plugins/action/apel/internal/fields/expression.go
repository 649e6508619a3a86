package fields

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Source is where a field's value comes from: an expression, or a constant.
type Source struct {
	Text  string    // of the expression
	At    hcl.Range // where it is written
	Value cty.Value // without Text
}

func (s Source) isAbsent() bool { return s.Text == "" && s.Value == cty.NilVal }

// compiler checks expressions and makes them ready.
type compiler struct {
	scope *hcl.Scope
	diags hcl.Diagnostics
}

func newCompiler() *compiler {
	component := cty.Object(map[string]cty.Type{"amount": cty.Number, "scores": cty.Map(cty.Number)})
	return &compiler{scope: hcl.NewScope("", map[string]hcl.Object{"record": {
		"id": cty.String, "site": cty.String, "state": cty.String, "runtime": cty.Number,
		"start_time": cty.String, "stop_time": cty.String, "submit_time": cty.String,
		"meta": cty.Map(cty.List(cty.String)), "components": cty.Map(component),
	}})}
}

// expression is a compiled Source.
type expression struct {
	constant  cty.Value // where it is one
	path      []string  // where it only names a part of the record
	expr      hcl.Expression
	functions map[string]function.Function
	parts     [][]string            // paths of what it depends on; nil: anything
	seen      map[string]remembered // results by what it depends on
	key       []byte
}

type remembered struct {
	value cty.Value
	err   error
}

// Limits of what is remembered.
const (
	maxRemembered = 4096
	maxKey        = 4096
)

// compileSource checks a source, whose result must be convertible to the type.
func (c *compiler) compileSource(s Source, want cty.Type) *expression {
	if s.Text == "" {
		if _, err := convert.Convert(s.Value, want); err != nil {
			c.diags.Add(hcl.Errorf(s.At, "invalid value", "%v", err))
		}
		return &expression{constant: s.Value}
	}
	expr, diags := hcl.ParseExpression(s.Text, s.At)
	c.diags.Extend(diags)
	if diags.HasErrors() {
		return nil
	}
	diags = c.scope.Check(expr, want)
	c.diags.Extend(diags)
	if diags.HasErrors() {
		return nil
	}
	if v, ok := hcl.Literal(expr); ok {
		return &expression{constant: v}
	}
	e := &expression{expr: expr, functions: c.scope.Functions(), seen: map[string]remembered{}}
	if path, ok := hcl.Attribute(expr); ok && plainPath(path) {
		e.path = path[1:]
		return e
	}
	for _, ref := range hcl.Refs(expr) {
		if !isCacheable(ref.Path) {
			e.parts, e.seen = nil, nil
			return e
		}
		e.parts = append(e.parts, ref.Path)
	}
	return e
}

// plainPath reports whether part finds what a path names.
func plainPath(path []string) bool {
	switch {
	case len(path) == 2:
		return path[1] != "meta" && path[1] != "components"
	case len(path) == 4:
		return path[1] == "components" && path[3] == "amount"
	case len(path) == 5:
		return path[1] == "components" && path[3] == "scores"
	}
	return false
}

// isCacheable reports whether few records differ in what a path names.
func isCacheable(path []string) bool {
	switch {
	case len(path) == 0:
		return false
	case path[0] == "meta" || path[0] == "components":
		return len(path) > 1
	}
	return path[0] == "site" || path[0] == "state"
}

// valueFor evaluates the expression for a record of a site.
func (e *expression) valueFor(site string, r *record.Record) (cty.Value, error) {
	switch {
	case e.path != nil:
		return partValue(e.path, site, r)
	case e.expr == nil:
		return e.constant, nil
	case e.seen == nil || !e.writeKey(site, r):
		return e.evaluateHCL(site, r)
	}
	if got, ok := e.seen[string(e.key)]; ok {
		return got.value, got.err
	}
	v, err := e.evaluateHCL(site, r)
	if len(e.seen) >= maxRemembered {
		clear(e.seen)
	}
	e.seen[string(e.key)] = remembered{v, err}
	return v, err
}

// writeKey writes into e.key what the expression depends on; false when it is long.
func (e *expression) writeKey(site string, r *record.Record) bool {
	e.key = e.key[:0]
	for _, path := range e.parts {
		e.key = appendPart(e.key, path, site, r)
		if len(e.key) > maxKey {
			return false
		}
	}
	return true
}

func appendPart(b []byte, path []string, site string, r *record.Record) []byte {
	switch path[0] {
	case "site":
		return appendText(b, site)
	case "state":
		return appendText(b, r.State)
	case "meta":
		values := r.Meta.Get(path[1])
		b = binary.AppendUvarint(b, uint64(len(values)))
		for _, v := range values {
			b = appendText(b, v)
		}
		return b
	}
	c := r.Component(path[1])
	if c == nil {
		return append(b, 0)
	}
	b = binary.BigEndian.AppendUint64(append(b, 1), uint64(c.Amount))
	b = binary.AppendUvarint(b, uint64(len(c.Scores)))
	for _, s := range c.Scores {
		b = binary.BigEndian.AppendUint64(appendText(b, s.Name), math.Float64bits(s.Value))
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// evaluateHCL has HCL evaluate the expression.
func (e *expression) evaluateHCL(site string, r *record.Record) (cty.Value, error) {
	ctx := &hcl.EvalContext{
		Functions: e.functions,
		Variables: map[string]cty.Value{"record": recordObject(site, r)},
	}
	v, diags := e.expr.Value(ctx)
	if err := hcl.HideSecrets(hcl.Diagnostics(diags), e.expr, ctx).Err(); err != nil {
		return cty.NilVal, err
	}
	v, _ = v.UnmarkDeep()
	if !v.IsWhollyKnown() {
		return cty.NilVal, errors.New("the result is not known")
	}
	return v, nil
}

// partValue is what a plain path names.
func partValue(path []string, site string, r *record.Record) (cty.Value, error) {
	if path[0] == "components" {
		return componentPart(path[1], path[2:], r)
	}
	return plainPart(path[0], site, r), nil
}

// plainPart is a part of the record that is no map.
func plainPart(name, site string, r *record.Record) cty.Value {
	switch name {
	case "id":
		return cty.StringVal(r.ID)
	case "site":
		return cty.StringVal(site)
	case "state":
		return textOrNull(r.State)
	case "start_time":
		return timeOrNull(r.Start)
	case "stop_time":
		return timeOrNull(r.Stop)
	case "submit_time":
		return timeOrNull(r.Submit)
	}
	seconds, ok := r.Runtime()
	if !ok {
		return cty.NullVal(cty.Number)
	}
	return cty.NumberIntVal(seconds)
}

// componentPart is the amount of a component, or one of its scores.
func componentPart(name string, path []string, r *record.Record) (cty.Value, error) {
	c := r.Component(name)
	if c == nil {
		return cty.NilVal, fmt.Errorf("there is no component %s", name)
	}
	if len(path) == 1 {
		return cty.NumberIntVal(c.Amount), nil
	}
	for _, s := range c.Scores {
		if s.Name == path[1] {
			return cty.NumberFloatVal(s.Value), nil
		}
	}
	return cty.NilVal, fmt.Errorf("component %s has no score %s", name, path[1])
}

func textOrNull(s string) cty.Value {
	if s == "" {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(s)
}

func timeOrNull(t record.Time) cty.Value {
	if t == record.None {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(t.String())
}

// recordObject is the record as expressions see it.
func recordObject(site string, r *record.Record) cty.Value {
	all := map[string]cty.Value{"meta": metaObject(r), "components": componentsObject(r)}
	for _, name := range []string{"id", "site", "state", "runtime", "start_time", "stop_time", "submit_time"} {
		all[name] = plainPart(name, site, r)
	}
	return cty.ObjectVal(all)
}

func metaObject(r *record.Record) cty.Value {
	all := map[string]cty.Value{}
	for _, m := range r.Meta {
		values := make([]cty.Value, len(m.Values))
		for i, v := range m.Values {
			values[i] = cty.StringVal(v)
		}
		all[m.Key] = cty.ListValEmpty(cty.String)
		if len(values) > 0 {
			all[m.Key] = cty.ListVal(values)
		}
	}
	if len(all) == 0 {
		return cty.MapValEmpty(cty.List(cty.String))
	}
	return cty.MapVal(all)
}

// componentsObject has of components with the same name the first.
func componentsObject(r *record.Record) cty.Value {
	all := map[string]cty.Value{}
	for _, c := range r.Components {
		if _, there := all[c.Name]; there {
			continue
		}
		scores := map[string]cty.Value{}
		for _, s := range c.Scores {
			if _, there := scores[s.Name]; !there {
				scores[s.Name] = cty.NumberFloatVal(s.Value)
			}
		}
		list := cty.MapValEmpty(cty.Number)
		if len(scores) > 0 {
			list = cty.MapVal(scores)
		}
		all[c.Name] = cty.ObjectVal(map[string]cty.Value{"amount": cty.NumberIntVal(c.Amount), "scores": list})
	}
	if len(all) == 0 {
		return cty.MapValEmpty(cty.Object(map[string]cty.Type{"amount": cty.Number, "scores": cty.Map(cty.Number)}))
	}
	return cty.MapVal(all)
}
