package text

import (
	"fmt"
	"slices"
	"strings"
)

// Suggest returns the candidate that is closest to name, or "" when none is
// close enough to be a typing error. Case and the difference between "-" and
// "_" cost nothing. Without such a candidate it is the only one whose first
// words are close to name, as group_id is for "group".
func Suggest(name string, candidates []string) string {
	near, _ := nearestForm(name, candidates, func(c string) []string { return []string{c} })
	if near != "" {
		return near
	}
	near, only := nearestForm(name, candidates, firstWords)
	if !only {
		return ""
	}
	return near
}

// nearestForm returns the first candidate with the form that is closest to name, "" when none
// is close, and whether it is the only one with such a form.
func nearestForm(name string, candidates []string, forms func(string) []string) (best string, only bool) {
	cost := max(1, min(3, len(name)/3)) + 1
	for _, c := range candidates {
		for _, form := range forms(normalForm(c)) {
			switch d := editDistance(normalForm(name), form); {
			case d < cost:
				best, cost, only = c, d, true
			case d == cost && c != best:
				only = false
			}
		}
	}
	return best, only
}

// firstWords are what a name begins with, up to each "_".
func firstWords(name string) (list []string) {
	for i, r := range name {
		if r == '_' && i > 0 {
			list = append(list, name[:i])
		}
	}
	return list
}

func normalForm(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }

// editDistance is the number of insertions, deletions, replacements and swaps of
// neighbours that turn a into b. Long names are as far as can be.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 100 || len(y) > 100 {
		return 100
	}
	prev2, prev, cur := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		cur[0] = i
		for j := 1; j <= len(y); j++ {
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+costOf(x[i-1], y[j-1]))
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(y)]
}

func costOf(a, b rune) int {
	if a == b {
		return 0
	}
	return 1
}

// maxListed is how many names a list of what is allowed has at most.
const maxListed = 8

// DidYouMean is the sentence that suggests a name, or lists what is allowed: of many
// names those that are nearest.
func DidYouMean(name string, candidates []string) string {
	names := slices.Sorted(slices.Values(candidates))
	if s := Suggest(name, names); s != "" {
		return fmt.Sprintf("did you mean %q?", s)
	}
	switch len(names) {
	case 0:
		return "there are none"
	case 1:
		return "expected " + names[0]
	}
	if len(names) <= maxListed {
		return "expected one of " + strings.Join(names, ", ")
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return editDistance(normalForm(name), normalForm(a)) - editDistance(normalForm(name), normalForm(b))
	})
	near := slices.Sorted(slices.Values(names[:maxListed]))
	return fmt.Sprintf("expected one of %d names, such as %s", len(names), strings.Join(near, ", "))
}
