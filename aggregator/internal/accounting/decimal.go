package accounting

import (
	"fmt"
	"math/big"

	"github.com/bursar-accounting/bursar/hcl"
)

// Decimal is a number ≥ 0 with up to nine digits after the point: billionths, at most
// 10^9 of ones.
type Decimal int64

// One is the number 1.
const One Decimal = 1_000_000_000

const most = 1_000_000_000 // that a Decimal may be

// ParseDecimal reads a number such as 12 or 1.9, as [hcl.ParseDecimal] does.
func ParseDecimal(text string) (Decimal, error) {
	n, err := hcl.ParseDecimal(text)
	if err != nil {
		return 0, err
	}
	if n.Cmp(big.NewInt(most*int64(One))) > 0 {
		return 0, fmt.Errorf("%q is more than %d", clipText(text), most)
	}
	return Decimal(n.Int64()), nil
}

// String writes the number without zeros that say nothing.
func (d Decimal) String() string { return hcl.Decimal{Billionths: big.NewInt(int64(d))}.String() }

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
