package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// Bounds of the search for the ids of a job.
const (
	mostBranches = 64    // that begin with a prefix
	mostRoots    = 1_024 // words that ids begin with
	mostSeeks    = 8_192
)

// errSeeks ends a search that looked up enough.
var errSeeks = errors.New("the search for the ids of a job looked up enough")

// JobIDs calls yield with the ids under which something is held, or that are deleted, and that
// consist of a prefix, job and nothing else or a suffix that no letter or digit begins: of
// 4711, for example nemo-4711, grid2-4711_3 and 4711-1767225600. It returns false where ids
// may be left out.
//
// No index has the ids by job, so the prefixes of all ids are found first, by seeks in the order
// of ids: from each prefix on to the next. A prefix ends where a word or a number begins. Where
// more than 64 numbers, or words, follow a prefix, they are of jobs, and not looked into.
func (v *View) JobIDs(job string, yield func(id string) error) (whole bool, err error) {
	if job == "" {
		return true, nil
	}
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: []byte{tableIndex}, UpperBound: []byte{tableIndex + 1}})
	if err != nil {
		return false, fmt.Errorf("ids of job %q: %w", job, markCorrupt(err))
	}
	s := jobSearch{it: it, job: job, yield: yield}
	err = s.searchPrefixes()
	if s.cut = errors.Is(err, errSeeks) || s.cut; errors.Is(err, errSeeks) {
		err = nil
	}
	if e := it.Close(); err == nil && e != nil {
		err = fmt.Errorf("ids of job %q: %w", job, markCorrupt(e))
	}
	return !s.cut, err
}

// jobSearch is a search for the ids of a job.
type jobSearch struct {
	it    *pebble.Iterator
	job   string
	yield func(string) error
	seeks int
	cut   bool
}

// searchPrefixes looks for the job behind all prefixes, the shorter ones first.
func (s *jobSearch) searchPrefixes() error {
	for level := []string{""}; len(level) > 0; {
		var next []string
		for _, prefix := range level {
			if err := s.yieldBehind(prefix); err != nil {
				return err
			}
		}
		for _, prefix := range level {
			branches, err := s.branchesOf(prefix)
			if err != nil {
				return err
			}
			next = append(next, branches...)
		}
		level = next
	}
	return nil
}

// seek returns the first id that is not less than from; "" where there is none.
func (s *jobSearch) seek(from string) (string, error) {
	if s.seeks++; s.seeks > mostSeeks {
		return "", errSeeks
	}
	if !s.it.SeekGE(textKey(tableIndex, from)) {
		return "", s.it.Error()
	}
	return keyText(s.it.Key()), nil
}

// yieldBehind yields the ids that are a prefix, the job and a suffix.
func (s *jobSearch) yieldBehind(prefix string) error {
	if endsInTask(prefix) {
		return nil
	}
	stem, passed := prefix+s.job, 0
	id, err := s.seek(stem)
	for err == nil && strings.HasPrefix(id, stem) {
		if above := aboveWord(id[len(stem):]); above != "" {
			id, err = s.seek(stem + above)
			continue
		}
		if rest := id[len(stem):]; isInsideWord(prefix, rest) {
			next := id + "\x00"
			if above := aboveWord(rest[1:]); above != "" && (!isDigit(rest[1]) || passed == mostPassed) {
				next = stem + "-" + above
			}
			passed++
			id, err = s.seek(next)
			continue
		}
		if err := s.yield(id); err != nil {
			return err
		}
		if id = ""; s.it.Next() {
			id = keyText(s.it.Key())
		} else {
			err = s.it.Error()
		}
	}
	return err
}

// endsInTask reports whether what follows a prefix is a task of an array: its number stands
// behind that of the array.
func endsInTask(prefix string) bool {
	n := len(prefix)
	return n > 1 && (prefix[n-1] == '_' || prefix[n-1] == '.') && isDigit(prefix[n-2])
}

// mostPassed bounds the numbers that are looked at behind the name of a source.
const mostPassed = 100

// isInsideWord reports whether the job between a prefix and a suffix is a part of a word: digits of
// a UUID, or of the name of a source. A later run has the time of its start behind it, in seconds.
func isInsideWord(prefix, suffix string) bool {
	n := len(prefix)
	return n > 0 && isWordByte(prefix[n-1]) && len(suffix) > 1 && suffix[0] == '-' &&
		(len(suffix) < len("-100000000") || strings.ContainsFunc(suffix[1:], func(c rune) bool { return c < '0' || c > '9' }))
}

// aboveWord is what is above all texts that begin with the kind of s: digits, large or small
// letters; "" where s begins with none.
func aboveWord(s string) string {
	switch {
	case s == "":
	case isDigit(s[0]):
		return ":"
	case 'A' <= s[0] && s[0] <= 'Z':
		return "["
	case 'a' <= s[0] && s[0] <= 'z':
		return "{"
	}
	return ""
}

// branchesOf returns the prefixes that begin with a prefix and have one word or number more.
// Numbers, and words, of which there are too many to be prefixes are left out.
func (s *jobSearch) branchesOf(prefix string) ([]string, error) {
	var numbers, words []string
	seenNumbers, seenWords, most := 0, 0, mostBranches
	if prefix == "" {
		most = mostRoots
	}
	id, err := s.seek(prefix)
	for err == nil && id != "" && strings.HasPrefix(id, prefix) {
		rest, next := id[len(prefix):], id+"\x00"
		branch := ""
		if n := branchLength(rest); n > 0 {
			branch = prefix + rest[:n]
			next = string(prefixEnd([]byte(branch)))
		}
		switch {
		case rest == "":
		case isDigit(rest[0]):
			if numbers = appendBranch(numbers, branch); seenNumbers == mostBranches {
				numbers, next = nil, prefix+":" // which is above all digits
			}
			seenNumbers++
		default:
			if words = appendBranch(words, branch); seenWords == most {
				s.cut = s.cut || prefix == ""
				return numbers, nil
			}
			seenWords++
		}
		id, err = s.seek(next)
	}
	return append(numbers, words...), err
}

func appendBranch(list []string, branch string) []string {
	if branch == "" {
		return list
	}
	return append(list, branch)
}

// branchLength returns where the second word or number of a text begins; 0 where it has one.
func branchLength(s string) int {
	for i := 1; i < len(s); i++ {
		if isWordByte(s[i]) && (!isWordByte(s[i-1]) || isDigit(s[i]) && !isDigit(s[i-1])) {
			return i
		}
	}
	return 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isWordByte reports whether c is of a letter or a digit; all that is not ASCII is taken for letters.
func isWordByte(c byte) bool {
	return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}
