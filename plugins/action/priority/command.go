package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/process"
)

// word is what a placeholder may become.
var word = regexp.MustCompile("^" + process.Value + "$")

// checkWord returns why a text may not reach an argument.
func checkWord(s string) error {
	if word.MatchString(s) {
		return nil
	}
	return fmt.Errorf("%.80q may not reach the argument of a program; allowed are 1 to 64 letters, digits and _ . @ + -, of which the first is a letter, a digit or _", s)
}

// placeholder is what stands in an argument for something else.
var placeholder = regexp.MustCompile(`\{[A-Za-z0-9_]*\}`)

// command is a program and its arguments, with placeholders.
type command []string

const maxArguments = 100

// checkCommand returns why a command is not allowed, whatever the group; allowed are its
// placeholders beside {1}, {2} and so on.
func (c command) checkCommand(allowed ...string) error {
	if len(c) > maxArguments {
		return fmt.Errorf("it has %d elements; at most %d are allowed", len(c), maxArguments)
	}
	// No input reaches these programs.
	if _, why := process.Check(c, func(i int) bool { return placeholder.MatchString(c[i]) }, false); why != "" {
		return errors.New(why)
	}
	for _, arg := range c {
		for _, p := range placeholder.FindAllString(arg, -1) {
			if _, numbered := paramNumber(p); !numbered && !slices.Contains(allowed, p) {
				return fmt.Errorf("%q: unknown placeholder %s; expected %s, or {1}, {2} … for the group's params", arg, p, strings.Join(allowed, ", "))
			}
		}
	}
	return nil
}

// paramNumber is the number of {1}, {2} and so on.
func paramNumber(p string) (int, bool) {
	n, err := strconv.Atoi(strings.Trim(p, "{}"))
	return n, err == nil && n > 0 && p == fmt.Sprintf("{%d}", n)
}

// placeholdersUsed returns how many params a command refers to, and whether to {group}.
func (c command) placeholdersUsed() (params int, group bool) {
	for _, arg := range c {
		for _, p := range placeholder.FindAllString(arg, -1) {
			n, _ := paramNumber(p)
			params = max(params, n)
			group = group || p == "{group}"
		}
	}
	return params, group
}

// fillPlaceholders puts values in the place of placeholders. What has no value stays.
func (c command) fillPlaceholders(values map[string]string) []string {
	out := make([]string, len(c))
	for i, arg := range c {
		out[i] = placeholder.ReplaceAllStringFunc(arg, func(p string) string {
			if v, ok := values[p]; ok {
				return v
			}
			return p
		})
	}
	return out
}
