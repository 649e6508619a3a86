package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// NoValue is the name of the group of records that lack the key.
const NoValue = "(none)"

// integer is any whole number.
type integer interface {
	~int | ~int32 | ~int64 | ~uint32 | ~uint64
}

// Number is an amount in a unit for people, see [v1.ShowIn].
func Number[T ~string](unit T, cell v1.Cell) string { return v1.ShowIn("number", string(unit), cell) }

// Count is a whole number of any type with thin spaces between thousands; a dash for one that
// is not known, a nil pointer.
func Count(n any) string {
	v := reflect.ValueOf(n)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return v1.Show("number", v1.Cell{})
		}
		n = v.Elem().Interface()
	}
	digits := json.Number(fmt.Sprint(n))
	return v1.Show("number", v1.Figure(&digits))
}

// Plural is a number of things; Have and Are begin a sentence about it.
func Plural[N integer](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Count(n) + " " + thing + "s"
}

// Have is [Plural] with the verb have.
func Have[N integer](n N, thing string) string {
	return Plural(n, thing) + map[bool]string{true: " has", false: " have"}[n == 1]
}

// Are is [Plural] with the verb be.
func Are[N integer](n N, thing string) string {
	return Plural(n, thing) + map[bool]string{true: " is", false: " are"}[n == 1]
}

// Capital is a word or sentence that begins with a capital letter.
func Capital(text string) string { return withFirst(unicode.ToUpper, text) }

// withFirst changes the first letter of a text.
func withFirst(change func(rune) rune, text string) string {
	if text == "" {
		return text
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(change(first)) + text[size:]
}

// MeasureKind is the kind of column in which a measure is shown.
func MeasureKind(m *v1.Measure) string {
	switch {
	case m.Kind == "ratio":
		return "ratio"
	case m.Kind == "worth" && v1.Currency(string(m.Unit)):
		return "money"
	}
	return "number"
}

// At is an element of a list of figures; nil where the list ends before it.
func At(list []*json.Number, i int) *json.Number {
	if i >= len(list) {
		return nil
	}
	return list[i]
}

// GroupValues are what the values of a group are called, of n keys: all others are one name
// and blanks.
func GroupValues(g *v1.UsageGroup, n int) []string {
	out := make([]string, n)
	for i := range out {
		switch {
		case g.Others > 0 && i == 0:
			out[i] = Others(g.Others)
		case g.Others > 0 || i >= len(g.Values):
		case g.Values[i] == nil:
			out[i] = NoValue
		default:
			out[i] = *g.Values[i]
		}
	}
	return out
}

// GroupName is what a group is called in one word; "" of the group of all.
func GroupName(g *v1.UsageGroup) string {
	if g.Others > 0 {
		return Others(g.Others)
	}
	return strings.Join(GroupValues(g, len(g.Values)), " / ")
}

// Others is the name of groups that were put together, such as (57 others).
func Others[N integer](n N) string { return "(" + Plural(n, "other") + ")" }

// IsOthers reports whether a name is one of [Others].
func IsOthers(name string) bool {
	inner, ok := strings.CutPrefix(name, "(")
	digits, many := strings.CutSuffix(inner, " others)")
	return ok && (inner == "1 other)" || many && digits != "" && strings.Trim(digits, "0123456789\u202f") == "")
}

// Share is a part of all: for people, and as a percentage for the width of a bar; both are ""
// where there is no such part.
func Share(part, all *big.Rat) (text, width string) {
	if part == nil || all == nil || all.Sign() <= 0 || part.Sign() < 0 {
		return "", ""
	}
	q := new(big.Rat).Quo(part, all)
	return v1.Show("share", v1.Rat(q)), q.Mul(q, big.NewRat(100, 1)).FloatString(2)
}

// Size writes bytes by the largest unit, a whole number of any type.
func Size(n any) string {
	v := reflect.ValueOf(n)
	bytes := uint64(0)
	if v.CanUint() {
		bytes = v.Uint()
	} else if v.CanInt() {
		bytes = uint64(max(v.Int(), 0))
	}
	for i, name := range []string{"TiB", "GiB", "MiB", "KiB"} {
		shift := 40 - 10*i
		if bytes >= 10<<shift {
			return fmt.Sprintf("%d\u202f%s", bytes>>shift, name)
		}
		if bytes >= 1<<shift {
			return fmt.Sprintf("%.1f\u202f%s", float64(bytes)/float64(uint64(1)<<shift), name)
		}
	}
	return fmt.Sprintf("%d\u202fB", bytes)
}

// Span writes a duration by its largest two units.
func Span(d time.Duration) string {
	s := int64(math.Round(d.Seconds()))
	switch {
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s < 2*3600:
		return fmt.Sprintf("%d min", s/60)
	case s < 2*86400:
		return fmt.Sprintf("%d h %02d min", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d d %d h", s/86400, s/3600%24)
}

// Instant is a time by the clock of a zone, cut to seconds; "-" for none.
func Instant(t v1.Time, zone string) string {
	if t.IsZero() {
		return "-"
	}
	return t.In(Zone(zone)).Format(time.DateTime)
}

// zonedInstant is [Instant] with the name of the zone.
func zonedInstant(t v1.Time, zone string) string { return Instant(t, zone) + " " + zone }

// Conditions writes values of keys as key=value.
func Conditions(match map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(match)) {
		parts = append(parts, key+"="+match[key])
	}
	return strings.Join(parts, " ")
}
