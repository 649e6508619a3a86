package config

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Action is a block action "type" "label" { … }: what is to be done with the totals;
// the whole cluster has it.
type Action struct {
	// Type is the plugin's, and Label tells actions of one type apart.
	Type  hcl.String `hcl:"type,label"`
	Label hcl.String `hcl:"label,label"`
	// Schedule is when it runs; not written: when its plugin says.
	Schedule hcl.String `hcl:"schedule,optional"`
	// Zone is the time zone of the schedule; UTC when it is not written.
	Zone hcl.String `hcl:"zone,optional"`
	// RunOn is the agent on which its programs run, as agent.NAME or "NAME"; not
	// written: where the plugin is, on the leader.
	RunOn hcl.Expression `hcl:"run_on,optional"`
	// Config is for the plugin; nil when absent.
	Config hcl.Body `hcl:"config,block"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`

	tree  hcl.Tree   // the evaluated config block
	runOn hcl.String // the name of RunOn
}

// Name is type/label.
func (a *Action) Name() action.Name {
	return action.Name{Type: a.Type.Value, Label: a.Label.Value}
}

// typeName is a plugin's, as its file can be named.
var typeName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// recordVariable is what expressions of a config block may name that only plugins
// have: the record at hand.
const recordVariable = "record"

// evaluate reads the config block.
func (a *Action) evaluate(ctx *hcl.EvalContext, sources hcl.Sources) (diags hcl.Diagnostics) {
	if a.Config == nil {
		a.tree = hcl.Tree{Range: a.Range}
		return nil
	}
	a.tree, diags = hcl.EvaluateLater(a.Config, ctx, sources, recordVariable)
	return diags
}

func (a *Action) validate() hcl.Diagnostics {
	var diags hcl.Diagnostics
	if !typeName.MatchString(a.Type.Value) {
		diags.Add(hcl.Errorf(a.Type.Range, "invalid action type", "%q is not the name of a plugin type: only a-z, 0-9, - and _ are allowed", a.Type.Value))
	}
	if err := identity.CheckName(a.Label.Value); err != nil {
		diags.Add(hcl.Errorf(a.Label.Range, "invalid label", "%q: use letters, digits, dots, dashes and underscores, at most 128", a.Label.Value))
	}
	zone, err := calendar.Zone(a.Zone.Value)
	if err != nil {
		diags.Add(hcl.Errorf(a.Zone.Range, `invalid value for "zone"`, "%v", err))
		zone = time.UTC
	}
	if _, err := action.ParseSchedule(a.Schedule.Value, zone); err != nil {
		diags.Add(hcl.Errorf(a.Schedule.Range, `invalid value for "schedule"`, "%v", err))
	}
	return diags
}

// evaluateActions reads the config blocks of all actions.
func (c *Config) evaluateActions(ctx *hcl.EvalContext, sources hcl.Sources) (diags hcl.Diagnostics) {
	for i := range c.Actions {
		diags.Extend(c.Actions[i].evaluate(ctx, sources))
		diags.Extend(c.Actions[i].evaluateRunOn(ctx))
	}
	return diags
}

// validateActions reports what is wrong with actions and their plugins.
func (c *Config) validateActions() hcl.Diagnostics {
	var diags hcl.Diagnostics
	used := map[string]bool{}
	for i := range c.Actions {
		diags.Extend(c.Actions[i].validate())
		diags.Extend(c.validateRunOn(&c.Actions[i]))
		used[c.Actions[i].Type.Value] = true
	}
	for i := range c.Plugins {
		p := &c.Plugins[i]
		switch {
		case p.Type.Value == "source":
			diags.Add(hcl.Errorf(p.Type.Range, "invalid plugin", "an aggregator has plugins of actions only; those of sources belong to the agents"))
		case p.Type.Value == "action" && !used[p.Name.Value]:
			diags.Add(hcl.Warnf(p.Range, "unused plugin", "no action has the type %q%s", p.Name.Value, meant(hcl.Suggest(p.Name.Value, slices.Sorted(maps.Keys(used))))))
		}
	}
	return diags
}

func meant(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", s)
}

// Plugin is where a plugin of actions is on this node, and what it gets.
type Plugin struct {
	Path   string // absolute; "": in one of the folders of plugins
	SHA256 string // 64 hexadecimal digits; "": any
	Env    map[string]string
}

// ActionPlugins are those of which something is said, by their type.
func (c *Config) ActionPlugins() map[string]Plugin {
	out := map[string]Plugin{}
	for i := range c.Plugins {
		p := &c.Plugins[i]
		plugin := Plugin{SHA256: p.SHA256.Value, Env: map[string]string{}}
		for name, v := range p.Env {
			plugin.Env[name] = v.Value
		}
		if p.Path != nil {
			plugin.Path, _ = filepath.Abs(p.Path.Path) // only a working directory that is gone is an error
		}
		out[p.Name.Value] = plugin
	}
	return out
}

// PluginDirs are the folders in which plugins are looked for.
func PluginDirs(executable string) []string {
	return []string{"/usr/libexec/bursar/plugins", filepath.Join(filepath.Dir(executable), "plugins")}
}

// LocalAction is an action as this node's files have it, secrets included.
type LocalAction struct {
	Name action.Name
	// Digest is that of [SharedAction] when both say the same, Full that of all of it.
	Digest, Full string
	Config       *bursarv1.Node
	Range        hcl.Range
}

// LocalActions are the actions of this node's files.
func (c *Config) LocalActions() []LocalAction {
	var out []LocalAction
	for i := range c.Actions {
		a := &c.Actions[i]
		b := a.block()
		out = append(out, LocalAction{
			Name: a.Name(), Digest: clusterconfig.New(b).Digest().String(), Full: fullDigest(a.tree.Nodes), Config: host.Tree(a.tree), Range: a.Range,
		})
	}
	return out
}

// fullDigest is a digest of values, secrets included.
func fullDigest(nodes []hcl.Node) string {
	b := clusterconfig.Block{Type: "config"}
	fill(&b, nodes, false)
	return fmt.Sprintf("%x", sha256.Sum256(clusterconfig.New(b).Encode()))
}

func actionBlocks(c *Config) (list []clusterconfig.Block) {
	for i := range c.Actions {
		list = append(list, c.Actions[i].block())
	}
	return list
}

func (a *Action) block() clusterconfig.Block {
	b := clusterconfig.Block{Type: "action", Labels: []string{a.Type.Value, a.Label.Value}, At: place(a.Range)}
	for name, v := range map[string]hcl.String{"schedule": a.Schedule, "zone": a.Zone, "run_on": a.runOn} {
		if v.Value != "" {
			b.Set(name, v.Value, place(v.Range))
		}
	}
	config := clusterconfig.Block{Type: "config", At: place(a.tree.Range)}
	fill(&config, a.tree.Nodes, true)
	b.Blocks = []clusterconfig.Block{config}
	return b
}

// fill puts attributes and blocks into a block. What is secret does not leave this
// node: a mark stands for it.
func fill(b *clusterconfig.Block, nodes []hcl.Node, mask bool) {
	for _, n := range nodes {
		if n.Block {
			inner := clusterconfig.Block{Type: n.Name, Labels: n.Labels, At: place(n.Range)}
			fill(&inner, n.Children, mask)
			b.Blocks = append(b.Blocks, inner)
			continue
		}
		if n.Expression != "" {
			b.Set(n.Name, map[string]any{expressionMark: n.Expression}, place(n.Range))
			continue
		}
		b.Set(n.Name, plain(n.Value, mask), place(n.Range))
	}
}

// The marks of values that JSON does not have, of those that are not shown, and of
// expressions that plugins evaluate.
const (
	secretMark     = "$secret"
	nullMark       = "$null"
	expressionMark = "$expression"
)

func plain(v hcl.Value, mask bool) any {
	switch {
	case v.Kind == hcl.KindList:
		out := make([]any, len(v.List))
		for i, e := range v.List {
			out[i] = plain(e, mask)
		}
		return out
	case v.Kind == hcl.KindMap:
		out := make(map[string]any, len(v.Map))
		for _, e := range v.Map {
			out[e.Key] = plain(e.Value, mask)
		}
		return out
	case v.Sensitive && mask:
		return map[string]any{secretMark: true}
	case v.Kind == hcl.KindNull:
		return map[string]any{nullMark: true}
	case v.Kind == hcl.KindFloat && v.Float == float64(int64(v.Float)):
		return json.Number(fmt.Sprintf("%.1f", v.Float))
	}
	return v.Interface()
}

// SharedAction is an action as the whole cluster has it.
type SharedAction struct {
	Name           action.Name
	Schedule, Zone string
	RunOn          string // the agent on which its programs run; "": on the leader
	Config         *bursarv1.Node
	// Secrets says that some values are only in the files.
	Secrets bool
	Digest  string
}

func readAction(s *Shared, b *clusterconfig.Block) error {
	if len(b.Labels) != 2 || len(b.Blocks) != 1 || b.Blocks[0].Type != "config" {
		return fmt.Errorf("want 2 labels and the block config")
	}
	if err := only(&clusterconfig.Block{Type: b.Type, Labels: b.Labels, Values: b.Values}, 2, "schedule", "zone", "run_on"); err != nil {
		return err
	}
	a := SharedAction{Name: action.Name{Type: b.Labels[0], Label: b.Labels[1]}, Digest: clusterconfig.New(*b).Digest().String()}
	if err := identity.CheckName(a.Name.Label); err != nil || !typeName.MatchString(a.Name.Type) {
		return fmt.Errorf("%q is not the name of an action", a.Name)
	}
	var err error
	if a.Schedule, err = b.Text("schedule"); err != nil {
		return err
	}
	if a.Zone, err = b.Text("zone"); err != nil {
		return err
	}
	if a.RunOn, err = b.Text("run_on"); err != nil {
		return err
	}
	zone, err := calendar.Zone(a.Zone)
	if err != nil {
		return err
	}
	if _, err := action.ParseSchedule(a.Schedule, zone); err != nil {
		return err
	}
	if a.Config, err = a.node(&b.Blocks[0]); err != nil {
		return err
	}
	s.Actions = append(s.Actions, a)
	return nil
}

// node is a block as plugins get it, without places.
func (a *SharedAction) node(b *clusterconfig.Block) (*bursarv1.Node, error) {
	out := &bursarv1.Node{Name: b.Type, Labels: b.Labels, Block: true, Range: &bursarv1.Range{}}
	for _, name := range slices.Sorted(maps.Keys(b.Values)) {
		in := json.NewDecoder(strings.NewReader(string(b.Values[name])))
		in.UseNumber()
		var v any
		err := in.Decode(&v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		one := &bursarv1.Node{Name: name, Range: &bursarv1.Range{}}
		if text, ok := expression(v); ok {
			one.Labels = []string{text}
		} else if one.Value, err = a.value(v); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out.Children = append(out.Children, one)
	}
	for i := range b.Blocks {
		inner, err := a.node(&b.Blocks[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Blocks[i].Name(), err)
		}
		out.Children = append(out.Children, inner)
	}
	return out, nil
}

// expression is the text of an attribute that the plugin evaluates.
func expression(v any) (string, bool) {
	object, _ := v.(map[string]any)
	text, ok := object[expressionMark].(string)
	return text, ok && len(object) == 1
}

func (a *SharedAction) value(v any) (*bursarv1.Value, error) {
	switch v := v.(type) {
	case string:
		return &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: v}}, nil
	case bool:
		return &bursarv1.Value{Kind: &bursarv1.Value_BoolValue{BoolValue: v}}, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: n}}, nil
		}
		f, err := v.Float64()
		return &bursarv1.Value{Kind: &bursarv1.Value_FloatValue{FloatValue: f}}, err
	case []any:
		list := &bursarv1.ListValue{}
		for _, e := range v {
			value, err := a.value(e)
			if err != nil {
				return nil, err
			}
			list.Values = append(list.Values, value)
		}
		return &bursarv1.Value{Kind: &bursarv1.Value_ListValue{ListValue: list}}, nil
	case map[string]any:
		return a.object(v)
	}
	return nil, fmt.Errorf("%v is no value", v)
}

func (a *SharedAction) object(v map[string]any) (*bursarv1.Value, error) {
	if len(v) == 1 && v[nullMark] == true {
		return &bursarv1.Value{}, nil
	}
	if len(v) == 1 && v[secretMark] == true {
		a.Secrets = true
		return &bursarv1.Value{}, nil
	}
	object := &bursarv1.MapValue{Values: map[string]*bursarv1.Value{}}
	for key, e := range v {
		value, err := a.value(e)
		if err != nil {
			return nil, err
		}
		object.Values[key] = value
	}
	return &bursarv1.Value{Kind: &bursarv1.Value_MapValue{MapValue: object}}, nil
}
