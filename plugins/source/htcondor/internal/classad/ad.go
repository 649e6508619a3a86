package classad

import (
	"errors"
	"fmt"
	"strings"
)

// Attribute is a line of an ad.
type Attribute struct {
	Name string
	Text string // of the value, as it is written
	at   int    // where the line begins in the text
}

// Value reads the value.
func (a *Attribute) Value() Value { return Parse(a.Text) }

// Ad is an ad: its attributes in the order in which they are written. The texts are
// parts of the text that was parsed.
type Ad struct {
	Attributes []Attribute

	// Cut is the text before the ad that belongs to another, whose end is missing.
	Cut string
}

// MaxAttributes bounds an ad.
const MaxAttributes = 10_000

// ErrEmpty says that an ad lacks attributes.
var ErrEmpty = errors.New("the ad is empty")

// Read reads an ad in the long form: lines Name = Value. It replaces what a had. Where
// the text begins with a part of another ad, as behind a crash of the schedd, the whole
// ad behind it is read, and Cut has the part.
func (a *Ad) Read(text string) error {
	a.Attributes, a.Cut = a.Attributes[:0], ""
	identity := 0 // how many lines name the cluster
	for at := 0; at < len(text); {
		line, next := lineAt(text, at)
		name, value, ok := cutAttribute(line)
		if !ok {
			if isBlank(line) {
				at = next
				continue
			}
			return fmt.Errorf("%.80q is not an attribute", line)
		}
		if hasOpenString(value) {
			var err error
			if value, next, err = joinLines(text, at+len(line)-len(value), next); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if len(a.Attributes) == MaxAttributes {
			return fmt.Errorf("the ad has more than %d attributes", MaxAttributes)
		}
		a.Attributes = append(a.Attributes, Attribute{Name: name, Text: value, at: at})
		if len(name) == len(clusterID) && strings.EqualFold(name, clusterID) {
			identity++
		}
		at = next
	}
	if identity > 1 {
		a.behindCut(text)
	}
	if len(a.Attributes) == 0 {
		return ErrEmpty
	}
	return nil
}

const clusterID = "ClusterId"

// behindCut leaves only the last of several ads. HTCondor sorts the attributes of an ad
// by name, so it begins where the order breaks last before its ClusterId.
func (a *Ad) behindCut(text string) {
	i := len(a.Attributes) - 1
	for !strings.EqualFold(a.Attributes[i].Name, clusterID) {
		i--
	}
	for i > 0 && strings.ToLower(a.Attributes[i-1].Name) <= strings.ToLower(a.Attributes[i].Name) {
		i--
	}
	a.Cut = text[:a.Attributes[i].at]
	a.Attributes = a.Attributes[i:]
}

// BeginsAt reports whether an ad begins at an offset within a text, behind a part of another:
// the order of the names breaks there, and the ClusterId is still to come.
func BeginsAt(text string, offset int) bool {
	line, _ := lineAt(text, offset)
	name, _, ok := cutAttribute(line)
	if !ok || !strings.Contains("\n"+text[offset:], "\n"+clusterID+" = ") {
		return false
	}
	for before := text[:offset]; ; {
		begin := strings.LastIndexByte(strings.TrimSuffix(before, "\n"), '\n') + 1
		last, _, ok := cutAttribute(strings.TrimSuffix(before[begin:], "\n"))
		switch {
		case ok:
			within := len(before) < offset && name[0] >= 'a' && name[0] <= 'z' // within a name
			return !within && strings.ToLower(name) <= strings.ToLower(last)
		case begin == 0: // the name of its first attribute was cut
			return strings.HasPrefix(name, strings.TrimSpace(before))
		}
		before = before[:begin]
	}
}

// lineAt returns the line at an offset, without its newline, and where the next begins.
func lineAt(text string, at int) (line string, next int) {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return text[at : at+n], at + n + 1
	}
	return text[at:], len(text)
}

// cutAttribute splits a line into name and value.
func cutAttribute(line string) (name, value string, ok bool) {
	n := 0
	for n < len(line) && isName(line[n]) {
		n++
	}
	name = line[:n]
	for n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	if name == "" || n == len(line) || line[n] != '=' {
		return "", "", false
	}
	value = line[n+1:]
	if strings.HasPrefix(value, " ") && len(value) > 1 && value[1] > ' ' && value[len(value)-1] > ' ' {
		return name, value[1:], true // as HTCondor writes it
	}
	return name, strings.TrimSpace(value), true
}

func isName(c byte) bool {
	letter := c | ' '
	return letter >= 'a' && letter <= 'z' || c == '_' || c >= '0' && c <= '9' || c == '.'
}

// isBlank reports whether a line may stand between attributes.
func isBlank(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#'
}

// hasOpenString reports whether a value has a string that does not end on its line.
func hasOpenString(value string) bool {
	if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' && value[len(value)-2] != '\\' {
		return false
	}
	return strings.IndexByte(value, '"') >= 0 && isUnclosed(value)
}

func isUnclosed(text string) bool {
	open := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if open && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\') && !(text[i+1] == '"' && i+2 == len(text)) {
				i++
			}
		case '"':
			open = !open
		}
	}
	return open
}

// joinLines returns the value from an offset on whose string ends on a later line.
func joinLines(text string, from, next int) (value string, after int, err error) {
	for next < len(text) {
		line, behind := lineAt(text, next)
		if _, _, isAttribute := cutAttribute(line); isAttribute {
			break // the end is missing; what follows has its own meaning
		}
		next = behind
		if value := strings.TrimRight(text[from:next], " \t\n"); !isUnclosed(value) {
			return value, next, nil
		}
	}
	return "", 0, errors.New("the string has no end")
}
