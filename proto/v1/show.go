package v1

import (
	"math/big"
	"strings"
)

// Show is a cell of a kind of column of a document as people read it: rounded, with thin spaces between thousands, and
// a dash for what is not known.
func Show(kind string, cell Cell) string {
	n := cell.Number()
	switch {
	case !cell.Known():
		return "–"
	case n == nil:
		return cell.String()
	}
	switch kind {
	case "share", "ratio":
		return percent(n, "")
	case "change":
		return percent(n, "+")
	case "money":
		return grouped(n, 2)
	default:
		return grouped(n, decimals(n))
	}
}

// percent writes a quotient; plus is what stands before one above zero.
func percent(n *big.Rat, plus string) string {
	hundred := new(big.Rat).Mul(n, big.NewRat(100, 1))
	digits := 1
	if hundred.Cmp(big.NewRat(100, 1)) >= 0 || hundred.Cmp(big.NewRat(-100, 1)) <= 0 {
		digits = 0
	}
	if n.Sign() <= 0 {
		plus = ""
	}
	return plus + grouped(hundred, digits) + "\u202f%"
}

// decimals is how many digits behind the point a number of this size needs.
func decimals(n *big.Rat) int {
	size := new(big.Rat).Abs(n)
	switch {
	case n.IsInt(), size.Cmp(big.NewRat(100, 1)) >= 0:
		return 0
	case size.Cmp(big.NewRat(1, 1)) >= 0:
		return 2
	default:
		return 4
	}
}

// grouped rounds half away from zero, and puts a thin space between thousands.
func grouped(n *big.Rat, digits int) string {
	text := n.FloatString(digits)
	sign, whole := "", text
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, whole = "−", rest
	}
	whole, part, _ := strings.Cut(whole, ".")
	var b strings.Builder
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(c)
	}
	if strings.Trim(whole+part, "0") == "" {
		sign = ""
	}
	if part != "" {
		b.WriteByte('.')
		b.WriteString(part)
	}
	return sign + b.String()
}
