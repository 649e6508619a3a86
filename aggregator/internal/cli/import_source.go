package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// DefaultImportName is the name under which imports are kept, as agents have theirs.
const DefaultImportName = "import"

// ImportSpec says what is imported, and as what.
type ImportSpec struct {
	Type  string   // of the source, for example gridengine
	Label string   // of the source; "": that of the only block in Config, or else the type
	Name  string   // of the import
	Files []string // or folders, or patterns; the source knows which
	// Config is a file with a block source "TYPE" "LABEL", of which config and
	// record count; "": the source's defaults.
	Config string
	// Dirs are where plugins are looked for; empty: where Config says, or beside
	// Executable and in the usual place.
	Dirs       []string
	Executable string
	Version    string // of this program, which mappings see as agent.version
	// Env is the environment of the plugin, beside what Config says.
	Env map[string]string
	Dev bool         // accept plugins below folders such as /tmp
	Log *slog.Logger // gets what the plugin logs
}

// ImportSource is a plugin that reads the files.
type ImportSource struct {
	Name, Type, Label string

	session  *host.Session
	folder   string
	inputs   string
	position *importPosition
	window   *bursarv1.CollectRequest_Window // that is read; nil: all
}

// originText is the import as an origin.
func (s *ImportSource) originText() string {
	return record.Origin{Agent: s.Name, Type: s.Type, Label: s.Label}.String()
}

// readyTimeout is how long a plugin has to describe and configure itself.
const readyTimeout = 30 * time.Second

// OpenImport starts the plugin and gives it the files. What is wrong with the
// configuration is in the diagnostics, whose places are in the sources. The
// caller closes the Source, which is nil after either.
func OpenImport(ctx context.Context, spec ImportSpec) (src *ImportSource, diags hcl.Diagnostics, sources hcl.Sources, err error) {
	if err := identity.CheckName(spec.Name); err != nil {
		return nil, nil, nil, fmt.Errorf("name of the import: %w", err)
	}
	if spec.Files, err = absolutePaths(spec.Files); err != nil {
		return nil, nil, nil, err
	}
	cfg, diags := readSettings(&spec)
	if diags.HasErrors() {
		return nil, diags, cfg.sources, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	src, more, err := startSource(ctx, &spec, cfg)
	return src, append(diags, more...), cfg.sources, err
}

// startSource starts the plugin and makes a session with it.
func startSource(ctx context.Context, spec *ImportSpec, cfg *settings) (*ImportSource, hcl.Diagnostics, error) {
	path, err := cfg.findPlugin(spec)
	if err != nil {
		return nil, nil, err
	}
	folder, err := os.MkdirTemp("", "bursar-import-")
	if err != nil {
		return nil, nil, err
	}
	src := &ImportSource{Name: spec.Name, Type: spec.Type, Label: cfg.label, folder: folder}
	var diags hcl.Diagnostics
	src.session, diags, err = launchPlugin(ctx, spec, cfg, path, folder)
	if src.session == nil {
		return nil, diags, errors.Join(err, os.RemoveAll(folder))
	}
	if src.session.Description.GetPush() || src.session.Description.GetPushed() {
		return nil, diags, errors.Join(fmt.Errorf("the source %s takes jobs as they come and reads no files", spec.Type), src.Close())
	}
	if src.inputs, err = cfg.inputDigest(spec, src.session.Description.GetVersion()); err != nil {
		return nil, diags, errors.Join(err, src.Close())
	}
	return src, diags, nil
}

// launchPlugin starts the plugin's process and configures it.
func launchPlugin(ctx context.Context, spec *ImportSpec, cfg *settings, path, folder string) (*host.Session, hcl.Diagnostics, error) {
	env := maps.Clone(spec.Env)
	if env == nil {
		env = map[string]string{}
	}
	for name, v := range cfg.plugin.Env {
		env[name] = v.Value
	}
	process, err := host.Launch(ctx, host.Spec{
		Kind: "source", Type: spec.Type, Path: path, SHA256: cfg.plugin.SHA256.Value, Env: env, Dev: spec.Dev, Logger: spec.Log,
	})
	if err != nil {
		return nil, nil, err
	}
	opened, diags, err := host.NewSession(ctx, process, process.Source(), host.SessionSpec{
		Agent: spec.Name, Version: spec.Version, Type: spec.Type, Label: cfg.label, DataDir: folder, Config: cfg.tree, Record: cfg.record, Dir: cfg.dir,
	})
	if opened == nil {
		_ = process.Close() // the error that counts is the one before
	}
	if err != nil {
		return nil, diags, fmt.Errorf("plugin %s: %w", path, err)
	}
	return opened, diags, nil
}

// findPlugin returns the path of the plugin.
func (s *settings) findPlugin(spec *ImportSpec) (string, error) {
	if s.plugin.Path != nil {
		return filepath.Abs(s.plugin.Path.Path)
	}
	dirs := s.dirs
	if len(dirs) == 0 {
		executable := spec.Executable
		if real, err := filepath.EvalSymlinks(executable); err == nil {
			executable = real
		}
		dirs = []string{"/usr/libexec/bursar/plugins", filepath.Join(filepath.Dir(executable), "plugins")}
	}
	return host.Find(dirs, "source", spec.Type)
}

// Count asks the source how many runs ended in a window, by its second route. Known is
// false for a source that has none.
func (s *ImportSource) Count(ctx context.Context, from, to time.Time) (n int64, known bool, err error) {
	resp, err := s.session.Client.Count(ctx, &bursarv1.CountRequest{From: from.UnixMicro(), To: to.UnixMicro()})
	if status.Code(err) == codes.Unimplemented {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("count: %w", host.Said(err))
	}
	return resp.GetRuns(), true, nil
}

// Close ends the plugin.
func (s *ImportSource) Close() error {
	return errors.Join(s.session.Close(), os.RemoveAll(s.folder))
}
