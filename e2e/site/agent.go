//go:build e2e

package site

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// AgentSpec says what an agent is and collects. What is empty is left to the site.
type AgentSpec struct {
	Name    string
	Listen  string
	Dial    []string // where it dials in; it does not listen then
	DataDir string
	Sources string   // HCL
	Buffer  string   // HCL inside buffer { }
	Plugins []string // folders beside that of make build
}

// Agent is an agent with its configuration.
type Agent struct {
	*Daemon

	Name    string
	Address string
	Config  string // path
	DataDir string
	spec    AgentSpec
	files   identity.Files
}

// Agent makes an agent; it does not run yet.
func (s *Site) Agent(spec AgentSpec) *Agent {
	s.t.Helper()
	a := &Agent{
		Name: spec.Name, spec: spec, DataDir: cmp.Or(spec.DataDir, s.path(spec.Name)), Config: s.path(spec.Name + ".hcl"),
		Address: spec.Listen, files: s.Cert(identity.Agent, spec.Name),
	}
	if a.Address == "" && len(spec.Dial) == 0 {
		a.Address = s.Address()
	}
	// -dev: the repository may lie below a folder such as /tmp.
	a.Daemon = s.Daemon(spec.Name, "bursar-agent", "-dev", "-config", a.Config)
	a.Configure(spec.Sources)
	return a
}

// Use gives the agent other certificates, from its next start on.
func (a *Agent) Use(f identity.Files) {
	a.files = f
	a.Configure(a.spec.Sources)
}

// Configure writes the configuration with these sources.
func (a *Agent) Configure(sources string) {
	var dirs []string
	for _, d := range append(a.spec.Plugins, filepath.Join(a.site.Bin, "plugins")) {
		dirs = append(dirs, strconv.Quote(d))
	}
	way := fmt.Sprintf("listen      = %q", a.Address)
	if len(a.spec.Dial) > 0 {
		way = fmt.Sprintf(`dial        = ["%s"]`, strings.Join(a.spec.Dial, `", "`))
	}
	a.site.Write(filepath.Base(a.Config), fmt.Sprintf(`agent {
  name        = %q
  data_dir    = %q
  %s
  plugin_dirs = [%s]
  %s
  buffer {
    %s
  }
}

%s
`, a.Name, a.DataDir, way, strings.Join(dirs, ", "), tlsBlock(a.files), a.spec.Buffer, sources))
}

// Reload writes the configuration with these sources and lets the agent take it, while
// it runs.
func (a *Agent) Reload(sources string) {
	a.site.t.Helper()
	a.Configure(sources)
	if out, err := a.site.Run("bursar-agent", "reload", "-config", a.Config); err != nil {
		a.site.t.Fatal(out, err)
	}
}
