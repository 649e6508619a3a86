package mapping

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/proto/record"
)

// kind of a value.
type kind uint8

const (
	kindNull kind = iota
	kindText
	kindInt
	kindFloat
	kindBool
	kindTime // num: microseconds
	kindOther
)

// value is the result of an expression.
type value struct {
	kind  kind
	text  string
	num   int64
	float float64
	other cty.Value
}

// fromCty takes the plain kinds out of a cty value.
func fromCty(v cty.Value) value {
	v, _ = v.Unmark()
	if v.IsNull() {
		return value{}
	}
	switch v.Type() {
	case cty.String:
		return value{kind: kindText, text: v.AsString()}
	case cty.Bool:
		if v.True() {
			return value{kind: kindBool, num: 1}
		}
		return value{kind: kindBool}
	case cty.Number:
		return fromNumber(v.AsBigFloat())
	}
	return value{kind: kindOther, other: v}
}

func fromNumber(f *big.Float) value {
	if n, accuracy := f.Int64(); accuracy == big.Exact {
		return value{kind: kindInt, num: n}
	}
	x, _ := f.Float64()
	return value{kind: kindFloat, float: x}
}

// String writes v as tostring() does.
func (v value) String() string {
	switch v.kind {
	case kindText:
		return v.text
	case kindInt:
		return strconv.FormatInt(v.num, 10)
	case kindFloat:
		return strconv.FormatFloat(v.float, 'f', -1, 64)
	case kindBool:
		return strconv.FormatBool(v.num != 0)
	case kindTime:
		return record.Time(v.num).String()
	case kindNull:
		return "null"
	}
	return v.other.Type().FriendlyName()
}

// appendKey appends bytes that tell v from every other plain value.
func (v value) appendKey(b []byte) []byte {
	b = append(b, byte(v.kind))
	b = binary.BigEndian.AppendUint64(b, uint64(v.num))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(v.float))
	b = binary.BigEndian.AppendUint32(b, uint32(len(v.text)))
	return append(b, v.text...)
}

// asBool reads a condition.
func (v value) asBool() (bool, bool) {
	switch {
	case v.kind == kindBool:
		return v.num != 0, true
	case v.kind == kindText && (v.text == "true" || v.text == "false"):
		return v.text == "true", true
	}
	return false, false
}

// asInteger reads a whole number; a fraction is rounded half to even.
func (v value) asInteger() (int64, bool) {
	switch v.kind {
	case kindInt:
		return v.num, true
	case kindFloat:
		f := math.RoundToEven(v.float)
		return int64(f), f >= math.MinInt64 && f < math.MaxInt64
	case kindText:
		if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return n, true
		}
		if f, err := strconv.ParseFloat(v.text, 64); err == nil {
			return value{kind: kindFloat, float: f}.asInteger()
		}
	}
	return 0, false
}

// asCount reads a whole number that is not negative.
func (v value) asCount() (int64, bool) {
	n, ok := v.asInteger()
	f, _ := v.asNumber()
	return n, ok && n >= 0 && f == float64(n)
}

// asNumber reads a number.
func (v value) asNumber() (float64, bool) {
	switch v.kind {
	case kindInt:
		return float64(v.num), true
	case kindFloat:
		return v.float, true
	case kindText:
		f, err := strconv.ParseFloat(v.text, 64)
		return f, err == nil
	}
	return 0, false
}

// asTime reads an instant: a time attribute, RFC 3339 text, or seconds since 1970.
func (v value) asTime() (record.Time, bool) {
	switch v.kind {
	case kindTime:
		return record.Time(v.num), true
	case kindText:
		t, err := record.ParseTime(v.text)
		return t, err == nil
	case kindInt:
		const most = math.MaxInt64 / int64(record.Second)
		return record.Time(v.num) * record.Second, v.num < most && v.num > -most
	case kindFloat:
		f := math.RoundToEven(v.float * 1e6)
		return record.Time(f), math.Abs(f) < math.MaxInt64
	}
	return record.None, false
}

// compareText orders meta keys as [record.Meta] does.
func compareText(a, b string) int { return strings.Compare(a, b) }
