package report

// Paint is how a name is drawn: its colour, which it has everywhere, and the pattern
// that tells it apart from another name of that colour in the same chart.
type Paint struct {
	Colour  string
	Pattern int // 0: none
}

// Paints are those of names that are drawn together, in their order: of names with
// one colour the first has no pattern.
func Paints(names []string) []Paint {
	seen := map[string]int{}
	out := make([]Paint, len(names))
	for i, name := range names {
		colour := Colour(name)
		out[i] = Paint{Colour: colour, Pattern: seen[colour]}
		seen[colour]++
	}
	return out
}
