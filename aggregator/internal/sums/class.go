package sums

import (
	"regexp"
	"slices"
	"strings"
)

// Class is a key that follows from a meta key by patterns, such as the class of a
// host. It hides a meta key of its name in By, in People and among the dimensions;
// conditions are about meta keys.
type Class struct {
	// Name is how it is named, and From the meta key that it follows from.
	Name, From string
	// Rules say what it is: the first whose pattern matches the first value of From.
	// Where none does, the record has no value.
	Rules []Rule
}

// Rule is a pattern and what it stands for.
type Rule struct {
	Pattern *regexp.Regexp
	Value   string
}

// equalClasses reports whether two lists say the same.
func equalClasses(a, b []Class) bool {
	return slices.EqualFunc(a, b, func(a, b Class) bool {
		return a.Name == b.Name && a.From == b.From && slices.EqualFunc(a.Rules, b.Rules, func(a, b Rule) bool {
			return a.Value == b.Value && a.Pattern.String() == b.Pattern.String()
		})
	})
}

// maxRemembered bounds the values of which a basis remembers the class.
const maxRemembered = 100_000

// basis is where the value of a key comes from.
type basis struct {
	meta  string
	class *Class // nil: it is the value of meta itself
	known map[string]classed
}

// classed is the class of a value; false when no rule matches.
type classed struct {
	value string
	has   bool
}

// basisOf returns the basis of a key.
func basisOf(name string, classes []Class) basis {
	for i := range classes {
		if classes[i].Name == name {
			return basis{meta: classes[i].From, class: &classes[i], known: map[string]classed{}}
		}
	}
	return basis{meta: name}
}

// valueOf returns the value for a first value of the meta key.
func (s *basis) valueOf(value string) (string, bool) {
	if s.class == nil {
		return value, true
	}
	c, ok := s.known[value]
	if !ok {
		c.value, c.has = s.class.Of(value)
		if len(s.known) < maxRemembered {
			s.known[strings.Clone(value)] = c
		}
	}
	return c.value, c.has
}

// Of returns what the class is for a value of From; false where no rule matches.
func (c *Class) Of(value string) (string, bool) {
	for i := range c.Rules {
		if c.Rules[i].Pattern.MatchString(value) {
			return c.Rules[i].Value, true
		}
	}
	return "", false
}

// isClass reports whether a name is that of a class.
func isClass(classes []Class, name string) bool {
	return slices.ContainsFunc(classes, func(c Class) bool { return c.Name == name })
}
