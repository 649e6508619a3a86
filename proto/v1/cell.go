package v1

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Cell is a text or an exact number; the zero Cell is not known.
type Cell struct {
	text   string
	number *big.Rat
	digits string // the number as it came
	known  bool
}

// Words is a cell with a text.
func Words(s string) Cell { return Cell{text: s, known: true} }

// Figure is a cell with a number as JSON has it; not known when there is none.
func Figure(n *json.Number) Cell {
	if n == nil || *n == "" {
		return Cell{}
	}
	r := Rational(n.String())
	if r == nil {
		return Cell{}
	}
	return Cell{number: r, digits: n.String(), known: true}
}

// Rational reads a number of JSON; nil for what is none, or is too long or too large
// to be meant.
func Rational(s string) *big.Rat {
	_, power, _ := strings.Cut(strings.ToLower(s), "e")
	if exponent, err := strconv.Atoi(power); power != "" && (err != nil || exponent < -400 || exponent > 400) {
		return nil
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || len(s) > 200 {
		return nil
	}
	return r
}

// Rat is a cell with a number.
func Rat(r *big.Rat) Cell {
	if r == nil {
		return Cell{}
	}
	return Cell{number: r, digits: formatExact(r), known: true}
}

// Known reports whether there is something in the cell.
func (c Cell) Known() bool { return c.known }

// Number returns the number of the cell; nil when it has none. It must not be
// changed.
func (c Cell) Number() *big.Rat { return c.number }

// String is the cell with all its digits; empty when it is not known.
func (c Cell) String() string {
	if c.number != nil {
		return c.digits
	}
	return c.text
}

// MarshalJSON writes a string, a number or null.
func (c Cell) MarshalJSON() ([]byte, error) {
	switch {
	case !c.known:
		return []byte("null"), nil
	case c.number != nil:
		return json.Marshal(json.Number(c.digits))
	}
	return json.Marshal(c.text)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Cell) UnmarshalJSON(data []byte) error {
	*c = Cell{}
	switch {
	case string(data) == "null":
		return nil
	case len(data) > 0 && data[0] == '"':
		c.known = true
		return json.Unmarshal(data, &c.text)
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return fmt.Errorf("a cell is neither a text nor a number: %w", err)
	}
	*c = Figure(&n)
	if !c.known {
		return fmt.Errorf("the number %.40q of a cell does not read", n)
	}
	return nil
}

// places is how many digits behind the point are written of what has more.
const places = 9

// formatExact writes a number without zeros at its end.
func formatExact(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	s := r.FloatString(places)
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}
