package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/agent/internal/run"
	"github.com/bursar-accounting/bursar/agent/internal/serve"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// verdict of a check.
type verdict int

const (
	good verdict = iota
	doubtful
	bad
)

// String is the word that is printed.
func (v verdict) String() string { return [...]string{"ok", "warning", "error"}[v] }

// finding is the result of one check.
type finding struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"-"`
	Word    string  `json:"verdict"`
	Detail  string  `json:"detail"`
}

// findings collects results.
type findings []finding

func (f *findings) addFinding(check string, v verdict, format string, args ...any) {
	*f = append(*f, finding{check, v, v.String(), fmt.Sprintf(format, args...)})
}

func (a *app) doctorCommand() *cobra.Command {
	return a.addFormatFlag(&cobra.Command{
		Use: "doctor", Short: "Find problems on this machine", Args: cobra.NoArgs,
		Long: `Check the configuration, the plugins and their requirements, the certificates, the
disk, the clock, the port, the aggregators to dial and the running agent. The exit code is 0 when there is
nothing to report, and 2 when there are warnings or errors.`,
		Example: "  bursar-agent doctor\n  bursar-agent doctor -format json",
		RunE:    func(c *cobra.Command, _ []string) error { return a.runDoctor(c.Context()) },
	})
}

func (a *app) runDoctor(ctx context.Context) error {
	cfg, diags := config.Load(a.paths...)
	var f findings
	f.checkConfiguration(diags)
	f.checkCertificates(cfg, time.Now())
	status, err := a.agentStatus(ctx, cfg)
	p := a.pluginOptions()
	p.CheckMachine = errors.Is(err, control.ErrNotRunning)
	f.checkPlugins(ctx, cfg, p)
	f.checkDisk(cfg)
	f.checkClock()
	f.checkPort(cfg, err == nil)
	f.checkDial(ctx, cfg, status, err == nil)
	f.checkAgent(status, err)
	return a.printFindings(f)
}

func (a *app) agentStatus(ctx context.Context, cfg *config.Config) (control.Status, error) {
	client := control.NewClient(cfg.SocketPath())
	defer client.Close()
	return client.Status(ctx)
}

func (a *app) printFindings(f findings) error {
	worst := good
	for _, x := range f {
		worst = max(worst, x.Verdict)
		if a.format == "table" {
			fmt.Fprintf(a.Out, "%-8s %-14s %s\n", x.Word, x.Check, strings.ReplaceAll(x.Detail, "\n", "\n                        "))
		}
	}
	if a.format == "json" {
		if err := printJSON(a.Out, f); err != nil {
			return err
		}
	}
	if worst == good {
		return nil
	}
	return exit(codeFinding)
}

func (f *findings) checkConfiguration(diags hcl.Diagnostics) {
	switch {
	case diags.HasErrors():
		f.addFinding("configuration", bad, "%s", diags.Error())
	case len(diags) > 0:
		f.addFinding("configuration", doubtful, "%s", diags.Error())
	default:
		f.addFinding("configuration", good, "no problems")
	}
}

// Certificates that end sooner are reported.
const soon = 14 * 24 * time.Hour

func (f *findings) checkCertificates(cfg *config.Config, now time.Time) {
	if !cfg.Agent.TLS.IsComplete() {
		return
	}
	if diags := run.CheckIdentity(cfg); diags.HasErrors() {
		f.addFinding("certificates", bad, "%s", diags.Error())
		return
	}
	keys, err := identity.Load(cfg.Identity())
	if err != nil {
		f.addFinding("certificates", bad, "%v", err)
		return
	}
	left := keys.Expires().Sub(now)
	switch day := keys.Expires().UTC().Format(time.DateOnly); {
	case left <= 0:
		f.addFinding("certificates", bad, "the certificate ended on %s", day)
	case left < soon:
		f.addFinding("certificates", doubtful, "the certificate ends on %s, in %d days", day, int(left.Hours()/24))
	default:
		f.addFinding("certificates", good, "valid until %s", day)
	}
	if info, err := os.Stat(cfg.Agent.TLS.Key.Path); err == nil && info.Mode().Perm()&0o007 != 0 {
		f.addFinding("certificates", bad, "%s is world-readable (%s); chmod 0600", cfg.Agent.TLS.Key, info.Mode().Perm())
	}
}

// checkPlugins starts every plugin, side by side: it finds its binary, checks whose right it is to write to
// it, and has the plugin check its own configuration, with the scheduler's commands.
func (f *findings) checkPlugins(ctx context.Context, cfg *config.Config, p run.Plugins) {
	for _, l := range p.Look(ctx, cfg, cfg.Sound()) {
		switch name := l.Source.Name(); {
		case l.Err != nil:
			f.addFinding("source", bad, "%s: %v", name, l.Err)
		case l.Diagnostics.HasErrors():
			f.addFinding("source", bad, "%s: %s", name, l.Diagnostics.Error())
		case len(l.Diagnostics) > 0:
			f.addFinding("source", doubtful, "%s: %s", name, l.Diagnostics.Error())
		default:
			f.addFinding("source", good, "%s: plugin version %s", name, l.Version)
		}
	}
}

func (f *findings) checkDisk(cfg *config.Config) {
	dir := cfg.Agent.DataDir.Path
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.addFinding("data folder", doubtful, "%s is not there; the agent makes it when it may write to %s", dir, filepath.Dir(dir))
		return
	case err != nil:
		f.addFinding("data folder", bad, "%v", err)
		return
	case !info.IsDir():
		f.addFinding("data folder", bad, "%s is not a folder", dir)
		return
	case info.Mode().Perm()&0o002 != 0:
		f.addFinding("data folder", bad, "%s is world-writable (%s); chmod o-w", dir, info.Mode().Perm())
	default:
		f.addFinding("data folder", good, "%s", dir)
	}
	free, err := freeBytes(dir)
	if err != nil {
		f.addFinding("disk", doubtful, "%v", err)
		return
	}
	f.checkSpace(cfg, free)
}

// checkSpace compares what is free with what the buffer may still grow by.
func (f *findings) checkSpace(cfg *config.Config, free int64) {
	used := int64(0)
	if info, err := os.Stat(cfg.BufferPath()); err == nil {
		used = info.Size()
	}
	need := max(0, cfg.Agent.Buffer.MaxSize.Bytes-used)
	switch {
	case free < need/10 || free < 64<<20:
		f.addFinding("disk", bad, "%d MiB are free, and the buffer may grow by %d MiB", free>>20, need>>20)
	case free < need:
		f.addFinding("disk", doubtful, "%d MiB are free, and the buffer may grow by %d MiB", free>>20, need>>20)
	default:
		f.addFinding("disk", good, "%d MiB are free", free>>20)
	}
}

func (f *findings) checkClock() {
	synchronised, err := clockSynchronised()
	switch {
	case err != nil:
		f.addFinding("clock", doubtful, "cannot determine whether it is synchronised: %v", err)
	case !synchronised:
		f.addFinding("clock", doubtful, "it is not synchronised; run chronyd or another time service")
	default:
		f.addFinding("clock", good, "synchronised, %s", time.Now().UTC().Format(time.RFC3339))
	}
}

// checkPort looks whether the agent listens, or could.
func (f *findings) checkPort(cfg *config.Config, running bool) {
	address := cfg.ListenAddress()
	if address == "" {
		return
	}
	if running {
		conn, err := net.DialTimeout("tcp", reachableAddress(address), 3*time.Second)
		if err != nil {
			f.addFinding("port", bad, "the agent runs, and %v", err)
			return
		}
		conn.Close()
		f.addFinding("port", good, "the agent listens on %s", address)
		return
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		f.addFinding("port", bad, "the agent does not run, and %v", err)
		return
	}
	l.Close()
	f.addFinding("port", good, "%s is free", address)
}

// checkDial looks whether the agent is connected to the aggregators at which it dials in, or
// could be. While it runs no other connection is made: it would replace the agent's own.
func (f *findings) checkDial(ctx context.Context, cfg *config.Config, status control.Status, running bool) {
	if len(cfg.Agent.Dial) == 0 || run.CheckIdentity(cfg).HasErrors() {
		return
	}
	for _, w := range run.Dial(ctx, cfg, status, running) {
		switch w.State {
		case serve.Connected:
			f.addFinding("dial", good, "%s: aggregator %s accepts this agent", w.Address, w.Aggregator)
		case serve.Unreachable:
			hint := ""
			if w.Aggregator == "" { // else the address is right
				hint = "; address and port must be those of api.tls_listen on an aggregator, to which this machine may connect"
			}
			f.addFinding("dial", bad, "%s: %s%s", w.Address, w.Problem, hint)
		default:
			f.addFinding("dial", doubtful, "%s: %s%s", w.Address, w.State, prefixIfSet(": ", w.Problem))
		}
	}
}

// reachableAddress is where a listener on all interfaces can be called.
func reachableAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return address
}

func (f *findings) checkAgent(s control.Status, err error) {
	switch {
	case errors.Is(err, control.ErrNotRunning):
		f.addFinding("agent", doubtful, "%v", err)
		return
	case err != nil:
		f.addFinding("agent", bad, "%v", err)
		return
	}
	f.addFinding("agent", good, "runs, version %s", s.Version)
	for _, x := range s.Sources {
		if x.Error != "" {
			f.addFinding("agent", bad, "source %s/%s is %s: %s", x.Type, x.Label, x.State, x.Error)
		}
		for i := range x.Findings {
			f.addFinding("records", doubtful, "source %s/%s: %s; do first: %s", x.Type, x.Label, x.Findings[i].String(), x.Findings[i].Do)
		}
	}
	if s.Buffer.Damage != "" {
		f.addFinding("buffer", bad, "%s; do first: %s", s.Buffer.Damage, s.Buffer.Remedy)
	}
	for _, hint := range silentClusters(s.Buffer, time.Now()) {
		f.addFinding("agent", doubtful, "%s", hint)
	}
	if len(s.Buffer.Clusters) == 0 && (s.Listen != "" || len(s.Dial) > 0) {
		f.addFinding("agent", doubtful, "no aggregator has pulled yet")
	}
}
