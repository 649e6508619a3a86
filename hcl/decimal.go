package hcl

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Decimal is an exact decimal number, never negative, with at most 9 digits after
// the point: a price, a factor, an amount of money. It is written as a number or as
// a string, 0.012 or "0.012".
type Decimal struct {
	// Billionths is the number times 10^9; nil is no number.
	Billionths *big.Int
	// Range is where it is written; zero for a default.
	Range Range
}

// decimalDigits is how many digits a [Decimal] may have after and before its point.
const (
	decimalDigits = 9
	decimalWhole  = 15
)

// DecodeHCL implements ValueDecoder.
func (d *Decimal) DecodeHCL(v cty.Value, r Range) error {
	v, _ = v.Unmark()
	var n *big.Int
	var err error
	switch v.Type() {
	case cty.String:
		n, err = ParseDecimal(v.AsString())
	case cty.Number:
		n, err = exactBillionths(v.AsBigFloat())
	default:
		err = fmt.Errorf("expected a number, like 0.012 or \"0.012\", not %s", friendlyName(v.Type()))
	}
	if err != nil {
		return err
	}
	*d = Decimal{Billionths: n, Range: r}
	return nil
}

// IsSet reports whether there is a number.
func (d Decimal) IsSet() bool { return d.Billionths != nil }

// String is the number without needless zeros; "" when there is none.
// [ParseDecimal] reads it back.
func (d Decimal) String() string {
	if d.Billionths == nil {
		return ""
	}
	text := fmt.Sprintf("%0*s", decimalDigits+1, d.Billionths.String())
	whole, rest := text[:len(text)-decimalDigits], strings.TrimRight(text[len(text)-decimalDigits:], "0")
	if rest == "" {
		return whole
	}
	return whole + "." + rest
}

// ParseDecimal reads digits with or without a point, such as "120000" or "0.012",
// and returns the number times 10^9. More than 9 digits after the point, but for zeros
// at the end, and more than 15 before it, a sign, an exponent and separators are errors.
func ParseDecimal(s string) (*big.Int, error) {
	text := strings.TrimSpace(s)
	whole, rest, point := strings.Cut(text, ".")
	switch {
	case strings.HasPrefix(text, "-"):
		return nil, fmt.Errorf("%s is negative", clipText(text))
	case !onlyDigits(whole) || point && !onlyDigits(rest):
		return nil, fmt.Errorf("%q is not a number; expected digits, like \"120000\" or \"0.012\"", clipText(s))
	case len(strings.TrimRight(rest, "0")) > decimalDigits:
		return nil, fmt.Errorf("%s has more than %d digits after the point, and could not be kept exactly", clipText(text), decimalDigits)
	case len(strings.TrimLeft(whole, "0")) > decimalWhole:
		return nil, fmt.Errorf("%s is too large; at most %d digits may be before the point", clipText(text), decimalWhole)
	}
	rest = (rest + strings.Repeat("0", decimalDigits))[:decimalDigits]
	n, _ := new(big.Int).SetString(whole+rest, 10) // they are digits
	return n, nil
}

func onlyDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// exactBillionths returns a number times 10^9. HCL computes with 512 binary digits, in which 0.012
// is not exact: its first 30 digits after the point are what someone wrote.
func exactBillionths(f *big.Float) (*big.Int, error) {
	if f.IsInf() || f.MantExp(nil) > 64 {
		return nil, fmt.Errorf("%s is too large; at most %d digits may be before the point", f.Text('g', 12), decimalWhole)
	}
	return ParseDecimal(strings.TrimRight(strings.TrimRight(f.Text('f', 30), "0"), "."))
}
