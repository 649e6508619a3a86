package sdk

import (
	"math"
	"time"
	"unicode/utf8"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Type is the type of an attribute.
type Type uint8

// The types. Each attribute may be null in any job.
const (
	TypeString Type = 1
	TypeInt    Type = 2
	TypeFloat  Type = 3
	TypeBool   Type = 4
	TypeTime   Type = 5 // with microseconds
	TypeList   Type = 6 // of strings
	TypeMap    Type = 7 // of any values
)

// String returns the type's name as configuration files and tables use it.
func (t Type) String() string {
	switch t {
	case TypeString:
		return "string"
	case TypeInt:
		return "int"
	case TypeFloat:
		return "float"
	case TypeBool:
		return "bool"
	case TypeTime:
		return "time"
	case TypeList:
		return "list"
	case TypeMap:
		return "map"
	}
	return "null"
}

// Value is the value of an attribute, or of a part of the configuration. The
// zero Value is Null. Values do not change.
type Value struct {
	kind Type // 0: null
	num  uint64
	str  string
	more any // []Value of a list, map[string]Value of a map
}

// Null is no value: unknown, or not asked for.
func Null() Value { return Value{} }

// String makes a value from text as the scheduler wrote it. Text that is not
// valid UTF-8 is kept as it is.
func String(s string) Value { return Value{kind: TypeString, str: s} }

// Int makes a value from an integer.
func Int(n int64) Value { return Value{kind: TypeInt, num: uint64(n)} }

// Float makes a value from a number. Infinities and NaN are Null.
func Float(f float64) Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Value{}
	}
	return Value{kind: TypeFloat, num: math.Float64bits(f)}
}

// Bool makes a value from a truth value.
func Bool(b bool) Value {
	v := Value{kind: TypeBool}
	if b {
		v.num = 1
	}
	return v
}

// Time makes a value from a time, which is cut to microseconds. The zero time
// is Null.
func Time(t time.Time) Value {
	if t.IsZero() {
		return Value{}
	}
	return Value{kind: TypeTime, num: uint64(t.UnixMicro())}
}

// List makes a value from values; the daemon expects strings in an attribute of
// type TypeList. It keeps vs.
func List(vs ...Value) Value { return Value{kind: TypeList, more: vs} }

// Strings makes a list of strings.
func Strings(ss ...string) Value {
	vs := make([]Value, len(ss))
	for i, s := range ss {
		vs[i] = String(s)
	}
	return List(vs...)
}

// Map makes a value from named values. It keeps m. Names that are not valid
// UTF-8 lose the bytes that are not.
func Map(m map[string]Value) Value { return Value{kind: TypeMap, more: m} }

// StringMap makes a map of strings.
func StringMap(m map[string]string) Value {
	vs := make(map[string]Value, len(m))
	for k, s := range m {
		vs[k] = String(s)
	}
	return Map(vs)
}

// Type returns the type of v, and 0 of Null.
func (v Value) Type() Type { return v.kind }

// IsNull reports whether v is Null.
func (v Value) IsNull() bool { return v.kind == 0 }

// Str returns the text of a string, and "" of anything else.
func (v Value) Str() string { return v.str }

// Int returns an integer, the whole part of a float, and 0 of anything else.
func (v Value) Int() int64 {
	switch v.kind {
	case TypeInt, TypeTime:
		return int64(v.num)
	case TypeFloat:
		return int64(math.Float64frombits(v.num))
	}
	return 0
}

// Float returns a number, and 0 of anything else.
func (v Value) Float() float64 {
	switch v.kind {
	case TypeInt:
		return float64(int64(v.num))
	case TypeFloat:
		return math.Float64frombits(v.num)
	}
	return 0
}

// Bool returns a truth value, and false of anything else.
func (v Value) Bool() bool { return v.kind == TypeBool && v.num == 1 }

// Time returns a time in UTC, and the zero time of anything else.
func (v Value) Time() time.Time {
	if v.kind != TypeTime {
		return time.Time{}
	}
	return time.UnixMicro(int64(v.num)).UTC()
}

// List returns the elements of a list, and nil of anything else.
func (v Value) List() []Value { l, _ := v.more.([]Value); return l }

// Map returns the members of a map, and nil of anything else.
func (v Value) Map() map[string]Value { m, _ := v.more.(map[string]Value); return m }

// cell is an encoded value with the room that the usual kinds need: a batch has
// many, and one piece of memory for each job's is much less work.
type cell struct {
	value bursarv1.Value
	text  bursarv1.Value_StringValue
	whole bursarv1.Value_IntValue
}

// encodeInto fills c, which is new, with v.
func (v Value) encodeInto(c *cell) {
	p := &c.value
	switch v.kind {
	case TypeString:
		if utf8.ValidString(v.str) {
			c.text.StringValue = v.str
			p.Kind = &c.text
		} else {
			p.Kind = &bursarv1.Value_BytesValue{BytesValue: []byte(v.str)}
		}
	case TypeInt, TypeTime:
		c.whole.IntValue = int64(v.num)
		p.Kind = &c.whole
	case TypeFloat:
		p.Kind = &bursarv1.Value_FloatValue{FloatValue: v.Float()}
	case TypeBool:
		p.Kind = &bursarv1.Value_BoolValue{BoolValue: v.Bool()}
	case TypeList:
		p.Kind = &bursarv1.Value_ListValue{ListValue: encodeList(v.List())}
	case TypeMap:
		p.Kind = &bursarv1.Value_MapValue{MapValue: encodeMap(v.Map())}
	}
}

func encodeList(vs []Value) *bursarv1.ListValue { return &bursarv1.ListValue{Values: encodeAll(vs)} }

// encodeAll encodes values into one piece of memory.
func encodeAll(vs []Value) []*bursarv1.Value {
	room, out := make([]cell, len(vs)), make([]*bursarv1.Value, len(vs))
	for i, v := range vs {
		v.encodeInto(&room[i])
		out[i] = &room[i].value
	}
	return out
}

func encodeMap(m map[string]Value) *bursarv1.MapValue {
	out := make(map[string]*bursarv1.Value, len(m))
	for k, v := range m {
		c := new(cell)
		v.encodeInto(c)
		out[validText(k)] = &c.value
	}
	return &bursarv1.MapValue{Values: out}
}

// decodeValue reads a value as daemons and plugins send it. Times come as integers.
func decodeValue(p *bursarv1.Value) Value {
	switch k := p.GetKind().(type) {
	case *bursarv1.Value_StringValue:
		return String(k.StringValue)
	case *bursarv1.Value_BytesValue:
		return String(string(k.BytesValue))
	case *bursarv1.Value_IntValue:
		return Int(k.IntValue)
	case *bursarv1.Value_FloatValue:
		return Float(k.FloatValue)
	case *bursarv1.Value_BoolValue:
		return Bool(k.BoolValue)
	case *bursarv1.Value_ListValue:
		return decodeList(k.ListValue)
	case *bursarv1.Value_MapValue:
		return decodeMap(k.MapValue)
	}
	return Null()
}

func decodeList(l *bursarv1.ListValue) Value {
	vs := make([]Value, len(l.GetValues()))
	for i, p := range l.GetValues() {
		vs[i] = decodeValue(p)
	}
	return List(vs...)
}

func decodeMap(m *bursarv1.MapValue) Value {
	vs := make(map[string]Value, len(m.GetValues()))
	for k, p := range m.GetValues() {
		vs[k] = decodeValue(p)
	}
	return Map(vs)
}
