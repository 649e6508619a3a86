package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/systemd"
)

// Daemon is an aggregator that lives by a configuration file.
type Daemon struct {
	// Load reads the configuration, at the start and at every reload.
	Load    func() (*config.Config, hcl.Diagnostics)
	Version string
	// BootstrapFrom is the archive that a new cluster begins with; "": none.
	BootstrapFrom string
	// RuntimeDir is systemd's RuntimeDirectory, where the unix socket is unless the
	// configuration says otherwise; "": none.
	RuntimeDir string
	// Dev accepts plugin binaries below folders such as /tmp.
	Dev bool
	// Log is where the log goes.
	Log io.Writer
	// Hangup asks for a reload; nil never does.
	Hangup <-chan os.Signal
	// Notify is told when the daemon serves, reloads and stops.
	Notify systemd.Notifier

	level slog.LevelVar
	log   *slog.Logger
	conf  *config.Config
	keys  *identity.Keys
	agg   *Aggregator
}

// Run loads the configuration and serves until ctx ends. The error is what is
// wrong with the configuration, as hcl.Diagnostics, or why the node had to stop.
func (d *Daemon) Run(ctx context.Context) error {
	conf, diags := d.loadConfig()
	if err := diags.Err(); err != nil {
		return err
	}
	d.conf = conf
	d.level.Set(conf.Aggregator.Log.SlogLevel())
	d.log = slog.New(conf.Aggregator.Log.Handler(d.Log, &d.level))
	d.logWarnings(diags)
	if err := d.openAggregator(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	reloads := make(chan struct{})
	go func() {
		defer close(reloads)
		d.reloadOnHangup(ctx)
	}()
	d.Notify.Ready()
	context.AfterFunc(ctx, d.Notify.Stopping)
	go d.Notify.Watch(ctx, d.agg.Alive)
	go d.updateStatus(ctx)
	err := d.agg.Run(ctx)
	cancel()
	<-reloads
	d.log.Info("stopped")
	return err
}

// loadConfig reads the configuration and looks whether this machine has what it names.
func (d *Daemon) loadConfig() (*config.Config, hcl.Diagnostics) {
	conf, diags := d.Load()
	if !diags.HasErrors() {
		diags.Extend(conf.Check())
	}
	return conf, diags
}

func (d *Daemon) logWarnings(diags hcl.Diagnostics) {
	for _, w := range diags.Warnings() {
		d.log.Warn("configuration", "problem", hcl.Diagnostics{w}.Error())
	}
}

// openAggregator opens the listeners and the state.
func (d *Daemon) openAggregator() (err error) {
	if d.conf.Aggregator.TLS != nil {
		if d.keys, err = identity.Load(d.conf.Files()); err != nil {
			return err
		}
	}
	set := settingsOf(d.conf)
	if dir := d.conf.Aggregator.Authority.Path; dir != "" {
		if set.Authority, err = identity.LoadAuthority(dir); err != nil {
			return err
		}
	}
	set.Version, set.Log, set.Keys = d.Version, d.log, d.keys
	set.BootstrapFrom, set.Actions.Dev = d.BootstrapFrom, d.Dev
	api := &d.conf.Aggregator.API
	if set.Plain, err = listenTCP(api.Listen); err != nil {
		return err
	}
	if set.TLS, err = listenTCP(api.TLSListen); err != nil {
		return errors.Join(err, closeAll(set.Plain))
	}
	if set.Local, err = d.openSocket(); err != nil {
		return errors.Join(err, closeAll(set.Plain), closeAll(set.TLS))
	}
	if set.Raft, err = raftSettings(&d.conf.Aggregator); err != nil {
		return errors.Join(err, closeAll(set.Plain), closeAll(set.TLS), set.Local.Close())
	}
	if d.agg, err = Open(set); err != nil {
		return errors.Join(err, closeAll(set.Plain), closeAll(set.TLS), set.Local.Close())
	}
	d.log.Info("aggregator starts", "name", set.Name, "version", d.Version, "data_dir", set.DataDir,
		"socket", set.Local.Addr().String(), "listen", listenerAddresses(set.Plain), "tls_listen", listenerAddresses(set.TLS), "shared_blocks", len(set.Files.Written))
	return nil
}

// settingsOf are what of a configuration needs no opening.
func settingsOf(c *config.Config) Settings {
	a := &c.Aggregator
	set := Settings{
		Name: a.Name.Value, DataDir: a.DataDir.Path, MinFree: a.MinFree.Bytes, Ballast: uint64(max(a.Ballast.Bytes, 0)), Files: c.Shared(), Access: c.Rules(),
		Backup: backupPlan(a), Actions: actionsOf(c), Acknowledged: acknowledgementsOf(&c.Health),
		Compaction:     Compaction{Every: a.Compaction.Every.Duration, Keep: a.Compaction.Keep.Duration, Whole: a.Compaction.Whole.Duration, Files: a.Compaction.Files.Duration},
		Watch:          WatchSettings{ClockTolerance: a.ClockTolerance.Duration},
		IgnoreExisting: a.API.IgnoreRecordExists, MaxBody: a.API.MaxBody.Bytes, AnswerMemory: a.API.AnswerMemory.Bytes, UsageMemory: a.UsageMemory.Bytes, Patience: a.API.Patience.Duration,
	}
	set.Gauges.Every = a.Metrics.Frequency.Duration
	return set
}

// listenTCP opens all addresses, or none.
func listenTCP(list []hcl.Address) (open []net.Listener, err error) {
	for _, a := range list {
		l, err := net.Listen("tcp", a.String())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s:%d: %w", a.Range.Filename, a.Range.Start.Line, err), closeAll(open))
		}
		open = append(open, l)
	}
	return open, nil
}

func closeAll(list []net.Listener) (err error) {
	for _, l := range list {
		err = errors.Join(err, l.Close())
	}
	return err
}

func listenerAddresses(list []net.Listener) string {
	var names []string
	for _, l := range list {
		names = append(names, l.Addr().String())
	}
	return strings.Join(names, " ")
}

// reloadOnHangup takes over a changed configuration at every hangup until ctx ends.
func (d *Daemon) reloadOnHangup(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.Hangup:
			d.reloadConfig(ctx)
		}
	}
}

// reloadTime is how long a reload waits for the plugins of actions.
const reloadTime = 10 * time.Second

// reloadConfig takes over what can change while the daemon runs, and says what cannot.
// A bad configuration is refused as a whole. A plugin of an action that has not answered
// within reloadTime holds nothing up. When ctx ends meanwhile, nothing is taken over.
func (d *Daemon) reloadConfig(ctx context.Context) {
	d.Notify.Reloading()
	defer d.Notify.Ready()
	next, diags := d.loadConfig()
	if !diags.HasErrors() {
		checks, cancel := context.WithTimeout(ctx, reloadTime)
		diags.Extend(CheckActions(checks, next, d.Dev))
		cancel()
	}
	if ctx.Err() != nil {
		return
	}
	if err := diags.Err(); err != nil {
		d.log.Error("the configuration is refused, the old one stays", "error", err)
		return
	}
	d.logWarnings(diags)
	if d.keys != nil {
		if err := d.keys.Reload(); err != nil {
			d.log.Error("the certificates are refused, the old ones stay", "error", err)
			return
		}
	}
	for _, name := range d.conf.NeedRestart(next) {
		d.log.Warn("a changed setting waits for a restart", "setting", name)
	}
	d.level.Set(next.Aggregator.Log.SlogLevel())
	d.agg.SetActions(actionsOf(next))
	d.agg.SetFiles(next.Shared())
	d.agg.SetAccess(next.Rules())
	d.agg.SetBackups(backupPlan(&next.Aggregator))
	d.agg.SetAcknowledged(acknowledgementsOf(&next.Health))
	d.log.Info("configuration reloaded", "agents", len(next.Agents))
}
