package mapping

import (
	"fmt"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

// program is a compiled expression.
type program interface {
	eval(job *bursarv1.Job) (value, error)
	sourceRange() hcl.Range
}

// constant is the same for every job.
type constant struct {
	value value
	at    hcl.Range
}

func (c constant) eval(*bursarv1.Job) (value, error) { return c.value, nil }
func (c constant) sourceRange() hcl.Range            { return c.at }

// column is one attribute of the job.
type column struct {
	index int
	typ   bursarv1.Type
	at    hcl.Range
}

func (c column) eval(job *bursarv1.Job) (value, error) {
	return attributeValue(job, c.index, c.typ), nil
}
func (c column) sourceRange() hcl.Range { return c.at }

// attributeValue reads an attribute of a plain type.
func attributeValue(job *bursarv1.Job, i int, typ bursarv1.Type) value {
	if i >= len(job.GetValues()) {
		return value{}
	}
	switch v := job.GetValues()[i].GetKind().(type) {
	case *bursarv1.Value_StringValue:
		return value{kind: kindText, text: v.StringValue}
	case *bursarv1.Value_BytesValue:
		return value{kind: kindText, text: strings.ToValidUTF8(string(v.BytesValue), "\uFFFD")}
	case *bursarv1.Value_IntValue:
		if typ == bursarv1.Type_TYPE_TIME {
			return value{kind: kindTime, num: v.IntValue}
		}
		return value{kind: kindInt, num: v.IntValue}
	case *bursarv1.Value_FloatValue:
		return value{kind: kindFloat, float: v.FloatValue}
	case *bursarv1.Value_BoolValue:
		return value{kind: kindBool, num: map[bool]int64{true: 1}[v.BoolValue]}
	case *bursarv1.Value_ListValue, *bursarv1.Value_MapValue:
		return value{kind: kindOther, other: toCty(job.GetValues()[i], typ)}
	}
	return value{}
}

// template joins text and attributes.
type template struct {
	parts []program
	at    hcl.Range
}

func (t *template) sourceRange() hcl.Range { return t.at }

func (t *template) eval(job *bursarv1.Job) (value, error) {
	var b strings.Builder
	for _, p := range t.parts {
		v, err := p.eval(job)
		if err != nil {
			return v, err
		}
		if v.kind == kindNull || v.kind == kindOther {
			return v, fmt.Errorf("%s: the text cannot hold %s", t.at, v)
		}
		b.WriteString(v.String())
	}
	return value{kind: kindText, text: b.String()}, nil
}

// evaluated is an expression that HCL evaluates. Its result depends on nothing
// but the attributes that it names, so results for inputs that come again and
// again are kept.
type evaluated struct {
	expr  hcl.Expression
	env   *env
	names []slot
	seen  map[string]value
	key   []byte
}

// Bounds of what an expression keeps.
const (
	maxResults = 1024
	maxKey     = 256
)

func (e *evaluated) sourceRange() hcl.Range { return e.expr.Range() }

func (e *evaluated) eval(job *bursarv1.Job) (value, error) {
	known := e.writeKey(job)
	if known {
		if v, ok := e.seen[string(e.key)]; ok {
			return v, nil
		}
	}
	ctx := e.env.jobContext(job)
	v, diags := e.expr.Value(ctx)
	if diags.HasErrors() {
		return value{}, describeError(hcl2.Diagnostics(hcl.HideSecrets(hcl.Diagnostics(diags), e.expr, ctx)))
	}
	if !v.IsKnown() {
		return value{}, fmt.Errorf("%s: the result is not known", e.expr.Range())
	}
	result := fromCty(v)
	if known {
		e.storeResult(result)
	}
	return result, nil
}

// writeKey writes the attributes that the expression names into e.key; false when
// they are too long or no plain values.
func (e *evaluated) writeKey(job *bursarv1.Job) bool {
	e.key = e.key[:0]
	for _, s := range e.names {
		v := attributeValue(job, s.index, s.typ)
		if v.kind == kindOther {
			return false
		}
		e.key = v.appendKey(e.key)
		if len(e.key) > maxKey {
			return false
		}
	}
	return true
}

func (e *evaluated) storeResult(v value) {
	if len(e.seen) >= maxResults {
		clear(e.seen)
	}
	e.seen[string(e.key)] = v
}

// describeError writes the first error of an evaluation with its place.
func describeError(diags hcl2.Diagnostics) error {
	for _, d := range diags {
		if d.Severity != hcl2.DiagError {
			continue
		}
		place := ""
		if d.Subject != nil {
			place = d.Subject.String() + ": "
		}
		return fmt.Errorf("%s%s; %s", place, d.Summary, d.Detail)
	}
	return diags
}

// env is what expressions see of the job at hand: only the attributes that one
// of them names, made once per job.
type env struct {
	slow []slot
	ctx  *hcl.EvalContext
	job  *bursarv1.Job
	seen map[string]cty.Value // text values that come again and again
}

type slot struct {
	name  string
	index int
	typ   bursarv1.Type
}

// maxSeen bounds the values that are kept.
const maxSeen = 4096

func newEnv(constants map[string]map[string]cty.Value, scope *hcl.Scope) env {
	e := env{seen: map[string]cty.Value{}, ctx: &hcl.EvalContext{Functions: scope.Functions(), Variables: map[string]cty.Value{}}}
	for name, values := range constants {
		e.ctx.Variables[name] = cty.ObjectVal(values)
	}
	return e
}

// jobContext returns the context for the job.
func (e *env) jobContext(job *bursarv1.Job) *hcl.EvalContext {
	if e.job == job {
		return e.ctx
	}
	attrs := make(map[string]cty.Value, len(e.slow))
	for _, s := range e.slow {
		attrs[s.name] = e.slotValue(job, s)
	}
	e.ctx.Variables["job"] = cty.ObjectVal(attrs)
	e.job = job
	return e.ctx
}

func (e *env) slotValue(job *bursarv1.Job, s slot) cty.Value {
	if s.index >= len(job.GetValues()) {
		return cty.NullVal(ctyType(s.typ))
	}
	text, ok := job.GetValues()[s.index].GetKind().(*bursarv1.Value_StringValue)
	if !ok {
		return toCty(job.GetValues()[s.index], s.typ)
	}
	if v, ok := e.seen[text.StringValue]; ok {
		return v
	}
	if len(e.seen) >= maxSeen {
		clear(e.seen)
	}
	v := cty.StringVal(text.StringValue)
	e.seen[text.StringValue] = v
	return v
}

// toCty converts a value to what an attribute of that type is in expressions.
func toCty(v *bursarv1.Value, typ bursarv1.Type) cty.Value {
	switch k := v.GetKind().(type) {
	case *bursarv1.Value_StringValue:
		return cty.StringVal(k.StringValue)
	case *bursarv1.Value_BytesValue:
		return cty.StringVal(strings.ToValidUTF8(string(k.BytesValue), "\uFFFD"))
	case *bursarv1.Value_IntValue:
		if typ == bursarv1.Type_TYPE_TIME {
			return cty.StringVal(record.Time(k.IntValue).String())
		}
		return cty.NumberIntVal(k.IntValue)
	case *bursarv1.Value_FloatValue:
		if k.FloatValue != k.FloatValue || k.FloatValue-k.FloatValue != 0 {
			return cty.NullVal(cty.Number)
		}
		return cty.NumberFloatVal(k.FloatValue)
	case *bursarv1.Value_BoolValue:
		return cty.BoolVal(k.BoolValue)
	case *bursarv1.Value_ListValue:
		return listToCty(k.ListValue.GetValues(), typ)
	case *bursarv1.Value_MapValue:
		attrs := map[string]cty.Value{}
		for name, e := range k.MapValue.GetValues() {
			attrs[name] = toCty(e, bursarv1.Type_TYPE_UNSPECIFIED)
		}
		return cty.ObjectVal(attrs)
	}
	return cty.NullVal(ctyType(typ))
}

func listToCty(values []*bursarv1.Value, typ bursarv1.Type) cty.Value {
	list := make([]cty.Value, len(values))
	for i, v := range values {
		list[i] = toCty(v, bursarv1.Type_TYPE_UNSPECIFIED)
		if typ == bursarv1.Type_TYPE_LIST && list[i].Type() != cty.String {
			list[i] = cty.StringVal(fromCty(list[i]).String())
		}
	}
	switch {
	case typ != bursarv1.Type_TYPE_LIST:
		return cty.TupleVal(list)
	case len(list) == 0:
		return cty.ListValEmpty(cty.String)
	}
	return cty.ListVal(list)
}
