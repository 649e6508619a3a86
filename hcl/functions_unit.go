package hcl

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// ParseBytes reads an amount of memory as schedulers write it, in bytes: "16G",
// "16Gi", "16GiB", "16GB", "2000M", "1.50K", "512". Letters of either case are
// powers of 1024, as in all schedulers; the suffixes n and c of old Slurm ("per
// node", "per core") are read over. Fractions of a byte are rounded half to
// even. Negative amounts and more than 8 EiB are errors.
func ParseBytes(s string) (int64, error) {
	number, unit, rest := cutUnit(strings.TrimSpace(s))
	power, known := bytesPower(strings.TrimSpace(unit))
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && known && rest == "" && n <= math.MaxInt64>>(10*power) {
		return n << (10 * power), nil
	}
	value, ok := parseDecimal(number)
	if !ok || !known || rest != "" {
		return 0, fmt.Errorf("%q is not an amount of memory; expected something like \"16G\", \"16GiB\" or \"2000M\"", clipText(s))
	}
	value.Mul(value, new(big.Rat).SetInt64(1<<(10*power)))
	n := roundHalfEven(value)
	if !n.IsInt64() {
		return 0, fmt.Errorf("%q is too large", clipText(s))
	}
	return n.Int64(), nil
}

// bytesPower is the power of 1024 that a unit stands for.
func bytesPower(unit string) (int, bool) {
	u := strings.ToUpper(unit)
	if n := len(u); n > 0 && (u[n-1] == 'N' || u[n-1] == 'C') {
		u = u[:n-1]
	}
	if u == "" || u == "B" {
		return 0, true
	}
	power := strings.IndexByte("KMGTPE", u[0]) + 1
	switch u[1:] {
	case "", "I", "B", "IB":
		return power, power > 0
	}
	return 0, false
}

// ParseSeconds reads a length of time as schedulers write it: "MM:SS",
// "HH:MM:SS", "D-HH", "D-HH:MM", "D-HH:MM:SS", each with a fraction of the
// seconds where there are seconds, a plain number of seconds, or what
// ParseDuration reads. The first field may be of any size, the others stay
// below 24 or 60. It is exact to the nanosecond; further digits are cut.
func ParseSeconds(s string) (time.Duration, error) {
	text := strings.TrimSpace(s)
	if !strings.ContainsAny(text, "-:") || strings.HasPrefix(text, "-") {
		if value, ok := parseDecimal(text); ok {
			return durationOf(value.Mul(value, big.NewRat(int64(time.Second), 1)), s)
		}
		return ParseDuration(text)
	}
	units := []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second}
	days, clock, dashed := strings.Cut(text, "-")
	if !dashed {
		clock = text
	}
	fields := strings.Split(clock, ":")
	switch n := len(fields); {
	case dashed && n <= 3:
		fields = append([]string{days}, fields...)
	case !dashed && n <= 3:
		units = units[4-n:]
	default:
		return 0, badSeconds(text)
	}
	var total time.Duration
	for i, field := range fields {
		value, ok := clockField(field, units[i])
		if !ok || i > 0 && value >= units[i-1] {
			return 0, badSeconds(text)
		}
		if total += value; value < 0 || total < 0 {
			return 0, fmt.Errorf("%q is longer than 292 years", clipText(s))
		}
	}
	return total, nil
}

// clockField reads digits that count a unit, with a fraction where these are seconds.
// What is longer than 292 years is negative.
func clockField(s string, unit time.Duration) (time.Duration, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if !onlyDigits(whole+fraction) || point && unit != time.Second || len(s) > maxDigits {
		return 0, false
	}
	n, err := strconv.ParseUint("0"+whole, 10, 63)
	if err != nil || n > uint64(math.MaxInt64/unit) {
		return -1, true
	}
	nanos, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64) // they are digits
	return time.Duration(n)*unit + time.Duration(nanos), true
}

func badSeconds(s string) error {
	return fmt.Errorf("%q is not a length of time; expected something like \"1-02:03:04\", \"02:03:04\", \"03:04.5\" or \"1h30m\"", clipText(s))
}

// bytesFunction is bytes(text or number).
func bytesFunction() function.Function {
	return unitFunction(func(s string) (cty.Value, error) {
		n, err := ParseBytes(s)
		return cty.NumberIntVal(n), err
	})
}

// secondsFunction is seconds(text or number).
func secondsFunction() function.Function {
	return unitFunction(func(s string) (cty.Value, error) {
		d, err := ParseSeconds(s)
		if err != nil {
			return cty.NilVal, err
		}
		return decimalNumber(int64(d)), nil
	})
}

// decimalNumber is nanos/1e9 as the number that its decimal digits would be.
func decimalNumber(nanos int64) cty.Value {
	whole, frac := nanos/int64(time.Second), nanos%int64(time.Second)
	if frac == 0 {
		return cty.NumberIntVal(whole)
	}
	sign := ""
	if nanos < 0 {
		sign, whole, frac = "-", -whole, -frac
	}
	v, err := cty.ParseNumberVal(fmt.Sprintf("%s%d.%09d", sign, whole, frac))
	if err != nil {
		return cty.NumberFloatVal(float64(nanos) / float64(time.Second))
	}
	return v
}

// unitFunction is a function of a text, or of a number that is taken as it is
// when it is not negative.
func unitFunction(parse func(string) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			switch v := args[0]; v.Type() {
			case cty.String:
				return parse(v.AsString())
			case cty.Number:
				if v.AsBigFloat().Sign() < 0 {
					return cty.NilVal, errors.New("the value is negative")
				}
				return v, nil
			default:
				return cty.NilVal, fmt.Errorf("expected text or a number, not %s", friendlyName(v.Type()))
			}
		},
	})
}

// timeFunction is time(text or epoch seconds) and time(text, zone): RFC 3339 in
// UTC. Text without a zone, like "2024-01-01T00:00:00", needs the zone's name.
func timeFunction() function.Function {
	zones := &sync.Map{}
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType}},
		VarParam: &function.Parameter{Name: "zone", Type: cty.String},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if len(args) > 2 {
				return cty.NilVal, errors.New("expected time(value) or time(value, zone)")
			}
			t, err := parseMoment(args, zones)
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(t.UTC().Format(time.RFC3339Nano)), nil
		},
	})
}

func parseMoment(args []cty.Value, zones *sync.Map) (time.Time, error) {
	if args[0].Type() == cty.Number {
		return fromEpoch(args[0])
	}
	v, err := convert.Convert(args[0], cty.String)
	if err != nil {
		return time.Time{}, fmt.Errorf("expected text or a number, not %s", friendlyName(args[0].Type()))
	}
	if t, err := time.Parse(time.RFC3339Nano, v.AsString()); err == nil {
		return inRange(t)
	}
	if len(args) < 2 {
		return time.Time{}, fmt.Errorf("%q is not RFC 3339; text without a zone needs one: time(…, \"Europe/Berlin\")", clipText(v.AsString()))
	}
	zone, err := zoneOf(args[1].AsString(), zones)
	if err != nil {
		return time.Time{}, err
	}
	for _, layout := range []string{"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, v.AsString(), zone); err == nil {
			return inRange(t)
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; expected something like \"2024-01-01T00:00:00\"", clipText(v.AsString()))
}

func fromEpoch(v cty.Value) (time.Time, error) {
	f := v.AsBigFloat()
	if e := f.MantExp(nil); f.IsInf() || e > 40 || e < -maxExponent {
		return time.Time{}, errors.New("the number of seconds is out of range")
	}
	exact, _ := f.Rat(nil)
	exact.Mul(exact, big.NewRat(int64(time.Second), 1))
	sec, nano := new(big.Int).DivMod(roundHalfEven(exact), big.NewInt(int64(time.Second)), new(big.Int))
	return inRange(time.Unix(sec.Int64(), nano.Int64()))
}

func inRange(t time.Time) (time.Time, error) {
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return time.Time{}, errors.New("the time is outside the years 0 to 9999")
	}
	return t, nil
}

func zoneOf(name string, zones *sync.Map) (*time.Location, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	z, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf("unknown time zone %s", strconv.Quote(clipText(name)))
	}
	zones.Store(name, z)
	return z, nil
}

// unixSeconds is unix(time): epoch seconds of an RFC 3339 time, with its fraction.
func unixSeconds(args []string) (cty.Value, error) {
	t, err := time.Parse(time.RFC3339Nano, args[0])
	if err != nil {
		return cty.NilVal, fmt.Errorf("%q is not a time; expected RFC 3339, like \"2024-01-01T00:00:00Z\"", clipText(args[0]))
	}
	if t.Unix() < 0 {
		return decimalNumber(t.UnixNano()), nil
	}
	return cty.ParseNumberVal(fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()))
}
