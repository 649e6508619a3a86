package report

import (
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
)

// Paint is how a name is drawn: its colour, and the pattern that tells it apart from
// another name of that colour in the same chart.
type Paint struct {
	Colour  string
	Pattern int // 0: none
}

// Paints are those of names that are drawn together, in their order. A name has its own
// [Colour], whatever is beside it; other names of that colour have patterns, by the order
// of the alphabet. The same names have the same paints, whatever their order.
func Paints(names []string) []Paint {
	paints, seen := map[string]Paint{}, map[string]int{}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if _, again := paints[name]; again {
			continue
		}
		if view.IsOthers(name) {
			paints[name] = Paint{Colour: OthersColour}
			continue
		}
		colour := Colour(name)
		paints[name] = Paint{Colour: colour, Pattern: seen[colour]}
		seen[colour]++
	}
	out := make([]Paint, len(names))
	for i, name := range names {
		out[i] = paints[name]
	}
	return out
}

// svgFill is how a shape of a table's chart is filled: with the colour, or with the pattern
// that [canvas.definePatterns] defines.
func (p *Paint) svgFill(table string) string {
	if p.Pattern == 0 {
		return p.Colour
	}
	return "url(#" + p.patternID(table) + ")"
}

func (p *Paint) patternID(table string) string {
	return fmt.Sprintf("%s-%s-%d", table, p.Colour[1:], p.Pattern)
}

// definePatterns defines those of paints that have one: lines in a square of 6, which repeat when
// there are more names of a colour.
func (c *canvas) definePatterns(table string, paints []Paint) {
	seen := map[Paint]bool{}
	list := []string{"M-1 1l2-2M0 6l6-6M5 7l2-2", "M-1 5l2 2M0 0l6 6M5-1l2 2", "M0 3h6", "M3 0v6", "M0 3h6M3 0v6", "M0 6l6-6M0 0l6 6"}
	for _, p := range paints {
		if p.Pattern == 0 || seen[p] {
			continue
		}
		seen[p] = true
		c.addMarkup(`<pattern id="%s" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" fill="%s"/><path d="%s" stroke="#fff" stroke-width="1.2"/></pattern>`,
			p.patternID(table), p.Colour, list[(p.Pattern-1)%len(list)])
	}
}
