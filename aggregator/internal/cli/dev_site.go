package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
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
	blocks          string // of the aggregator, beside its own: access, and what the recorded clusters have
	temporary       bool
	waitsForRecords bool
}

// prepare finds the programs and the schedulers and writes certificates and
// configurations into dir.
func prepare(ctx context.Context, opt DevOptions, dir string) (*site, error) {
	s := &site{bursar: opt.Executable, dir: dir, socket: filepath.Join(dir, "api.sock"), temporary: opt.DataDir == ""}
	var err error
	if s.agent, err = beside(opt.Executable, "bursar-agent"); err != nil {
		return nil, err
	}
	if s.listen, err = address(opt); err != nil {
		return nil, err
	}
	if s.agentListen, err = freePort(); err != nil {
		return nil, err
	}
	if s.keys, err = certificates(filepath.Join(dir, "tls")); err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	if s.configs, err = sortOut(opt.Config); err != nil {
		return nil, err
	}
	plugins := pluginDirs(opt.Executable)
	if !s.configs.access {
		s.blocks += "\naccess {\n  plain_role = \"none\"\n}\n"
	}
	source := s.sources(ctx, opt, plugins)
	aggregatorConfig, agentConfig := filepath.Join(dir, "aggregator.hcl"), filepath.Join(dir, "agent.hcl")
	s.configs.aggregator = append(s.configs.aggregator, aggregatorConfig)
	s.configs.agent = append(s.configs.agent, agentConfig)
	return s, errors.Join(
		os.WriteFile(aggregatorConfig, []byte(aggregatorHCL(dir, s.socket, s.listen, s.agentListen)+s.blocks), 0o600),
		os.WriteFile(agentConfig, []byte(agentHCL(dir, s.agentListen, plugins)+source), 0o600),
	)
}

// beside finds a program that was built or installed together with this one.
func beside(executable, program string) (string, error) {
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

// certificates makes an authority and the certificates of both daemons, new ones
// each time, and returns those of the aggregator.
func certificates(dir string) (aggregator identity.Files, err error) {
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

// sources returns the source blocks: those of the user, a scheduler that answers
// on this machine, or a recorded cluster.
func (s *site) sources(ctx context.Context, opt DevOptions, plugins []string) string {
	s.waitsForRecords = true
	switch {
	case len(s.configs.agent) > 0:
		s.source, s.waitsForRecords = "the sources in "+opt.Config, false
		return ""
	case has(plugins, "slurm") && slurm(ctx):
		s.source, s.waitsForRecords = "Slurm, by sacct on this machine", false
		return "\nsource \"slurm\" \"local\" {\n  interval = \"10s\"\n}\n"
	case opt.Empty:
		s.source, s.waitsForRecords = "no source: only what is posted", false
		return ""
	}
	s.source = "a recorded cluster, since no scheduler answers on this machine"
	if !s.configs.clusters {
		s.blocks += recordedClusters()
	}
	return "\nsource \"replay\" \"recorded\" {\n  interval = \"2s\"\n  config {\n    recorded = true\n  }\n}\n"
}

// recordedClusters are blocks of what the clusters have that are played.
func recordedClusters() string {
	var text strings.Builder
	for _, c := range []struct {
		name        string
		cores, gpus int
	}{{"aurora", 1152, 48}, {"breeze", 960, 32}, {"cirrus", 960, 0}} {
		fmt.Fprintf(&text, "\ncluster %s {\n  sources = []\n  capacity {\n    components = { Cores = %d, GPUs = %d }\n  }\n}\n", quote(c.name), c.cores, c.gpus)
	}
	return text.String()
}

func has(plugins []string, source string) bool {
	for _, dir := range plugins {
		if _, err := os.Stat(filepath.Join(dir, "bursar-source-"+source)); err == nil {
			return true
		}
	}
	return false
}

// slurmPatience is how long sacct may take to answer.
const slurmPatience = 1500 * time.Millisecond

// slurm reports whether sacct is there and answers.
func slurm(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, slurmPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sacct", "-n", "-X", "-S", "now-1minutes", "-o", "jobid")
	cmd.WaitDelay = 100 * time.Millisecond
	return cmd.Run() == nil
}

func aggregatorHCL(dir, socket, listen, agent string) string {
	return fmt.Sprintf(`# Written by bursar dev.
aggregator {
  name     = %s
  data_dir = %s
  ballast  = "0B"
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
`, quote(name), quote(filepath.Join(dir, "aggregator")), quote(socket), quote(listen),
		pem(dir, "ca.pem"), pem(dir, "aggregator", name+".pem"), pem(dir, "aggregator", name+".key"), quote(name), quote(agent))
}

func agentHCL(dir, listen string, plugins []string) string {
	for i := range plugins {
		plugins[i] = quote(plugins[i])
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
`, quote(name), quote(filepath.Join(dir, "agent")), quote(listen), strings.Join(plugins, ", "),
		pem(dir, "ca.pem"), pem(dir, "agent", name+".pem"), pem(dir, "agent", name+".key"))
}

func pem(dir string, parts ...string) string {
	return quote(filepath.Join(append([]string{dir, "tls"}, parts...)...))
}

// quote writes a string of HCL.
func quote(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(s))
}
