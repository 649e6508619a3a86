package convert

import "strings"

// eachBeside calls name for each line in which something stands that is in none of the
// spans, nor in a comment.
func eachBeside(text string, spans [][]int, name func(line int, statement string)) {
	beside := []byte(text)
	for _, span := range spans {
		for i := span[0]; i < span[1]; i++ {
			if beside[i] != '\n' {
				beside[i] = ' '
			}
		}
	}
	whole := strings.Split(text, "\n")
	for i, line := range strings.Split(string(beside), "\n") {
		if line, _, _ = strings.Cut(line, "#"); strings.Trim(line, " \t\r;,\"'[]") != "" {
			name(i+1, strings.TrimSpace(whole[i]))
		}
	}
}

// lineOf is the line of a place in a text.
func lineOf(text string, at int) int {
	return 1 + strings.Count(text[:min(max(at, 0), len(text))], "\n")
}

// noteMisunderstood notes a statement. What it sets may be a secret and is not shown.
func (c *conversion) noteMisunderstood(line int, statement string) {
	const most = 60
	if before, _, sets := strings.Cut(statement, "="); sets {
		statement = before + "=…"
	}
	if words := []rune(statement); len(words) > most {
		statement = string(words[:most]) + "…"
	}
	c.noteMissed(line, "statement not understood: %s", strings.ToValidUTF8(statement, "\uFFFD"))
}
