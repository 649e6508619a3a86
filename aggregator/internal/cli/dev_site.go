package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/schedulers"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/setup"
)

// name of the aggregator and of the agent.
const name = "dev"

// site is what a run consists of.
type site struct {
	bursar, agent   string // programs
	configs         own    // of both, those of the user first
	listen          string // of the aggregator
	socket          string // of the aggregator
	agentListen     string
	keys            identity.Files // of the aggregator
	dir             string
	source          string // in words
	blocks          string // of the aggregator, beside its own: access
	temporary       bool
	waitsForRecords bool
	demo            bool // the aggregator has the configuration of the demo
}

// prepareSite finds the programs and the schedulers and writes certificates and
// configurations into dir.
func prepareSite(ctx context.Context, opt DevOptions, dir string) (*site, error) {
	s := &site{bursar: opt.Executable, dir: dir, socket: filepath.Join(dir, "api.sock"), temporary: opt.DataDir == ""}
	var err error
	if s.agent, err = findBeside(opt.Executable, "bursar-agent"); err != nil {
		return nil, err
	}
	if s.listen, err = listenAddress(opt); err != nil {
		return nil, err
	}
	if s.agentListen, err = freePort(loopback); err != nil {
		return nil, err
	}
	if s.keys, err = makeCertificates(filepath.Join(dir, "tls")); err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	if s.configs, err = sortOut(opt.Config); err != nil {
		return nil, err
	}
	plugins := pluginDirs(opt.Executable)
	if !s.configs.access {
		s.blocks += "\naccess {\n  plain_role = \"none\"\n}\n"
	}
	source, err := s.sourceBlocks(ctx, opt, plugins)
	if err != nil {
		return nil, err
	}
	aggregatorConfig, agentConfig := filepath.Join(dir, "aggregator.hcl"), filepath.Join(dir, "agent.hcl")
	s.configs.aggregator = append(s.configs.aggregator, aggregatorConfig)
	s.configs.agent = append(s.configs.agent, agentConfig)
	return s, errors.Join(
		os.WriteFile(aggregatorConfig, []byte(aggregatorHCL(dir, s.socket, s.listen, s.agentListen)+s.blocks), 0o600),
		os.WriteFile(agentConfig, []byte(agentHCL(dir, s.agentListen, plugins)+source), 0o600),
	)
}

// findBeside finds a program that was built or installed together with this one.
func findBeside(executable, program string) (string, error) {
	if real, err := filepath.EvalSymlinks(executable); err == nil {
		executable = real
	}
	path := filepath.Join(filepath.Dir(executable), program)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is not there; it belongs beside %s (make build puts both into bin/)", path, executable)
	} else if err != nil {
		return "", err
	}
	return path, nil
}

// pluginDirs are where plugins are looked for.
func pluginDirs(executable string) []string {
	if real, err := filepath.EvalSymlinks(executable); err == nil {
		executable = real
	}
	return []string{filepath.Join(filepath.Dir(executable), "plugins"), "/usr/libexec/bursar/plugins"}
}

// makeCertificates makes an authority and the certificates of both daemons, new ones
// each time, and returns those of the aggregator.
func makeCertificates(dir string) (aggregator identity.Files, err error) {
	if err := os.RemoveAll(dir); err != nil {
		return aggregator, err
	}
	now := time.Now()
	if _, err := identity.CreateCA(dir, "bursar dev", identity.LifetimeCA, now); err != nil {
		return aggregator, err
	}
	issue := func(role identity.Role) (identity.Files, error) {
		req := identity.Request{Identity: identity.Identity{Role: role, Name: name}, Hosts: []string{"localhost", "127.0.0.1"}}
		return identity.CreateCert(dir, filepath.Join(dir, string(role)), req, now)
	}
	if _, err := issue(identity.Agent); err != nil {
		return aggregator, err
	}
	return issue(identity.Aggregator)
}

// sourceBlocks returns the source blocks: those of the user, a scheduler that answers
// on this machine, or the demo's recorded clusters.
func (s *site) sourceBlocks(ctx context.Context, opt DevOptions, plugins []string) (string, error) {
	s.waitsForRecords = true
	switch {
	case len(s.configs.agent) > 0:
		s.source, s.waitsForRecords = "the sources in "+opt.Config, false
		return "", nil
	case schedulers.Installed(plugins, "source-slurm") && schedulers.Slurm(ctx):
		s.source, s.waitsForRecords = "Slurm, by sacct on this machine", false
		return "\nsource \"slurm\" \"local\" {\n  interval = \"10s\"\n}\n", nil
	case opt.Empty:
		s.source, s.waitsForRecords = "no source: only what is posted", false
		return "", nil
	}
	s.source = "recorded clusters, a demo, since no scheduler answers on this machine"
	var without []string
	if !schedulers.Installed(plugins, "action-report") {
		without = append(without, demoActions)
	}
	demo, err := writeDemo(s.dir, time.Now(), without...)
	if err != nil {
		return "", err
	}
	s.configs.agent = demo.agent
	if !s.configs.describes {
		s.demo = true
		s.configs.aggregator = append(s.configs.aggregator, demo.aggregator...)
	}
	return "", nil
}

func aggregatorHCL(dir, socket, listen, agent string) string {
	return fmt.Sprintf(`# Written by bursar dev.
aggregator {
  name     = %s
  data_dir = %s
  ballast  = "0B"
  min_free = "256MiB"
  api {
    socket = %s
    listen = [%s]
  }
  tls {
    ca   = %s
    cert = %s
    key  = %s
  }
  metrics {
    site_meta_key  = "site_id"
    group_meta_key = "group_id"
    user_meta_key  = "user_id"
  }
}

agent %s { address = %s }
`, setup.Quote(name), setup.Quote(filepath.Join(dir, "aggregator")), setup.Quote(socket), setup.Quote(listen),
		pemPath(dir, "ca.pem"), pemPath(dir, "aggregator", name+".pem"), pemPath(dir, "aggregator", name+".key"), setup.Quote(name), setup.Quote(agent))
}

func agentHCL(dir, listen string, plugins []string) string {
	for i := range plugins {
		plugins[i] = setup.Quote(plugins[i])
	}
	return fmt.Sprintf(`# Written by bursar dev.
agent {
  name        = %s
  data_dir    = %s
  listen      = %s
  plugin_dirs = [%s]
  tls {
    ca   = %s
    cert = %s
    key  = %s
  }
}
`, setup.Quote(name), setup.Quote(filepath.Join(dir, "agent")), setup.Quote(listen), strings.Join(plugins, ", "),
		pemPath(dir, "ca.pem"), pemPath(dir, "agent", name+".pem"), pemPath(dir, "agent", name+".key"))
}

func pemPath(dir string, parts ...string) string {
	return setup.Quote(filepath.Join(append([]string{dir, "tls"}, parts...)...))
}
