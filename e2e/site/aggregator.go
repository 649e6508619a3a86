//go:build e2e

package site

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/local"
)

// NodeSpec says what an aggregator is. What is empty is left to the site.
type NodeSpec struct {
	Name     string
	DataDir  string
	Files    identity.Files
	Listen   string            // for its peers
	Peers    []string          // lines of the block peers; a node alone has none
	Agents   map[string]string // addresses by name
	Settings string            // HCL inside aggregator { }
	API      string            // HCL inside api { }
	Access   string            // HCL inside access { }
	Blocks   string            // HCL behind all
}

// Aggregator is an aggregator with its configuration.
type Aggregator struct {
	*Daemon
	NodeSpec

	URL    string // of the plain REST interface, which gives what clients without certificates may have
	TLSURL string
	Config string
}

// Node makes an aggregator; it does not run yet.
func (s *Site) Node(spec NodeSpec) *Aggregator {
	s.t.Helper()
	spec.Name = cmp.Or(spec.Name, "agg1")
	spec.DataDir = cmp.Or(spec.DataDir, s.path(spec.Name))
	if spec.Files.CA == "" {
		spec.Files = s.Cert(identity.Aggregator, spec.Name)
	}
	g := &Aggregator{NodeSpec: spec, URL: "http://" + s.Address(), TLSURL: "https://" + s.Address(), Config: s.path(spec.Name + ".hcl")}
	// -dev: the repository may lie below a folder such as /tmp.
	g.Daemon = s.Daemon(spec.Name, "bursar", "aggregator", "-dev", "-config", g.Config)
	g.Configure()
	return g
}

// Configure writes the configuration, after a change of the [NodeSpec].
func (g *Aggregator) Configure() {
	g.site.t.Helper()
	settings := g.Settings
	if !strings.Contains(settings, "min_free") {
		settings += "\n  min_free = \"32MiB\"" // else a tenth of the disk, which others may fill
	}
	raft := ""
	if len(g.Peers) > 0 {
		raft = fmt.Sprintf("raft {\n    listen = %q\n    peers = {\n      %s\n    }\n  }", g.Listen, strings.Join(g.Peers, "\n      "))
	}
	var text strings.Builder
	fmt.Fprintf(&text, `aggregator {
  name     = %q
  data_dir = %q
  api {
    listen     = [%q]
    tls_listen = [%q]
    %s
  }
  %s
  %s
  %s
}
access {
  plain_role = "monitor,read,write"
  %s
}
`, g.Name, g.DataDir, strings.TrimPrefix(g.URL, "http://"), strings.TrimPrefix(g.TLSURL, "https://"), g.API,
		raft, settings, tlsBlock(g.Files), g.Access)
	for _, name := range slices.Sorted(maps.Keys(g.Agents)) {
		fmt.Fprintf(&text, "agent %q { address = %q }\n", name, g.Agents[name])
	}
	g.site.Write(filepath.Base(g.Config), text.String()+g.Blocks)
}

// Add adds blocks to the configuration.
func (g *Aggregator) Add(blocks string) {
	g.site.t.Helper()
	g.Blocks += "\n" + blocks
	g.Configure()
}

// Aggregator makes an aggregator that pulls from the agents; it does not run yet.
func (s *Site) Aggregator(agents ...*Agent) *Aggregator {
	s.t.Helper()
	return s.AggregatorWith("", agents...)
}

// AggregatorWith is Aggregator with settings, HCL for the aggregator block.
func (s *Site) AggregatorWith(settings string, agents ...*Agent) *Aggregator {
	s.t.Helper()
	return s.Node(NodeSpec{Settings: settings, Agents: agentAddresses(agents)})
}

func agentAddresses(agents []*Agent) map[string]string {
	all := map[string]string{}
	for _, a := range agents {
		all[a.Name] = a.Address
	}
	return all
}

// Admin is the address at which root and the group bursar administer the node.
func (g *Aggregator) Admin() string { return "unix:" + filepath.Join(g.DataDir, "api.sock") }

// Bursar runs the operator's command on the node, see [Site.Run].
func (g *Aggregator) Bursar(args ...string) (string, error) {
	return g.site.runProgram([]string{"BURSAR_ADDR=" + g.Admin()}, "bursar", args...)
}

// Import imports files or a folder of the source typ as label, into the node.
func (g *Aggregator) Import(label, typ string, paths ...string) {
	g.site.t.Helper()
	args := []string{"import", "-dev", "-plugin-dir", filepath.Join(g.site.Bin, "plugins"), "-label", label, typ}
	out, err := g.Bursar(append(args, paths...)...)
	if err != nil {
		g.site.t.Fatal(out, err)
	}
}

// Local is a client over the unix socket; the host of its requests is localhost.
func Local(dataDir string) *http.Client {
	return &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return local.Dial(ctx, filepath.Join(dataDir, "api.sock"))
	}}}
}

// tlsBlock is the tls block of a daemon's configuration.
func tlsBlock(f identity.Files) string {
	return fmt.Sprintf("tls {\n    ca   = %q\n    cert = %q\n    key  = %q\n  }", f.CA, f.Cert, f.Key)
}
