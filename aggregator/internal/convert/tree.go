package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tree is a part of a YAML file, which remembers what was asked for. The zero tree is a
// part that is not there.
type tree struct {
	node *yaml.Node
	path string
	read map[*yaml.Node]bool // keys that were asked for
}

// parse reads a file; text that is not YAML is an empty tree.
func parse(in *Input) (tree, error) {
	t := tree{read: map[*yaml.Node]bool{}}
	if !strings.HasSuffix(in.Name, ".yml") && !strings.HasSuffix(in.Name, ".yaml") {
		return t, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(in.Text, &doc); err != nil {
		return t, err
	}
	if len(doc.Content) > 0 {
		t.node = doc.Content[0]
	}
	return t, nil
}

// pair is a key and its value.
type pair struct {
	key   string
	value tree
}

// pairs are the settings of a part, in the order of the file.
func (t tree) pairs() (all []pair) {
	if t.node == nil || t.node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(t.node.Content); i += 2 {
		key := t.node.Content[i]
		t.read[key] = true
		all = append(all, pair{key.Value, tree{t.node.Content[i+1], strings.TrimPrefix(t.path+"."+key.Value, "."), t.read}})
	}
	return all
}

// at is the part under the keys.
func (t tree) at(keys ...string) tree {
	for _, key := range keys {
		t = t.child(key, true)
	}
	return t
}

func (t tree) child(key string, read bool) tree {
	if t.node == nil || t.node.Kind != yaml.MappingNode {
		return tree{}
	}
	for i := 0; i+1 < len(t.node.Content); i += 2 {
		if name := t.node.Content[i]; name.Value == key {
			t.read[name] = t.read[name] || read
			return tree{t.node.Content[i+1], strings.TrimPrefix(t.path+"."+key, "."), t.read}
		}
	}
	return tree{}
}

// line is where it begins in its file; 0 where it is not there.
func (t tree) line() int {
	if t.node == nil {
		return 0
	}
	return t.node.Line
}

func (t tree) has(key string) bool { return t.child(key, false).node != nil }

func (t tree) there() bool { return t.node != nil && t.node.Tag != "!!null" }

func (t tree) empty() bool { return t.node == nil || len(t.node.Content) == 0 }

// tag is a YAML tag such as MetaField; "" for none of AUDITOR's.
func (t tree) tag() string {
	if t.node == nil || strings.HasPrefix(t.node.Tag, "!!") {
		return ""
	}
	return strings.TrimPrefix(t.node.Tag, "!")
}

// text is a plain value; "" for none.
func (t tree) text() string {
	if !t.there() || t.node.Kind != yaml.ScalarNode {
		return ""
	}
	return t.node.Value
}

// or is the text, or another one where there is none.
func (t tree) or(other string) string {
	if s := t.text(); s != "" {
		return s
	}
	return other
}

func (t tree) truth() bool {
	b, _ := strconv.ParseBool(strings.ToLower(t.text()))
	return b
}

func (t tree) number() (float64, bool) {
	n, err := strconv.ParseFloat(t.text(), 64)
	return n, err == nil
}

// list are the elements of a list; a plain value is a list of itself.
func (t tree) list() (all []tree) {
	if !t.there() {
		return nil
	}
	if t.node.Kind != yaml.SequenceNode {
		return []tree{t}
	}
	for i, n := range t.node.Content {
		all = append(all, tree{n, fmt.Sprintf("%s[%d]", t.path, i), t.read})
	}
	return all
}

// texts are the plain values of a list.
func (t tree) texts() (all []string) {
	for _, e := range t.list() {
		if s := e.text(); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// unread is a setting that nothing asked for, and the line of its key.
type unread struct {
	tree

	line int
}

// unread are the settings below that nothing asked for.
func (t tree) unread() (all []unread) {
	switch {
	case t.node == nil:
	case t.node.Kind == yaml.SequenceNode:
		for _, e := range t.list() {
			all = append(all, e.unread()...)
		}
	case t.node.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(t.node.Content); i += 2 {
			key := t.node.Content[i]
			value := tree{t.node.Content[i+1], strings.TrimPrefix(t.path+"."+key.Value, "."), t.read}
			if t.read[key] {
				all = append(all, value.unread()...)
			} else {
				all = append(all, unread{value, key.Line})
			}
		}
	}
	return all
}

// show writes a value on one line.
func (t tree) show() string {
	if s := t.text(); s != "" || t.node.Kind == yaml.ScalarNode {
		return s
	}
	flow := *t.node
	flow.Style = yaml.FlowStyle
	out, err := yaml.Marshal(&flow)
	if err != nil {
		return "…"
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

// sortedTexts are texts, each once.
func sortedTexts(all []string) []string { return slices.Compact(slices.Sorted(slices.Values(all))) }
