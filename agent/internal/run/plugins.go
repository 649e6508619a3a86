package run

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Plugins starts the plugins of sources.
type Plugins struct {
	// Executable is the agent's own file; plugins are looked for beside it.
	Executable string
	// Version is the agent's, which a mapping may name.
	Version string
	// Dev accepts plugin binaries below folders such as /tmp.
	Dev bool
	// Log gets what plugins log; nil: nothing.
	Log *slog.Logger
	// Deadline is how long a plugin has to start, describe and configure itself
	// [30s]. A plugin that takes longer is killed.
	Deadline time.Duration
	// Trial is set where a configuration is only looked at: then a source's own
	// folder is not made.
	Trial bool
	// CheckMachine has sources say which ports and sockets are taken: for a trial while
	// the agent does not run, since its sources have them themselves.
	CheckMachine bool
}

// Path is where the source's plugin is.
func (p Plugins) Path(cfg *config.Config, s *config.Source) (string, error) {
	if s.Plugin.Path != "" {
		return s.Plugin.Path, nil
	}
	return host.Find(cfg.PluginDirs(p.Executable), "source", s.Type.Value)
}

// readyTimeout is how long a plugin has to describe and configure itself.
const readyTimeout = 30 * time.Second

// Open starts the plugin of a source and configures it. What is wrong with the
// configuration is in the diagnostics; the error is a plugin that cannot be
// used. The caller closes the session, which is nil after either.
func (p Plugins) Open(ctx context.Context, cfg *config.Config, s *config.Source) (*host.Session, hcl.Diagnostics, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.Deadline, readyTimeout))
	defer cancel()
	path, err := p.Path(cfg, s)
	if err != nil {
		return nil, nil, err
	}
	folder, clean, err := p.makeFolder(cfg.Folder(s))
	if err != nil {
		return nil, nil, err
	}
	defer clean()
	process, err := host.Launch(ctx, host.Spec{
		Kind: "source", Type: s.Type.Value, Path: path, SHA256: s.Plugin.SHA256, Env: s.Plugin.Env, Dev: p.Dev, Logger: p.pluginLogger(s),
	})
	if err != nil {
		return nil, nil, err
	}
	opened, diags, err := host.NewSession(ctx, process, process.Source(), host.SessionSpec{
		Agent: cfg.Agent.Name.Value, Version: p.Version, Type: s.Type.Value, Label: s.Label.Value, DataDir: folder,
		Config: s.Tree, Record: s.Record, Dir: cfg.File.Dir, TLS: tlsOf(cfg),
		Stall: s.StallTimeout.Duration, CheckMachine: p.CheckMachine,
	})
	if opened == nil {
		err = process.Blame(ctx, err)
		end := process.Close
		if ctx.Err() != nil {
			end = process.Kill // it may not answer
		}
		_ = end() // the error that counts is the one before
	}
	if err != nil {
		return nil, diags, fmt.Errorf("plugin %s: %w", path, err)
	}
	return opened, diags, nil
}

// tlsOf are the agent's own certificates, for sources that listen.
func tlsOf(cfg *config.Config) *bursarv1.TLSFiles {
	if cfg.Agent.TLS == nil {
		return nil
	}
	absolute := func(path string) string { // since a plugin runs in a folder of its own
		if full, err := filepath.Abs(path); err == nil {
			return full
		}
		return path
	}
	files := cfg.Identity()
	return &bursarv1.TLSFiles{Ca: absolute(files.CA), Cert: absolute(files.Cert), Key: absolute(files.Key)}
}

func (p Plugins) pluginLogger(s *config.Source) *slog.Logger {
	if p.Log == nil {
		return nil
	}
	return p.Log.With("source", s.Name(), "component", "plugin")
}

// makeFolder makes the source's own folder, or, for a trial, a temporary one where it is
// not there.
func (p Plugins) makeFolder(path string) (folder string, clean func(), err error) {
	if !p.Trial {
		return path, func() {}, os.MkdirAll(path, 0o700)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return path, func() {}, nil
	}
	folder, err = os.MkdirTemp("", "bursar-agent-")
	return folder, func() { _ = os.RemoveAll(folder) }, err
}

// recordBlocks says what the record blocks of sources change of the default mappings.
func recordBlocks(openings []*opening) []control.RecordBlock {
	var blocks []control.RecordBlock
	for _, o := range openings {
		if o.session != nil && o.session.Mapper != nil && o.source.Record != nil {
			blocks = append(blocks, control.RecordBlock{Source: o.source.Name(), Changes: o.session.Mapper.Changes()})
		}
	}
	return blocks
}
