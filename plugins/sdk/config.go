package sdk

import (
	"slices"
	"strings"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Config is the evaluated config block of a source or an action. Decode reads it into a
// struct. The embedded Body reports what the tags of the struct cannot say, with its
// place; Err returns all problems together.
type Config struct {
	*Body
	Label   string   // of the source block: source "slurm" "<label>"
	Agent   string   // the agent's name
	DataDir string   // a folder of the source's own, kept between runs
	Wanted  []string // the attributes that the mapping names; empty: all
	// WantedKeys are the keys of attributes of type map that the mapping names, as
	// attribute.key; attribute.* where it uses the attribute as a whole.
	WantedKeys []string
	TLS        TLSFiles // the agent's own certificates; empty when it has none
	Root       Node     // the whole tree, for what the getters cannot do
	// CheckMachine is set where the configuration is checked while no daemon uses it:
	// CheckListen and CheckSocket look only then, since a running plugin has them itself.
	CheckMachine bool

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
	block := &Body{node: &root, problems: problems}
	return &Config{Body: block, Label: label, Root: root, problems: problems}
}

// ConfigOf is NewConfig of a tree as a daemon sends it.
func ConfigOf(label string, root *bursarv1.Node) *Config { return NewConfig(label, decodeNode(root)) }

func newConfig(r *bursarv1.ConfigureRequest) *Config {
	c := ConfigOf(r.GetLabel(), r.GetConfig())
	c.Agent, c.DataDir, c.Wanted, c.WantedKeys = r.GetAgent(), r.GetDataDir(), r.GetWanted(), r.GetWantedKeys()
	c.TLS = TLSFiles{CA: r.GetTls().GetCa(), Cert: r.GetTls().GetCert(), Key: r.GetTls().GetKey()}
	c.CheckMachine = r.GetCheckMachine()
	return c
}

func decodeNode(p *bursarv1.Node) Node {
	n := Node{
		Name: p.GetName(), Labels: p.GetLabels(), IsBlock: p.GetBlock(), Value: decodeValue(p.GetValue()),
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

// Err returns all problems so far as Diagnostics in the order of the file; nil when there
// are none. Of a block that was not decoded, all that it has is unknown. Warnings alone
// are returned too: the daemon prints them and goes on.
func (c *Config) Err() error {
	if !c.decoded {
		return c.Decode(new(struct{}))
	}
	all := slices.Clone(*c.problems)
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
