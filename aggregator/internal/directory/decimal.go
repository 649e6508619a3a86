package directory

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Decimal is a number ≥ 0 with up to nine digits after the point: billionths.
type Decimal int64

// One is the number 1.
const One Decimal = 1_000_000_000

const (
	digits = 9
	most   = 1_000_000_000 // that a Decimal may be
)

// ParseDecimal reads a number such as 12 or 1.9.
func ParseDecimal(text string) (Decimal, error) {
	whole, part, point := strings.Cut(strings.TrimSpace(text), ".")
	if !number(whole) || point && !number(part) {
		return 0, fmt.Errorf("%q is no number; want one that is not negative, like 12 or 1.9", clip(text))
	}
	part = strings.TrimRight(part, "0")
	if len(part) > digits {
		return 0, fmt.Errorf("%q has more than %d digits after the point", clip(text), digits)
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > most || n == most && part != "" {
		return 0, fmt.Errorf("%q is more than %d", clip(text), most)
	}
	below, err := strconv.ParseInt((part + strings.Repeat("0", digits))[:digits], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", clip(text), err)
	}
	return Decimal(n)*One + Decimal(below), nil
}

func number(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// String writes the number without zeros that say nothing.
func (d Decimal) String() string {
	whole, part := d/One, d%One
	if part == 0 {
		return strconv.FormatInt(int64(whole), 10)
	}
	return fmt.Sprintf("%d.%s", whole, strings.TrimRight(fmt.Sprintf("%09d", part), "0"))
}

// Float returns the nearest floating point number.
func (d Decimal) Float() float64 {
	f, _ := d.rat().Float64()
	return f
}

func (d Decimal) rat() *big.Rat { return big.NewRat(int64(d), int64(One)) }

// times is the product, rounded to a billionth; false when it is too large.
func (d Decimal) times(o Decimal) (Decimal, bool) {
	p := new(big.Int).Mul(big.NewInt(int64(d)), big.NewInt(int64(o)))
	p.Add(p, big.NewInt(int64(One)/2)).Quo(p, big.NewInt(int64(One)))
	if !p.IsInt64() || p.Int64() > most*int64(One) {
		return 0, false
	}
	return Decimal(p.Int64()), true
}
