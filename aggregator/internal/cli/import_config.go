package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// file is a configuration with the source block of an import; an agent's will do.
type file struct {
	Agent   *agentBlock   `hcl:"agent,block"`
	Sources []sourceBlock `hcl:"source,block"`
	Plugins []hcl.Plugin  `hcl:"plugin,block"`
}

type agentBlock struct {
	PluginDirs []hcl.Path `hcl:"plugin_dirs,optional"`
	Rest       hcl.Body   `hcl:",remain"`
}

type sourceBlock struct {
	Type   hcl.String `hcl:"type,label"`
	Label  hcl.String `hcl:"label,label"`
	Config hcl.Body   `hcl:"config,block"`
	Record hcl.Body   `hcl:"record,block"`
	Rest   hcl.Body   `hcl:",remain"`
}

// settings are what an import needs of its configuration.
type settings struct {
	label   string
	tree    *bursarv1.Node
	record  hcl.Body
	dir     string
	plugin  hcl.Plugin
	dirs    []string
	sources hcl.Sources
}

// readSettings reads the configuration of an import, if it has one.
func readSettings(spec *ImportSpec) (*settings, hcl.Diagnostics) {
	s := &settings{label: spec.Label, dirs: spec.Dirs, tree: host.EmptyTree(hcl.Range{})}
	var diags hcl.Diagnostics
	if spec.Config != "" {
		diags = s.loadImportConfig(spec)
	}
	if s.label == "" {
		s.label = spec.Type
	}
	if err := identity.CheckName(s.label); err != nil {
		diags.Add(hcl.Errorf(hcl.Range{}, "invalid label", "%q: use letters, digits, dots, dashes and underscores, at most 128", s.label))
	}
	s.tree.Children = append(slices.DeleteFunc(s.tree.Children, func(n *bursarv1.Node) bool { return n.GetName() == importKey }), importNode(spec.Files))
	return s, diags
}

func (s *settings) loadImportConfig(spec *ImportSpec) hcl.Diagnostics {
	var cfg file
	loaded, diags := hcl.Load(spec.Config)
	diags.Extend(hcl.Decode(loaded, &cfg, loaded.Context()))
	s.sources, s.dir = loaded.Sources, loaded.Dir
	if diags.HasErrors() {
		return diags
	}
	if cfg.Agent != nil && len(spec.Dirs) == 0 {
		for _, p := range cfg.Agent.PluginDirs {
			s.dirs = append(s.dirs, p.Path)
		}
	}
	for _, p := range cfg.Plugins {
		if p.Type.Value == "source" && p.Name.Value == spec.Type {
			s.plugin = p
		}
	}
	b, err := cfg.pickSource(spec)
	if err != nil {
		diags.Add(hcl.Errorf(hcl.Range{Filename: spec.Config}, "no source to import as", "%v", err))
		return diags
	}
	s.label, s.record = b.Label.Value, b.Record
	if b.Config != nil {
		tree, more := hcl.Evaluate(b.Config, loaded.Context())
		diags.Extend(more)
		s.tree = host.Tree(tree)
	}
	return diags
}

// pickSource finds the source block of the type: that of the label, or the only one.
func (f *file) pickSource(spec *ImportSpec) (*sourceBlock, error) {
	var found []*sourceBlock
	var labels []string
	for i := range f.Sources {
		b := &f.Sources[i]
		if b.Type.Value != spec.Type {
			continue
		}
		labels = append(labels, b.Label.Value)
		if spec.Label == "" || spec.Label == b.Label.Value {
			found = append(found, b)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(labels) == 0:
		return nil, fmt.Errorf("there is no block source %q \"LABEL\" { … }", spec.Type)
	case len(found) == 0:
		return nil, fmt.Errorf("no source %q has the label %q; there are %s", spec.Type, spec.Label, strings.Join(labels, ", "))
	}
	return nil, fmt.Errorf("there are several sources %q; choose one by its label: %s", spec.Type, strings.Join(labels, ", "))
}

// importKey is the attribute by which a source gets files instead of following
// one.
const importKey = "import"

// commandLine is the file of that attribute.
const commandLine = "command line"

// importNode is the attribute as if it stood in the config block.
func importNode(files []string) *bursarv1.Node {
	list := &bursarv1.ListValue{}
	n := &bursarv1.Node{Name: importKey, Range: &bursarv1.Range{File: commandLine, StartLine: 1, StartColumn: 1}}
	for _, f := range files {
		list.Values = append(list.Values, &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: f}})
		n.Elements = append(n.Elements, n.GetRange())
	}
	n.Value = &bursarv1.Value{Kind: &bursarv1.Value_ListValue{ListValue: list}}
	return n
}

// absolutePaths makes the names independent of the folder in which a plugin runs.
// Sources take them for patterns; a file that is there is meant as it is written. Addresses
// stay as they are.
func absolutePaths(files []string) ([]string, error) {
	out := make([]string, len(files))
	for i, f := range files {
		if strings.Contains(f, "://") { // an address
			out[i] = f
			continue
		}
		path, err := filepath.Abs(f)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err == nil {
			path = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
		} else if !strings.ContainsAny(path, "*?[") {
			return nil, err
		}
		out[i] = path
	}
	return out, nil
}
