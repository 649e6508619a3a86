package report

import (
	"fmt"
	"slices"
	"strings"
)

// Paint is how a name is drawn: its colour, and the pattern that tells it apart from
// another name of that colour in the same chart.
type Paint struct {
	Colour  string
	Pattern int // 0: none
}

// Paints are those of names that are drawn together, in their order. A name has its own
// [Colour] where no other one has it, else the next that is free. Only when all colours
// are used do names share one, with patterns. The same names have the same paints,
// whatever their order.
func Paints(names []string) []Paint {
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(names[a], names[b]) })
	list, seen := palette(), map[string]int{}
	out := make([]Paint, len(names))
	for n, i := range order {
		at := slices.Index(list, Colour(names[i]))
		for seen[list[at]] > n/len(list) {
			at = (at + 1) % len(list)
		}
		out[i] = Paint{Colour: list[at], Pattern: seen[list[at]]}
		seen[list[at]]++
	}
	return out
}

// fill is how a shape of a table's chart is filled: with the colour, or with the pattern
// that [canvas.patterns] defines.
func (p *Paint) fill(table string) string {
	if p.Pattern == 0 {
		return p.Colour
	}
	return "url(#" + p.id(table) + ")"
}

func (p *Paint) id(table string) string {
	return fmt.Sprintf("%s-%s-%d", table, p.Colour[1:], p.Pattern)
}

// patterns defines those of paints that have one: lines in a square of 6, which repeat when
// there are more names of a colour.
func (c *canvas) patterns(table string, paints []Paint) {
	seen := map[Paint]bool{}
	list := []string{"M-1 1l2-2M0 6l6-6M5 7l2-2", "M-1 5l2 2M0 0l6 6M5-1l2 2", "M0 3h6", "M3 0v6", "M0 3h6M3 0v6", "M0 6l6-6M0 0l6 6"}
	for _, p := range paints {
		if p.Pattern == 0 || seen[p] {
			continue
		}
		seen[p] = true
		c.add(`<pattern id="%s" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" fill="%s"/><path d="%s" stroke="#fff" stroke-width="1.2"/></pattern>`,
			p.id(table), p.Colour, list[(p.Pattern-1)%len(list)])
	}
}
