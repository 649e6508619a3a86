package errand

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/program"
)

// Command is what may be run: a program and what its arguments look like.
type Command struct {
	words []word
	more  bool // any further arguments, each a value
}

// word is an argument as it has to be.
type word struct {
	text    string
	pattern *regexp.Regexp // nil: exactly the text
}

// value is what a star stands for. It can be no option, no path and no list.
const value = `[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}`

// rest is the last word of a command that may have further arguments.
const rest = "..."

// wordError is what is wrong with a word of a command.
type wordError struct {
	at  int
	why string
}

// Error implements error.
func (e *wordError) Error() string { return e.why }

// Place is the place of the word that an error of [Compile] is about.
func Place(err error) int {
	if e, ok := errors.AsType[*wordError](err); ok {
		return e.at
	}
	return 0
}

// Compile reads a command: the absolute path of a program and its arguments, in which *
// stands for a value. The last one may be "...": any further values.
func Compile(words []string) (*Command, error) {
	if len(words) == 0 {
		return nil, errors.New("it is empty; the first element is the path of the program")
	}
	c := &Command{}
	open := func(i int) bool { return words[i] == rest || strings.Contains(words[i], "*") }
	if at, why := program.Check(words, open, true); why != "" && unfit(words, 0) == "" {
		return nil, &wordError{at, why}
	}
	for i, text := range words {
		if why := unfit(words, i); why != "" {
			return nil, &wordError{i, why}
		}
		if text == rest {
			c.more = true
			break
		}
		c.words = append(c.words, compileWord(text))
	}
	return c, nil
}

func compileWord(text string) word {
	if !strings.Contains(text, "*") {
		return word{text: text}
	}
	parts := strings.Split(text, "*")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return word{text, regexp.MustCompile("^(?s:" + strings.Join(parts, value) + ")$")}
}

// unfit says why a word has no place in a command; "": it has.
func unfit(words []string, i int) string {
	text := words[i]
	switch {
	case strings.ContainsRune(text, 0):
		return "an argument cannot have a zero byte"
	case i == 0 && (!filepath.IsAbs(text) || filepath.Clean(text) != text):
		return fmt.Sprintf("%q is not the absolute path of a program; there is no shell and no search for programs", text)
	case i == 0 && strings.Contains(text, "*"):
		return fmt.Sprintf("%q leaves open which program it is; write it out", text)
	case text == rest && i != len(words)-1:
		return `"..." stands for all further arguments and can only be the last element`
	}
	return ""
}

// difference is the place of the first argument that is not as the command says, and
// why; -1: there is none.
func (c *Command) difference(arguments []string) (int, string) {
	for i, a := range arguments {
		switch {
		case i < len(c.words) && !c.words[i].matches(a):
			return i, fmt.Sprintf("%s does not match %s", quote(a), quote(c.words[i].text))
		case i >= len(c.words) && !c.more:
			return i, quote(a) + " is one argument too many"
		case i >= len(c.words) && !plain.MatchString(a):
			return i, quote(a) + ` does not match "..."`
		}
	}
	if len(arguments) < len(c.words) {
		return len(arguments), quote(c.words[len(arguments)].text) + " is missing"
	}
	return -1, ""
}

// plain matches what "..." takes.
var plain = regexp.MustCompile("^" + value + "$")

func (w *word) matches(argument string) bool {
	if w.pattern == nil {
		return argument == w.text
	}
	return w.pattern.MatchString(argument)
}
