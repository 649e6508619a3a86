package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Action is a block action "type" "label" { … }: what is to be done with the totals;
// the whole cluster has it.
type Action struct {
	// Type is the plugin's, and Label tells actions of one type apart.
	Type  hcl.String `hcl:"type,label" match:"[a-z0-9][a-z0-9_-]{0,63}" want:"a-z, 0-9, '-' and '_', at most 64"`
	Label hcl.String `hcl:"label,label" match:"[A-Za-z0-9._-]{1,128}" want:"letters, digits, '.', '-' and '_', at most 128"`
	// Schedule is when it runs; not written: when its plugin says.
	Schedule hcl.String `hcl:"schedule,optional"`
	// Zone is the time zone of the schedule; that of the site when it is not written.
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

// recordVariable is what expressions of a config block may name that only plugins
// have: the record at hand.
const recordVariable = "record"

// evaluateConfig evaluates the config block.
func (a *Action) evaluateConfig(ctx *hcl.EvalContext, sources hcl.Sources) (diags hcl.Diagnostics) {
	if a.Config == nil {
		a.tree = hcl.Tree{Range: a.Range}
		return nil
	}
	a.tree, diags = hcl.EvaluateLater(a.Config, ctx, sources, recordVariable)
	return diags
}

func (a *CommittedAction) validateSchedule() hcl.Diagnostics {
	var r reader
	_, err := action.ParseSchedule(a.Schedule.Value, r.readZone(a.Zone))
	r.addProblem("schedule", a.Schedule, err)
	return r.diags
}

// evaluateActions reads the config blocks of all actions.
func (c *Config) evaluateActions(ctx *hcl.EvalContext, sources hcl.Sources) (diags hcl.Diagnostics) {
	for i := range c.Actions {
		diags.Extend(c.Actions[i].evaluateConfig(ctx, sources))
		diags.Extend(c.Actions[i].evaluateRunOn(ctx))
	}
	return diags
}

// validateActions reports what is wrong with actions and their plugins.
func (c *Config) validateActions() hcl.Diagnostics {
	var diags hcl.Diagnostics
	used := map[string]bool{}
	for i := range c.Actions {
		diags.Extend(c.validateRunOn(&c.Actions[i]))
		used[c.Actions[i].Type.Value] = true
	}
	for i := range c.Plugins {
		p := &c.Plugins[i]
		switch {
		case p.Type.Value == "source":
			diags.Add(hcl.Errorf(p.Type.Range, "invalid plugin", "an aggregator has plugins of actions only; those of sources belong to the agents"))
		case p.Type.Value == "action" && !used[p.Name.Value]:
			diags.Add(hcl.Warnf(p.Range, "unused plugin", "no action has the type %q; %s", p.Name.Value, hcl.DidYouMean(p.Name.Value, slices.Collect(maps.Keys(used)))))
		}
	}
	return diags
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
		shared := a.committedAction()
		out = append(out, LocalAction{
			Name: a.Name(), Digest: shared.contentDigest(), Full: sha256Hex(mustJSON(treeOf("config", nil, a.tree.Nodes, false))), Config: host.Tree(a.tree), Range: a.Range,
		})
	}
	return out
}

func sha256Hex(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("config: encode: %v", err)) // it holds texts, numbers and booleans
	}
	return text
}

// CommittedAction is an action as it is committed.
type CommittedAction struct {
	Type     hcl.String `hcl:"type,label"`
	Label    hcl.String `hcl:"label,label"`
	Schedule hcl.String `hcl:"schedule,optional"`
	Zone     hcl.String `hcl:"zone,optional"`
	RunOn    hcl.String `hcl:"run_on,optional"`
	Config   tree       `hcl:"config,optional"`
	Range    hcl.Range  `hcl:",def_range"`
}

// committedAction is the action as the whole cluster has it. What is secret does not leave this
// node: a mark stands for it.
func (a *Action) committedAction() CommittedAction {
	return CommittedAction{
		Type: a.Type, Label: a.Label, Schedule: a.Schedule, Zone: a.Zone, RunOn: a.runOn, Config: treeOf("", nil, a.tree.Nodes, true), Range: a.Range,
	}
}

// Name is type/label.
func (a *CommittedAction) Name() action.Name {
	return action.Name{Type: a.Type.Value, Label: a.Label.Value}
}

func (a *CommittedAction) contentDigest() string { return sha256Hex(hcl.EncodeJSON(a)) }

// tree is a block of a plugin's configuration, its members in the order of their names.
type tree struct {
	Blocks []tree         `json:"blocks,omitempty"`
	Labels []string       `json:"labels,omitempty"`
	Type   string         `json:"type,omitempty"`
	Values map[string]any `json:"values,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler; numbers stay as they are written.
func (t *tree) UnmarshalJSON(text []byte) error {
	type plain tree
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	in.DisallowUnknownFields()
	return in.Decode((*plain)(t))
}

// treeOf is the tree of nodes; mask leaves secrets out.
func treeOf(typ string, labels []string, nodes []hcl.Node, mask bool) tree {
	t := tree{Type: typ, Labels: labels}
	for _, n := range nodes {
		if n.Block {
			t.Blocks = append(t.Blocks, treeOf(n.Name, n.Labels, n.Children, mask))
			continue
		}
		if t.Values == nil {
			t.Values = map[string]any{}
		}
		if n.Expression != "" {
			t.Values[n.Name] = map[string]any{expressionMark: n.Expression}
		} else {
			t.Values[n.Name] = plainValue(n.Value, mask)
		}
	}
	return t
}

// The marks of values that JSON does not have, of those that are not shown, and of
// expressions that plugins evaluate.
const (
	secretMark     = "$secret"
	nullMark       = "$null"
	expressionMark = "$expression"
)

func plainValue(v hcl.Value, mask bool) any {
	switch {
	case v.Kind == hcl.KindList:
		out := make([]any, len(v.List))
		for i, e := range v.List {
			out[i] = plainValue(e, mask)
		}
		return out
	case v.Kind == hcl.KindMap:
		out := make(map[string]any, len(v.Map))
		for _, e := range v.Map {
			out[e.Key] = plainValue(e.Value, mask)
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

func (a *CommittedAction) sharedAction() (SharedAction, error) {
	out := SharedAction{Name: a.Name(), Schedule: a.Schedule.Value, Zone: a.Zone.Value, RunOn: a.RunOn.Value, Digest: a.contentDigest()}
	a.Config.Type = "config"
	var err error
	out.Config, err = out.configNode(&a.Config)
	return out, err
}

// configNode is a block as plugins get it, without places.
func (a *SharedAction) configNode(t *tree) (*bursarv1.Node, error) {
	out := &bursarv1.Node{Name: t.Type, Labels: t.Labels, Block: true, Range: &bursarv1.Range{}}
	for _, name := range slices.Sorted(maps.Keys(t.Values)) {
		one := &bursarv1.Node{Name: name, Range: &bursarv1.Range{}}
		var err error
		if text, ok := expressionText(t.Values[name]); ok {
			one.Labels = []string{text}
		} else if one.Value, err = translate.ValueOf(t.Values[name], a.readMark); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out.Children = append(out.Children, one)
	}
	for i := range t.Blocks {
		inner, err := a.configNode(&t.Blocks[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Blocks[i].Type, err)
		}
		out.Children = append(out.Children, inner)
	}
	return out, nil
}

// expressionText is the text of an attribute that the plugin evaluates.
func expressionText(v any) (string, bool) {
	object, _ := v.(map[string]any)
	text, ok := object[expressionMark].(string)
	return text, ok && len(object) == 1
}

// readMark reads the marks of what JSON does not have, and of what is only in the files.
func (a *SharedAction) readMark(v map[string]any) (*bursarv1.Value, error) {
	if len(v) != 1 || v[nullMark] != true && v[secretMark] != true {
		return nil, nil
	}
	a.Secrets = a.Secrets || v[secretMark] == true
	return &bursarv1.Value{}, nil
}
