package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// integer is any whole number.
type integer interface {
	~int | ~int32 | ~int64 | ~uint32 | ~uint64
}

// Number is an amount in a unit for people, see [v1.ShowIn].
func Number[T ~string](unit T, cell v1.Cell) string { return v1.ShowIn("number", string(unit), cell) }

// Count is a whole number with thin spaces between thousands.
func Count[N integer](n N) string {
	digits := json.Number(fmt.Sprint(n))
	return v1.Show("number", v1.Figure(&digits))
}

// Plural is a number of things, Have and Are begin a sentence about it.
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

// Instant is a time by the clock of a zone, cut to seconds; "-" for none.
func Instant(t v1.Time, zone string) string {
	if t.IsZero() {
		return "-"
	}
	return t.In(Zone(zone)).Format(time.DateTime)
}

// Conditions writes values of keys as key=value.
func Conditions(match map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(match)) {
		parts = append(parts, key+"="+match[key])
	}
	return strings.Join(parts, " ")
}
