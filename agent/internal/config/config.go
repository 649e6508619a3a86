package config

import (
	"log/slog"
	"maps"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/hcl"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Config is a whole configuration.
type Config struct {
	Agent   Agent        `hcl:"agent,block"`
	Sources []Source     `hcl:"source,block"`
	Plugins []hcl.Plugin `hcl:"plugin,block"`
	// Allow are what actions of the aggregator may run here; without them nothing.
	Allow []AllowAction `hcl:"allow_action,block"`

	// File is what it was read from.
	File *hcl.File
}

// Agent is the block agent { … }.
type Agent struct {
	// Name is the agent's name; its certificate has to be for it.
	Name hcl.String `hcl:"name" match:"[A-Za-z0-9._-]{1,128}" want:"letters, digits, '.', '-' and '_', at most 128"`
	// DataDir is where the buffer and the sources' own folders are; default
	// /var/lib/bursar-agent.
	DataDir hcl.Path `hcl:"data_dir,optional" default:"/var/lib/bursar-agent"`
	// Listen is where aggregators pull; default port 7070 of all interfaces. Without a tls
	// block, and with Dial alone, the agent does not listen.
	Listen hcl.Address `hcl:"listen,optional"`
	// Dial are the TLS listeners (api.tls_listen) of all aggregators, at which the agent
	// dials in where they cannot reach it.
	Dial []hcl.Address `hcl:"dial,optional"`
	// TLS are the agent's certificates; nil: no one can pull.
	TLS *hcl.TLS `hcl:"tls,block"`
	// Buffer bounds the buffer.
	Buffer Buffer `hcl:"buffer,block,optional"`
	// PluginDirs are where plugins are looked for; empty: the usual places.
	PluginDirs []hcl.Path `hcl:"plugin_dirs,optional"`
	// Metrics is where Prometheus reads; nil: nowhere.
	Metrics *hcl.Metrics `hcl:"metrics,block"`
	// Log says what is logged, and how.
	Log hcl.Log `hcl:"log,block,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// Buffer is the block buffer { … }.
type Buffer struct {
	// MaxSize bounds the frames that are kept; default 8 GiB.
	MaxSize hcl.Size `hcl:"max_size,optional" default:"8GiB" min:"1MiB"`
	// Retain is for how long acknowledged frames are kept; default 30 days.
	Retain hcl.Duration `hcl:"retain,optional" default:"30d" min:"1m"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// Source is a block source "<type>" "<label>" { … }.
type Source struct {
	Type  hcl.String `hcl:"type,label" match:"[a-z0-9][a-z0-9_-]{0,63}" want:"a-z, 0-9, '-' and '_', at most 64"`
	Label hcl.String `hcl:"label,label" match:"[A-Za-z0-9._-]{1,128}" want:"letters, digits, '.', '-' and '_', at most 128"`
	// Interval is the pause between two collections; zero: what the plugin says.
	Interval hcl.Duration `hcl:"interval,optional" min:"100ms"`
	// StallTimeout is for how long a call of the plugin may make no progress; zero: as
	// package session says.
	StallTimeout hcl.Duration `hcl:"stall_timeout,optional" min:"1s"`
	// Enabled says whether the source runs; nil is true.
	Enabled *bool `hcl:"enabled"`
	// Audit says whether past days are counted by the source's second route, where
	// it has one; nil is true.
	Audit *bool `hcl:"audit"`
	// Config and Record are the bodies of these blocks; nil when absent.
	Config hcl.Body `hcl:"config,block"`
	Record hcl.Body `hcl:"record,block"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`

	// Plugin is where the plugin is and what it gets.
	Plugin Plugin
	// Tree is the evaluated config block.
	Tree *bursarv1.Node

	text   string // of the record block
	broken bool   // it cannot be shown to its plugin
}

// Plugin is where a source's plugin is.
type Plugin struct {
	Path   string // absolute; empty: looked for in the folders
	SHA256 string // 64 hexadecimal digits; empty: any
	Env    map[string]string
	// Range is where it is configured; the source's header when it is not.
	Range hcl.Range
}

// Key names the source in the buffer.
func (s *Source) Key() buffer.Source {
	return buffer.Source{Type: s.Type.Value, Label: s.Label.Value}
}

// Name is type/label.
func (s *Source) Name() string { return s.Key().String() }

// Audited says whether past days are counted.
func (s *Source) Audited() bool { return s.Audit == nil || *s.Audit }

// Same reports whether a plugin that runs for s can go on for t: all that it was
// given is the same. The interval and audits are none of this.
func (s *Source) Same(t *Source) bool {
	return s.Key() == t.Key() && s.StallTimeout.Duration == t.StallTimeout.Duration && s.text == t.text && sameNode(s.Tree, t.Tree) &&
		s.Plugin.Path == t.Plugin.Path && s.Plugin.SHA256 == t.Plugin.SHA256 && maps.Equal(s.Plugin.Env, t.Plugin.Env)
}

// sameNode compares trees without their places.
func sameNode(a, b *bursarv1.Node) bool { return proto.Equal(withoutRanges(a), withoutRanges(b)) }

func withoutRanges(n *bursarv1.Node) *bursarv1.Node {
	out := &bursarv1.Node{Name: n.GetName(), Labels: n.GetLabels(), Value: n.GetValue(), Block: n.GetBlock(), Sensitive: n.GetSensitive()}
	for _, c := range n.GetChildren() {
		out.Children = append(out.Children, withoutRanges(c))
	}
	return out
}

// Running returns the sources that are not disabled.
func (c *Config) Running() []*Source {
	var out []*Source
	for i := range c.Sources {
		if on := c.Sources[i].Enabled; on == nil || *on {
			out = append(out, &c.Sources[i])
		}
	}
	return out
}

// Sound returns the running sources that can be shown to their plugins although
// the configuration has errors elsewhere.
func (c *Config) Sound() []*Source {
	if c.File.Broken {
		return nil
	}
	return slices.DeleteFunc(c.Running(), func(s *Source) bool { return s.broken })
}

// Source returns the source of that name: type/label, or the label alone where
// only one source has it; nil when there is none.
func (c *Config) Source(name string) *Source {
	var found []*Source
	for i := range c.Sources {
		s := &c.Sources[i]
		if s.Name() == name {
			return s
		}
		if s.Label.Value == name {
			found = append(found, s)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return nil
}

// Names returns the names of all sources.
func (c *Config) Names() []string {
	var out []string
	for i := range c.Sources {
		out = append(out, c.Sources[i].Name())
	}
	return out
}

// Folder is the source's own folder.
func (c *Config) Folder(s *Source) string {
	return filepath.Join(c.Agent.DataDir.Path, "sources", s.Type.Value, s.Label.Value)
}

// BufferPath is the buffer's file.
func (c *Config) BufferPath() string { return filepath.Join(c.Agent.DataDir.Path, "buffer.db") }

// SocketPath is the control socket.
func (c *Config) SocketPath() string { return filepath.Join(c.Agent.DataDir.Path, "agent.sock") }

// BufferOptions are what the buffer is opened with.
func (c *Config) BufferOptions() buffer.Options {
	return buffer.Options{MaxSize: c.Agent.Buffer.MaxSize.Bytes, Retain: c.Agent.Buffer.Retain.Duration}
}

// Identity are the agent's certificates. Call it only with a tls block.
func (c *Config) Identity() identity.Files {
	t := c.Agent.TLS
	return identity.Files{CA: t.CA.Path, Cert: t.Cert.Path, Key: t.Key.Path}
}

// DialAddresses are where the agent dials in at aggregators.
func (c *Config) DialAddresses() (list []string) {
	for _, a := range c.Agent.Dial {
		list = append(list, a.String())
	}
	return list
}

// ListenAddress is where aggregators pull; "" when the agent does not listen.
func (c *Config) ListenAddress() string {
	switch {
	case c.Agent.TLS == nil, c.Agent.Listen.IsZero() && len(c.Agent.Dial) > 0:
		return ""
	case c.Agent.Listen.IsZero():
		return defaultListen
	}
	return c.Agent.Listen.String()
}

// MetricsAddress is where Prometheus reads, and the path; "" when nowhere.
func (c *Config) MetricsAddress() (address, path string) {
	m := c.Agent.Metrics
	if m == nil {
		return "", ""
	}
	if path = m.Path.Value; path == "" {
		path = "/metrics"
	}
	return m.Listen.String(), path
}

// PluginDirs are the folders in which plugins are looked for.
func (c *Config) PluginDirs(executable string) []string {
	if len(c.Agent.PluginDirs) == 0 {
		return []string{defaultPlugins, filepath.Join(filepath.Dir(executable), "plugins")}
	}
	var dirs []string
	for _, p := range c.Agent.PluginDirs {
		dirs = append(dirs, p.Path)
	}
	return slices.Compact(dirs)
}

// LogLevel is the least level that is logged.
func (c *Config) LogLevel() slog.Level { return c.Agent.Log.SlogLevel() }

// The defaults.
const (
	defaultListen  = "0.0.0.0:7070"
	defaultPlugins = "/usr/libexec/bursar/plugins"
)
