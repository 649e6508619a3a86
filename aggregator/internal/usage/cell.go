package usage

import (
	"encoding/json"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"math"
	"strconv"
	"unicode/utf8"
)

// appendFigure writes cell i of figures of the column as a JSON number. It writes null
// where there is none: the mean and the quotient of nothing.
func (c *Column) appendFigure(b []byte, f *figures, i int) []byte {
	switch c.Kind {
	case Count:
		return strconv.AppendUint(b, f.n[i], 10)
	case Rate, Total, Worth:
		if f.isUnknown(i) {
			break
		}
		return c.appendSum(b, f.sum[i])
	case Weighted:
		return appendReal(b, f.real[i]/c.unitScale())
	case Mean:
		if f.n[i] == 0 {
			break
		}
		return f.sum[i].Over(f.n[i]).AppendDecimal(b)
	case Supply:
		if !f.sum[i].IsZero() {
			return c.appendSum(b, f.sum[i])
		}
	case Ratio, Level:
		if v, ok := c.cellValue(f, i); ok {
			return appendReal(b, v)
		}
	}
	return append(b, "null"...)
}

// appendSum writes a sum in the column's unit.
func (c *Column) appendSum(b []byte, s sums.Sum) []byte {
	if s.IsZero() {
		return append(b, '0')
	}
	return c.toMillionths(s).AppendDecimal(b)
}

// appendReal writes a number that is not whole; without exponent, as spreadsheets
// like it.
func appendReal(b []byte, v float64) []byte {
	switch {
	case v == 0:
		return append(b, '0')
	case math.IsNaN(v), math.IsInf(v, 0):
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}

// hasNoFigure reports whether the column has no figure for a group: the same person may
// be in several of those that were put together.
func (s *Table) hasNoFigure(c *Column, g int) bool { return c.apart && s.Groups[g].Others > 0 }

// appendCell writes the figure of a group in a bucket.
func (s *Table) appendCell(b []byte, c *Column, g, bucket int) []byte {
	if s.hasNoFigure(c, g) || s.isUnknown(c, g, bucket) {
		return append(b, "null"...)
	}
	return c.appendFigure(b, &c.cells, g*s.bucketCount()+bucket)
}

// appendWhole writes the figure of a group in the whole window.
func (s *Table) appendWhole(b []byte, c *Column, g int) []byte {
	if c.whole == nil || s.hasNoFigure(c, g) || s.isWholeUnknown(c, g) {
		return append(b, "null"...)
	}
	return c.appendFigure(b, c.whole, g)
}

// appendBefore writes the figure of a group in the other window.
func (s *Table) appendBefore(b []byte, c *Column, g int) []byte {
	if s.hasNoFigure(c, g) || s.isBeforeUnknown(c, g) {
		return append(b, "null"...)
	}
	return c.appendFigure(b, c.before, g)
}

// appendDifference writes how much more there is in the window than in the other.
func (s *Table) appendDifference(b []byte, c *Column, g int) []byte {
	if c.whole == nil || s.hasNoFigure(c, g) || !s.isComparable(c, g) {
		return append(b, "null"...)
	}
	switch c.Kind {
	case Count:
		return strconv.AppendInt(b, int64(c.whole.n[g]-c.before.n[g]), 10)
	case Rate, Total, Worth:
		if c.whole.isUnknown(g) || c.before.isUnknown(g) {
			return append(b, "null"...)
		}
		return c.appendSum(b, c.whole.sum[g].Sub(c.before.sum[g]))
	case Weighted, Mean, Ratio, Supply, Level:
	}
	now, ok := c.cellValue(c.whole, g)
	before, had := c.cellValue(c.before, g)
	if !ok || !had {
		return append(b, "null"...)
	}
	return appendReal(b, now-before)
}

// appendRelative writes the difference as a part of what was before: 1 is twice as
// much. It is null where there was nothing, or less than nothing of what is not used.
func (s *Table) appendRelative(b []byte, c *Column, g int) []byte {
	if c.whole == nil || s.hasNoFigure(c, g) || !s.isComparable(c, g) {
		return append(b, "null"...)
	}
	now, ok := c.cellValue(c.whole, g)
	before, had := c.cellValue(c.before, g)
	if !ok || !had || before <= 0 {
		return append(b, "null"...)
	}
	return appendReal(b, (now-before)/before)
}

// appendQuoted writes a text in JSON.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= utf8.RuneSelf || s[i] == '"' || s[i] == '\\' {
			text, _ := json.Marshal(s) // a text always has one in JSON
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// orNull writes a text in JSON, null for none.
func orNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendQuoted(b, s)
}

// appendComma separates element i from the one before.
func appendComma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}
