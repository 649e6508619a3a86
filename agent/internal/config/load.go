package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/proto/local"
)

// Load reads the files and directories and returns all problems that the files
// alone show. The configuration is never nil; it can be used when no diagnostic
// is an error.
func Load(paths ...string) (*Config, hcl.Diagnostics) {
	c := new(Config)
	file, diags := hcl.Load(paths...)
	return c, append(diags, c.decodeFile(file)...)
}

// Parse is Load of one file that is in memory.
func Parse(name string, src []byte) (*Config, hcl.Diagnostics) {
	c := new(Config)
	file, diags := hcl.Parse(name, src)
	return c, append(diags, c.decodeFile(file)...)
}

func (c *Config) decodeFile(file *hcl.File) hcl.Diagnostics {
	c.File = file
	diags := hcl.Decode(file, c, file.Context())
	if file.Broken {
		return nil // Load has said why
	}
	diags.Extend(c.Agent.checkSettings())
	for i := range c.Sources {
		s := &c.Sources[i]
		named := !slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool { return d.Subject != nil && d.Subject.Overlaps(s.Range) })
		problems := append(s.evaluateConfig(file), s.checkLabel()...)
		s.broken = !named || problems.HasErrors()
		diags.Extend(problems)
	}
	for i := range c.Allow {
		diags.Extend(c.Allow[i].compileRule())
	}
	diags.Extend(c.assignPlugins())
	diags.Extend(c.checkLabels())
	if len(c.Sources) == 0 && !diags.HasErrors() { // otherwise one may be meant by what is wrong
		diags.Add(hcl.Warnf(c.Agent.Range, "no sources", "the agent collects nothing until it has a source block"))
	}
	return diags
}

// checkSettings says what is wrong beyond the types, also when a type is.
func (a *Agent) checkSettings() hcl.Diagnostics {
	var diags hcl.Diagnostics
	if !a.Listen.IsZero() && a.TLS == nil {
		diags.Add(hcl.Errorf(a.Listen.Range, "listen without tls", "aggregators pull by mutual TLS only; add a tls block with ca, cert and key to this agent block"))
	}
	diags.Extend(a.checkDial())
	if a.TLS == nil && a.Listen.IsZero() && len(a.Dial) == 0 && a.Range != (hcl.Range{}) {
		diags.Add(hcl.Warnf(a.Range, "no aggregator can pull", "the agent collects into its buffer only, until it has a tls block with ca, cert and key"))
	}
	if m := a.Metrics; m != nil && !m.Listen.IsZero() && !local.IsLoopback(m.Listen.Host) {
		diags.Add(hcl.Warnf(m.Listen.Range, "metrics for everyone", "%s is no loopback address, and the page has no password", m.Listen))
	}
	return diags
}

// checkDial says what is wrong with the addresses to dial.
func (a *Agent) checkDial() hcl.Diagnostics {
	var diags hcl.Diagnostics
	seen := map[string]bool{}
	for i, to := range a.Dial {
		switch address := to.String(); {
		case to.Host == "" || to.Port == 0:
			diags.Add(invalidValue(to.Range, "dial", "%q cannot be connected to; expected host:port of an aggregator", address))
		case seen[address]:
			diags.Add(invalidValue(to.Range, "dial", "%s is given more than once", address))
		case i == 0 && a.TLS == nil:
			diags.Add(hcl.Errorf(to.Range, "dial without tls", "aggregators pull by mutual TLS only; add a tls block with ca, cert and key to this agent block"))
		}
		seen[to.String()] = true
	}
	return diags
}

// checkLabel says whether the label can name a folder.
func (s *Source) checkLabel() hcl.Diagnostics {
	if s.Label.Value == "." || s.Label.Value == ".." {
		return hcl.Diagnostics{hcl.Errorf(s.Label.Range, "invalid label", "%q cannot name a folder", s.Label)}
	}
	return nil
}

func invalidValue(r hcl.Range, name, format string, args ...any) *hcl.Diagnostic {
	return hcl.Errorf(r, fmt.Sprintf("invalid value for %q", name), format, args...)
}

// evaluateConfig reads the config block and remembers the text of the record block.
func (s *Source) evaluateConfig(file *hcl.File) hcl.Diagnostics {
	s.text = textOf(s.Record, file.Sources)
	if s.Config == nil {
		s.Tree = host.EmptyTree(s.Range)
		return nil
	}
	tree, diags := hcl.Evaluate(s.Config, file.Context())
	s.Tree = host.Tree(tree)
	return diags
}

// textOf is the source of a body; "" for none.
func textOf(body hcl.Body, sources hcl.Sources) string {
	if body == nil {
		return ""
	}
	src := sources[body.SrcRange.Filename]
	from, to := body.SrcRange.Start.Byte, body.EndRange.End.Byte
	if from < 0 || to > len(src) || from > to {
		return ""
	}
	return string(src[from:to])
}

// assignPlugins gives every source its plugin block.
func (c *Config) assignPlugins() hcl.Diagnostics {
	var diags hcl.Diagnostics
	blocks := map[string]*hcl.Plugin{}
	for i := range c.Plugins {
		p := &c.Plugins[i]
		if p.Type.Value == "action" {
			diags.Add(hcl.Errorf(p.Type.Range, "invalid plugin", "an agent has plugins of sources only; action plugins belong to the aggregator"))
		}
		blocks[p.Name.Value] = p
	}
	used := map[string]bool{}
	for i := range c.Sources {
		s := &c.Sources[i]
		used[s.Type.Value] = true
		diags.Extend(s.setPlugin(blocks[s.Type.Value]))
	}
	for i := range c.Plugins {
		if p := &c.Plugins[i]; p.Type.Value == "source" && !used[p.Name.Value] {
			diags.Add(hcl.Warnf(p.Range, "unused plugin", "no source has the type %q; %s", p.Name, hcl.DidYouMean(p.Name.Value, slices.Collect(maps.Keys(used)))))
		}
	}
	return diags
}

// setPlugin notes where the plugin is.
func (s *Source) setPlugin(p *hcl.Plugin) hcl.Diagnostics {
	s.Plugin = Plugin{Range: s.Range}
	if p == nil {
		return nil
	}
	s.Plugin = Plugin{SHA256: p.SHA256.Value, Env: map[string]string{}, Range: p.Range}
	for name, v := range p.Env {
		s.Plugin.Env[name] = v.Value
	}
	if p.Path == nil {
		return nil
	}
	s.Plugin.Range = p.Path.Range
	path, err := filepath.Abs(p.Path.Path)
	if err != nil {
		return hcl.Diagnostics{invalidValue(p.Path.Range, "path", "%v", err)}
	}
	s.Plugin.Path = path
	return nil
}

// checkLabels reports labels that two sources have.
func (c *Config) checkLabels() hcl.Diagnostics {
	var diags hcl.Diagnostics
	labels := map[string]*Source{}
	for i := range c.Sources {
		s := &c.Sources[i]
		if other := labels[s.Label.Value]; other != nil && other.Type.Value != s.Type.Value {
			diags.Add(hcl.Warnf(s.Label.Range, "label used twice", "the source %q has the same label; where record ids begin with the label, both make the same ids", other.Name()))
		}
		labels[s.Label.Value] = s
	}
	return diags
}
