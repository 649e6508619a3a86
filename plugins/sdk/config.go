package sdk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/hcl"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Config is the evaluated config block of a source. Its getters, those of the
// embedded Body, take the name of an attribute and its default, and remember
// every problem with the place in the user's file; Err reports them together
// with the attributes and blocks that nobody asked for.
type Config struct {
	*Body
	Label   string   // of the source block: source "slurm" "<label>"
	Agent   string   // the agent's name
	DataDir string   // a folder of the source's own, kept between runs
	Wanted  []string // the attributes that the mapping names; empty: all
	TLS     TLSFiles // the agent's own certificates; empty when it has none
	Root    Node     // the whole tree, for what the getters cannot do

	problems *Diagnostics
	decoded  bool // all of the block has been read
}

// TLSFiles are where certificates are, in PEM. They are replaced while in use.
type TLSFiles struct{ CA, Cert, Key string }

// Node is an attribute or a block of the evaluated configuration.
type Node struct {
	Name      string
	Labels    []string // of a block
	IsBlock   bool
	Value     Value // of an attribute
	Sensitive bool  // came from a secret: never print it
	Range     Range
	Children  []Node // of a block
	// Expression is the text of an attribute that depends on what only the plugin
	// knows, such as record in an action; it has no Value then. Range is where the
	// expression begins.
	Expression string
	Elements   []Range // of a list's elements, where they are known
}

// NewConfig makes a Config from a tree, for tests of a source's Configure.
func NewConfig(label string, root Node) *Config {
	problems := new(Diagnostics)
	block := &Body{node: &root, problems: problems, asked: map[string]bool{}}
	return &Config{Body: block, Label: label, Root: root, problems: problems}
}

func newConfig(r *bursarv1.ConfigureRequest) *Config {
	c := NewConfig(r.GetLabel(), decodeNode(r.GetConfig()))
	c.Agent, c.DataDir, c.Wanted = r.GetAgent(), r.GetDataDir(), r.GetWanted()
	c.TLS = TLSFiles{CA: r.GetTls().GetCa(), Cert: r.GetTls().GetCert(), Key: r.GetTls().GetKey()}
	return c
}

func decodeNode(p *bursarv1.Node) Node {
	n := Node{
		Name: p.GetName(), Labels: p.GetLabels(), IsBlock: p.GetBlock(), Value: decode(p.GetValue()),
		Sensitive: p.GetSensitive(), Range: decodeRange(p.GetRange()),
	}
	if !n.IsBlock && len(n.Labels) == 1 {
		n.Labels, n.Expression = nil, n.Labels[0]
	}
	for _, c := range p.GetChildren() {
		n.Children = append(n.Children, decodeNode(c))
	}
	for _, r := range p.GetElements() {
		n.Elements = append(n.Elements, decodeRange(r))
	}
	return n
}

// Wants reports whether the mapping names the attribute. A source may leave the
// others Null and save the work.
func (c *Config) Wants(attribute string) bool {
	return len(c.Wanted) == 0 || slices.Contains(c.Wanted, attribute)
}

// Err returns all problems so far, and one for every attribute and block that no
// getter asked for, as Diagnostics in the order of the file; nil when there are
// none. Warnings alone are returned too: the daemon prints them and goes on.
func (c *Config) Err() error {
	all := slices.Clone(*c.problems)
	if !c.decoded {
		all = append(all, c.unknown()...)
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b Diagnostic) int {
		if d := strings.Compare(a.Subject.File, b.Subject.File); d != 0 {
			return d
		}
		return a.Subject.Start.Byte - b.Subject.Start.Byte
	})
	return all
}

// unknown reports what nobody asked for, in b and the blocks under it.
func (b *Body) unknown() Diagnostics {
	var ds Diagnostics
	for i := range b.node.Children {
		n := &b.node.Children[i]
		if !b.asked[key(n.Name, n.IsBlock)] {
			ds = append(ds, b.stranger(n))
		}
	}
	for _, sub := range b.blocks {
		ds = append(ds, sub.unknown()...)
	}
	return ds
}

func (b *Body) stranger(n *Node) Diagnostic {
	what := "attribute"
	if n.IsBlock {
		what = "block"
	}
	d := Diagnostic{Summary: "unknown " + what, Subject: n.Range}
	if b.asked[key(n.Name, !n.IsBlock)] {
		d.Detail = fmt.Sprintf("%q is written %s", n.Name, form(n.Name, !n.IsBlock))
		return d
	}
	var names []string
	for k := range b.asked {
		names = append(names, strings.TrimSuffix(k, blockMark))
	}
	d.Detail = fmt.Sprintf("%q is not known here", n.Name)
	if s := hcl.Suggest(n.Name, names); s != "" {
		d.Detail += fmt.Sprintf("; did you mean %q?", s)
	} else if len(names) > 0 {
		slices.Sort(names)
		d.Detail += "; expected one of " + strings.Join(slices.Compact(names), ", ")
	}
	return d
}

func form(name string, block bool) string {
	if block {
		return "as a block: " + name + " { … }"
	}
	return "as an attribute: " + name + " = …"
}

// blockMark tells the name of a block from that of an attribute.
const blockMark = "{"

func key(name string, block bool) string {
	if block {
		return name + blockMark
	}
	return name
}
