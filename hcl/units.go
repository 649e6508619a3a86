package hcl

import (
	"fmt"
	"math"
	"math/big"
	"net"
	"strconv"
	"strings"
	"time"
)

// durationUnit is the length of a unit of ParseDuration. Days have 24 hours.
func durationUnit(name string) (time.Duration, bool) {
	switch name {
	case "d":
		return 24 * time.Hour, true
	case "w":
		return 7 * 24 * time.Hour, true
	}
	d, err := time.ParseDuration("1" + name)
	return d, err == nil
}

// ParseDuration reads a duration such as "90s", "1h30m", "1.5h", "30d" or
// "1w". Units are ns, us, ms, s, m, h, d (24 h) and w (7 d). A number without
// a unit other than 0, a sign, and more than 292 years are errors.
func ParseDuration(s string) (time.Duration, error) {
	total, err := sumUnits(s)
	if err != nil {
		return 0, err
	}
	return durationOf(total, s)
}

// durationOf rounds nanoseconds, which s says, to a whole number of them.
func durationOf(nanos *big.Rat, s string) (time.Duration, error) {
	n := roundHalfEven(nanos)
	if !n.IsInt64() {
		return 0, fmt.Errorf("%q is longer than 292 years", clipText(s))
	}
	return time.Duration(n.Int64()), nil
}

// sumUnits adds the pieces of a duration, exactly, in nanoseconds.
func sumUnits(s string) (*big.Rat, error) {
	text := strings.TrimSpace(s)
	total := new(big.Rat)
	switch {
	case text == "0":
		return total, nil
	case text == "":
		return nil, fmt.Errorf("a duration is empty; expected something like \"1m\", \"1h30m\" or \"30d\"")
	case text[0] == '-' || text[0] == '+':
		return nil, fmt.Errorf("%q has a sign; a duration cannot be negative", clipText(s))
	}
	for rest := text; rest != ""; {
		number, unit, tail := cutUnit(rest)
		value, ok := parseDecimal(number)
		scale, known := durationUnit(unit)
		switch {
		case !ok:
			return nil, fmt.Errorf("%q is not a duration; expected something like \"1m\", \"1h30m\" or \"30d\"", clipText(s))
		case unit == "":
			return nil, fmt.Errorf("%q has no unit; did you mean %q?", clipText(s), clipText(text)+"s")
		case !known:
			return nil, fmt.Errorf("%q has the unknown unit %q; expected one of ns, us, ms, s, m, h, d, w", clipText(s), clipText(unit))
		}
		total.Add(total, value.Mul(value, new(big.Rat).SetInt64(int64(scale))))
		rest = tail
	}
	return total, nil
}

// cutUnit splits the first number and its unit from the rest.
func cutUnit(s string) (number, unit, rest string) {
	i := strings.IndexFunc(s, func(c rune) bool { return !isNumeric(c) })
	if i < 0 {
		return s, "", ""
	}
	j := strings.IndexFunc(s[i:], isNumeric)
	if j < 0 {
		return s[:i], s[i:], ""
	}
	return s[:i], s[i : i+j], s[i+j:]
}

func isNumeric(c rune) bool { return c >= '0' && c <= '9' || c == '.' }

// parseDecimal reads digits with at most one point, of a bounded length.
func parseDecimal(s string) (*big.Rat, bool) {
	if s == "" || len(s) > 40 || strings.Count(s, ".") > 1 || strings.Trim(s, "0123456789.") != "" || strings.Trim(s, ".") == "" {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

func roundHalfEven(r *big.Rat) *big.Int {
	two := big.NewInt(2)
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	switch m.Mul(m, two).Cmp(r.Denom()) {
	case 1:
		q.Add(q, big.NewInt(1))
	case 0:
		q.Add(q, new(big.Int).And(q, big.NewInt(1)))
	}
	return q
}

// ParseSize reads a size such as "8GiB", "64MiB", "500MB", "1.5TB", "100B" or
// a plain number of bytes. KiB, MiB, … are powers of 1024, KB (or kB), MB, …
// powers of 1000. A unit that could mean both, like "8G", is an error, as are
// negative sizes, sizes that are no whole number of bytes, and more than 8 EiB.
func ParseSize(s string) (int64, error) {
	number, unit, rest := cutUnit(strings.TrimSpace(s))
	value, ok := parseDecimal(number)
	unit = strings.TrimSpace(unit)
	if !ok || rest != "" {
		return 0, fmt.Errorf("%q is not a size; expected something like \"8GiB\", \"500MB\" or a number of bytes", clipText(s))
	}
	scale, known := sizeUnit(unit)
	if !known {
		return 0, badSizeUnit(s, number, unit)
	}
	value.Mul(value, new(big.Rat).SetInt64(scale))
	if !value.IsInt() {
		return 0, fmt.Errorf("%q is not a whole number of bytes", clipText(s))
	}
	if !value.Num().IsInt64() {
		return 0, fmt.Errorf("%q is too large", clipText(s))
	}
	return value.Num().Int64(), nil
}

func badSizeUnit(s, number, unit string) error {
	if len(unit) == 1 && strings.Contains("KMGTPE", strings.ToUpper(unit)) {
		u := strings.ToUpper(unit)
		return fmt.Errorf("%q is ambiguous; did you mean %q (powers of 1024) or %q (powers of 1000)?", clipText(s), number+u+"iB", number+u+"B")
	}
	return fmt.Errorf("%q has the unknown unit %q; expected one of B, KiB, MiB, GiB, TiB, PiB, EiB, KB, MB, GB, TB, PB, EB", clipText(s), clipText(unit))
}

func sizeUnit(unit string) (int64, bool) {
	switch unit {
	case "", "B":
		return 1, true
	case "kB":
		return 1000, true
	}
	power := strings.IndexByte("KMGTPE", unit[0]) + 1
	switch {
	case power == 0:
		return 0, false
	case unit[1:] == "iB":
		return 1 << (10 * power), true
	case unit[1:] == "B":
		return int64(math.Pow10(3 * power)), true
	}
	return 0, false
}

// parseAddress reads "host:port".
func parseAddress(s string) (a Address, err error) {
	host, p, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsFunc(host, func(c rune) bool { return c <= ' ' || c == '/' || c == 0x7f }) {
		return a, badAddress(s)
	}
	port, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return a, fmt.Errorf("%q has the port %q; expected a number from 0 to 65535", clipText(s), clipText(p))
	}
	return Address{Host: host, Port: int(port)}, nil
}

func badAddress(s string) error {
	switch {
	case strings.Contains(s, "://"):
		return fmt.Errorf("%q is a URL; expected host:port", clipText(s))
	case s != "" && !strings.Contains(s, ":"):
		return fmt.Errorf("%q has no port; expected host:port", clipText(s))
	case strings.Count(s, ":") > 1 && !strings.Contains(s, "["):
		return fmt.Errorf("%q is not host:port; an IPv6 address goes in brackets, like \"[::1]:7070\"", clipText(s))
	}
	return fmt.Errorf("%q is not an address; expected host:port", clipText(s))
}

// clipText shortens a value that is quoted in an error.
func clipText(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:77], "") + "..."
}
