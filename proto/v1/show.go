package v1

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
)

// Show is a cell of a kind of column as people read it, see [ShowIn].
func Show(kind string, cell Cell) string { return ShowIn(kind, "", cell) }

// ShowIn is how all programs write a figure for people, on terminals, pages and charts and
// in reports, mails and messages: a cell of a kind of column in a unit. It is rounded once,
// of its exact decimal, half away from zero, with thin spaces between thousands, and a dash
// for what is not known. A duration is in seconds. Money has the decimals of its currency, however much it is; of
// other numbers small ones have more digits.
func ShowIn(kind, unit string, cell Cell) string {
	n := cell.Number()
	switch {
	case !cell.Known():
		return "–"
	case n == nil:
		return cell.String()
	}
	digits := Decimals(kind, unit, n)
	switch kind {
	case "duration":
		seconds, _ := n.Float64()
		return Duration(int64(math.Round(seconds)))
	case "share", "ratio", "change":
		text := groupThousands(new(big.Rat).Mul(n, big.NewRat(100, 1)), digits) + "\u202f%"
		if kind == "change" && n.Sign() > 0 {
			text = "+" + text
		}
		return text
	}
	return groupThousands(n, digits)
}

// Duration writes whole seconds like a scheduler: days-hours:minutes:seconds.
func Duration(s int64) string {
	sign := ""
	if s < 0 {
		sign, s = "-", -s
	}
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if s >= 86400 {
		text = fmt.Sprintf("%d-%s", s/86400, text)
	}
	return sign + text
}

// Decimals is how many digits behind the point [ShowIn] writes of a number: of a share, a
// ratio and a change those of its per cent.
func Decimals(kind, unit string, n *big.Rat) int {
	switch kind {
	case "share", "ratio", "change":
		if n.Cmp(big.NewRat(1, 1)) >= 0 || n.Cmp(big.NewRat(-1, 1)) <= 0 {
			return 0
		}
		return 1
	}
	if kind == "money" && unit == "" || Currency(unit) {
		return minorDigits(unit)
	}
	return decimalsFor(n)
}

// Show is cell i of a row of the table, in its unit.
func (t *DocumentTable) Show(row []Cell, i int) string {
	return ShowIn(t.Columns[i].Kind, t.RowUnit(row, i), row[i])
}

// RowUnit is the unit of cell i of a row of the table: that of its column or, where that has
// none, that of the row, which is in the column unit; empty where there is none.
func (t *DocumentTable) RowUnit(row []Cell, i int) string {
	if unit := t.Columns[i].Unit; unit != "" {
		return unit
	}
	at := slices.IndexFunc(t.Columns, func(c DocumentTableColumn) bool { return c.Name == "unit" && c.Kind == "text" })
	if at < 0 || at >= len(row) {
		return ""
	}
	return row[at].String()
}

// Currency reports whether a unit is money: a word that is not a unit of usage.
func Currency(unit string) bool {
	switch strings.ToLower(unit) {
	case "", "second", "seconds", "minute", "minutes", "hour", "hours", "day", "days", "su", "kwh", "wh", "kg", "gb", "gib", "mb", "mib", "s", "j", "mhz", "jobs", "records", "people", "cores", "gpus":
		return false
	}
	return strings.Trim(strings.ToLower(unit), "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// minorDigits is how many digits behind the point an amount of a currency has, by ISO 4217; of one
// that is not in it two.
func minorDigits(currency string) int {
	switch strings.ToUpper(currency) {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return 0
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 3
	case "CLF", "UYW":
		return 4
	}
	return 2
}

// decimalsFor is how many digits behind the point a number of this size needs.
func decimalsFor(n *big.Rat) int {
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

// groupThousands writes a number rounded half away from zero, and puts a thin space between
// thousands.
func groupThousands(n *big.Rat, digits int) string {
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
