package host

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/process"
)

// Command is what an agent lets actions run: a program and what its arguments look like.
type Command struct {
	words []word
	more  bool // any further arguments, each a value
}

// word is an argument as it has to be.
type word struct {
	text    string
	pattern *regexp.Regexp // nil: exactly the text
}

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
	open := func(i int) bool { return words[i] == rest || strings.Contains(words[i], "*") }
	if at, why := process.Check(words, open, true); why != "" {
		return nil, &wordError{at, why}
	}
	c := &Command{}
	for i, text := range words {
		switch {
		case text != rest:
			c.words = append(c.words, compileWord(text))
		case i != len(words)-1:
			return nil, &wordError{i, `"..." stands for all further arguments and can only be the last element`}
		default:
			c.more = true
		}
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
	return word{text, regexp.MustCompile("^(?s:" + strings.Join(parts, process.Value) + ")$")}
}

// Difference is the place of the first argument that is not as the command says, and
// why; -1: there is none.
func (c *Command) Difference(arguments []string) (int, string) {
	for i, a := range arguments {
		switch {
		case i < len(c.words) && !c.words[i].matchesArgument(a):
			return i, fmt.Sprintf("%q does not match %q", clipText(a), clipText(c.words[i].text))
		case i >= len(c.words) && !c.more:
			return i, fmt.Sprintf("%q is one argument too many", clipText(a))
		case i >= len(c.words) && !further.MatchString(a):
			return i, fmt.Sprintf(`%q does not match "..."`, clipText(a))
		}
	}
	if len(arguments) < len(c.words) {
		return len(arguments), fmt.Sprintf("%q is missing", clipText(c.words[len(arguments)].text))
	}
	return -1, ""
}

// further matches what "..." takes.
var further = regexp.MustCompile("^" + process.Value + "$")

func (w *word) matchesArgument(argument string) bool {
	if w.pattern == nil {
		return argument == w.text
	}
	return w.pattern.MatchString(argument)
}
