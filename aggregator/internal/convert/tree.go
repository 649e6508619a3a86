package convert

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tree is a part of a YAML file, or of several of which one lies over the other. The zero tree
// is a part that is not there.
type tree struct {
	node *yaml.Node
	path string
	*marks
}

// marks are about the nodes of a tree.
type marks struct {
	read  map[*yaml.Node]bool   // keys that were asked for
	files map[*yaml.Node]string // with their paths
}

func newMarks() *marks {
	return &marks{read: map[*yaml.Node]bool{}, files: map[*yaml.Node]string{}}
}

// parseInput reads a file; text that is not YAML is an empty tree.
func parseInput(in *Input) (tree, error) {
	t := tree{marks: newMarks()}
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
	left := maxNodes
	return t, resolveAliases(&doc, nil, &left, func(n *yaml.Node) { t.files[n] = in.Name })
}

// over is the tree laid over another one: its settings win.
func (t tree) over(under tree) tree {
	m := newMarks()
	for _, part := range []tree{under, t} {
		if part.marks != nil {
			maps.Copy(m.files, part.files)
		}
	}
	return tree{node: m.overlay(under.node, t.node), marks: m}
}

// overlay is the settings of two parts, of which those of the upper one win.
func (m *marks) overlay(under, upper *yaml.Node) *yaml.Node {
	switch {
	case upper == nil:
		return under
	case under == nil || under.Kind != yaml.MappingNode || upper.Kind != yaml.MappingNode:
		return upper
	}
	out := *upper
	m.files[&out] = m.files[upper]
	out.Content = slices.Clone(upper.Content)
	for i := 0; i+1 < len(under.Content); i += 2 {
		at := keyNode(upper.Content, under.Content[i].Value)
		if at < 0 {
			out.Content = append(out.Content, under.Content[i], under.Content[i+1])
		} else {
			out.Content[at+1] = m.overlay(under.Content[i+1], upper.Content[at+1])
		}
	}
	return &out
}

// maxNodes is how many values a file may have once its aliases are resolved.
const maxNodes = 100_000

// resolveAliases puts what anchors name in the place of aliases, also of those of merge keys.
// above are the parts that n is in; each part is visited.
func resolveAliases(n *yaml.Node, above []*yaml.Node, left *int, visit func(*yaml.Node)) error {
	if *left--; *left < 0 {
		return errors.New("the aliases make the file too large")
	}
	visit(n)
	above = append(above, n)
	for i, part := range n.Content {
		if part.Kind == yaml.AliasNode {
			if slices.Contains(above, part.Alias) {
				return fmt.Errorf("line %d: the anchor %s contains itself", part.Line, part.Value)
			}
			part = part.Alias
			n.Content[i] = part
		}
		if err := resolveAliases(part, above, left, visit); err != nil {
			return err
		}
	}
	if n.Kind == yaml.MappingNode {
		mergeKeys(n)
	}
	return nil
}

// mergeKeys puts the settings that the keys << of a mapping name beside its own, which win.
func mergeKeys(n *yaml.Node) {
	var own, merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.ShortTag() != "!!merge":
			own = append(own, key, value)
		case value.Kind == yaml.SequenceNode:
			merged = append(merged, value.Content...)
		default:
			merged = append(merged, value)
		}
	}
	for _, m := range merged {
		for i := 0; i+1 < len(m.Content) && m.Kind == yaml.MappingNode; i += 2 {
			if keyNode(own, m.Content[i].Value) < 0 {
				own = append(own, m.Content[i], m.Content[i+1])
			}
		}
	}
	n.Content = own
}

// keyNode is where the key is among keys and their values; -1 where it is not.
func keyNode(pairs []*yaml.Node, key string) int {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i].Value == key {
			return i
		}
	}
	return -1
}

// pair is a key and its value.
type pair struct {
	key   string
	value tree
}

// listPairs are the settings of a part, in the order of the file.
func (t tree) listPairs() (all []pair) {
	if t.node == nil || t.node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(t.node.Content); i += 2 {
		key := t.node.Content[i]
		t.read[key] = true
		all = append(all, pair{key.Value, tree{t.node.Content[i+1], strings.TrimPrefix(t.path+"."+key.Value, "."), t.marks}})
	}
	return all
}

// subtree is the part under the keys.
func (t tree) subtree(keys ...string) tree {
	for _, key := range keys {
		t = t.childOf(key, true)
	}
	return t
}

func (t tree) childOf(key string, read bool) tree {
	if t.node == nil || t.node.Kind != yaml.MappingNode {
		return tree{}
	}
	for i := 0; i+1 < len(t.node.Content); i += 2 {
		if name := t.node.Content[i]; name.Value == key {
			t.read[name] = t.read[name] || read
			return tree{t.node.Content[i+1], strings.TrimPrefix(t.path+"."+key, "."), t.marks}
		}
	}
	return tree{}
}

// errorAt is an error about a part, with its file and line.
func (t tree) errorAt(format string, args ...any) error {
	return placed{Problem{t.files[t.node], t.node.Line, fmt.Sprintf(format, args...)}}
}

func (t tree) hasKey(key string) bool { return t.childOf(key, false).node != nil }

func (t tree) isThere() bool { return t.node != nil && t.node.Tag != "!!null" }

func (t tree) isEmpty() bool { return t.node == nil || len(t.node.Content) == 0 }

// yamlTag is a YAML tag such as MetaField; "" for none of AUDITOR's.
func (t tree) yamlTag() string {
	if t.node == nil || strings.HasPrefix(t.node.Tag, "!!") {
		return ""
	}
	return strings.TrimPrefix(t.node.Tag, "!")
}

// plainText is a plain value; "" for none.
func (t tree) plainText() string {
	if !t.isThere() || t.node.Kind != yaml.ScalarNode {
		return ""
	}
	return t.node.Value
}

// textOr is the text, or another one where there is none.
func (t tree) textOr(other string) string {
	if s := t.plainText(); s != "" {
		return s
	}
	return other
}

func (t tree) truthValue() bool {
	b, _ := strconv.ParseBool(strings.ToLower(t.plainText()))
	return b
}

func (t tree) numberValue() (float64, bool) {
	n, err := strconv.ParseFloat(t.plainText(), 64)
	return n, err == nil
}

// listElements are the elements of a list; a plain value is a list of itself.
func (t tree) listElements() (all []tree) {
	if !t.isThere() {
		return nil
	}
	if t.node.Kind != yaml.SequenceNode {
		return []tree{t}
	}
	for i, n := range t.node.Content {
		all = append(all, tree{n, fmt.Sprintf("%s[%d]", t.path, i), t.marks})
	}
	return all
}

// listTexts are the plain values of a list.
func (t tree) listTexts() (all []string) {
	for _, e := range t.listElements() {
		if s := e.plainText(); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// unread is a setting that nothing asked for, and the place of its key.
type unread struct {
	tree

	file string // with its path
	line int
}

// listUnread are the settings below that nothing asked for.
func (t tree) listUnread() (all []unread) {
	switch {
	case t.node == nil:
	case t.node.Kind == yaml.SequenceNode:
		for _, e := range t.listElements() {
			all = append(all, e.listUnread()...)
		}
	case t.node.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(t.node.Content); i += 2 {
			key := t.node.Content[i]
			value := tree{t.node.Content[i+1], strings.TrimPrefix(t.path+"."+key.Value, "."), t.marks}
			if t.read[key] {
				all = append(all, value.listUnread()...)
			} else {
				all = append(all, unread{value, t.files[key], key.Line})
			}
		}
	}
	return all
}

// showValue writes a value on one line.
func (t tree) showValue() string {
	if s := t.plainText(); s != "" || t.node.Kind == yaml.ScalarNode {
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
