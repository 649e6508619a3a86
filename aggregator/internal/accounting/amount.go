package accounting

import (
	"math/big"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Amount is an exact number of units: of a currency, of service units, of hours of
// a component. It is a multiple of 10^-15 ÷ 3600, so that every microsecond at every
// price of billionths has its whole number. The zero value is 0. It never changes.
type Amount struct{ grains *big.Int }

// The grains of amounts. What an amount of one used in a microsecond is a nano of
// an hour's unit; so is a billionth of a price for it.
const (
	grainsOfBillionth   = 3600 * 1e6
	grainsOfMicrosecond = 1e9
)

// Billionths returns n × 10^-9.
func Billionths(n *big.Int) Amount {
	return Amount{new(big.Int).Mul(n, big.NewInt(grainsOfBillionth))}
}

// AmountOf returns a sum of a sums.Worth, which is in grains.
func AmountOf(s sums.Sum) Amount { return Amount{s.Big()} }

// AmountOfHours returns a sum of amount × microseconds in hours.
func AmountOfHours(s sums.Sum) Amount {
	return Amount{new(big.Int).Mul(s.Big(), big.NewInt(grainsOfMicrosecond))}
}

// priceAmount returns what an amount for a span costs at a price for an hour in billionths.
func priceAmount(amount int64, span record.Time, billionths int64) Amount {
	n := new(big.Int).Mul(big.NewInt(amount), big.NewInt(int64(span)))
	return Amount{n.Mul(n, big.NewInt(billionths))}
}

// DecodeHCL implements hcl.ValueDecoder: it reads what hcl.Decimal reads.
func (a *Amount) DecodeHCL(v cty.Value, r hcl.Range) error {
	var d hcl.Decimal
	err := d.DecodeHCL(v, r)
	if err == nil {
		*a = Billionths(d.Billionths)
	}
	return err
}

// String writes a with all digits of an amount that is configured.
func (a Amount) String() string { return a.Decimal(9) }

func (a Amount) big() *big.Int {
	if a.grains == nil {
		return new(big.Int)
	}
	return a.grains
}

// Add returns a + b.
func (a Amount) Add(b Amount) Amount { return Amount{new(big.Int).Add(a.big(), b.big())} }

// Sub returns a - b.
func (a Amount) Sub(b Amount) Amount { return Amount{new(big.Int).Sub(a.big(), b.big())} }

// Cmp compares: -1 when a is less than b, 0 when it is the same, 1 when it is more.
func (a Amount) Cmp(b Amount) int { return a.big().Cmp(b.big()) }

// Sign is that of a: -1, 0 or 1.
func (a Amount) Sign() int { return a.big().Sign() }

// Decimal writes a with at most so many digits after the point, rounded to the
// nearest, halves away from zero, without needless zeros.
func (a Amount) Decimal(digits int) string {
	return formatQuotient(a.big(), new(big.Int).Mul(big.NewInt(grainsOfBillionth), big.NewInt(1e9)), digits)
}

// Share writes a ÷ of as [Amount.Decimal] does; of is not 0.
func (a Amount) Share(of Amount, digits int) string { return formatQuotient(a.big(), of.big(), digits) }

// Float is about a.
func (a Amount) Float() float64 {
	f, _ := new(big.Rat).SetFrac(a.big(), new(big.Int).Mul(big.NewInt(grainsOfBillionth), big.NewInt(1e9))).Float64()
	return f
}

// formatQuotient writes n ÷ d, where d is positive.
func formatQuotient(n, d *big.Int, digits int) string {
	text := new(big.Rat).SetFrac(n, d).FloatString(digits)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}
