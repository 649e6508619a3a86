package usage

// cellSize is about how many bytes a cell takes.
const cellSize = 16

// SizeJSON guesses how many bytes the table takes in JSON, so that they are not
// copied while it grows.
func (s *Table) SizeJSON() int {
	const head = 512
	return head + len(s.Edges)*45 + len(s.Groups)*64 + len(s.Columns)*(head+len(s.Groups)*(s.buckets()+2)*cellSize)
}
