package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/run"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/systemd"
)

// runAgent runs the daemon, and marks an error that a restart would only repeat.
func (a *app) runAgent(ctx context.Context) error {
	err := a.runDaemon(ctx)
	if _, ok := errors.AsType[refused](err); ok {
		return unmendable{err}
	}
	return err
}

// unmendable is why the daemon ended when a restart would end the same way.
type unmendable struct{ error }

// Unwrap returns the reason.
func (u unmendable) Unwrap() error { return u.error }

func (a *app) runDaemon(ctx context.Context) error {
	cfg, warnings, err := a.loadConfig(ctx)
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	level.Set(cfg.LogLevel())
	log := slog.New(cfg.Agent.Log.Handler(a.Err, level))
	for _, w := range warnings {
		log.Warn("configuration", "warning", hcl.Diagnostics{w}.Error())
	}
	notifier := systemd.FromEnv(a.Getenv)
	agent := run.New(cfg, run.Options{
		Paths: a.paths, Version: a.Version, Plugins: a.pluginOptions(), Log: log, Level: level,
		Ready: notifier.Ready,
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go a.handleSignals(ctx, cancel, agent, notifier, log)
	go notifier.Watch(ctx, agent.Alive)
	return attachSources(cfg, agent.Run(ctx))
}

// attachSources gives diagnostics the files that they are about.
func attachSources(cfg *config.Config, err error) error {
	if diags, ok := errors.AsType[hcl.Diagnostics](err); ok {
		return refused{diags, cfg.File.Sources}
	}
	return err
}

// handleSignals stops the agent at the first SIGTERM or SIGINT, the process at the
// second SIGINT, and reloads at SIGHUP.
func (a *app) handleSignals(ctx context.Context, cancel context.CancelFunc, agent *run.Agent, n systemd.Notifier, log *slog.Logger) {
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(ch)
	interrupts, ended := 0, ctx.Done()
	for {
		select {
		case <-ended:
			if interrupts == 0 {
				return
			}
			ended = nil // wait for the second interrupt
		case s := <-ch:
			if s == syscall.SIGHUP {
				go func() {
					n.Reloading()
					_, _ = agent.Reload(ctx) // the agent logs how it went
					n.Ready()
				}()
				continue
			}
			if s == syscall.SIGINT {
				interrupts++
			}
			if interrupts > 1 {
				os.Exit(1)
			}
			log.Info("the agent stops", "signal", s.String())
			n.Stopping()
			cancel()
		}
	}
}

// checkConfig prints all problems of the configuration.
func (a *app) checkConfig(ctx context.Context) error {
	cfg, diags := config.Load(a.paths...)
	blocks, found := run.Check(ctx, cfg, a.pluginOptions())
	diags.Extend(found)
	if !diags.HasErrors() {
		diags.Extend(run.CheckMachine(ctx, cfg))
	}
	if diags.HasErrors() {
		return refused{diags, cfg.File.Sources}
	}
	if err := diags.Write(a.Err, cfg.File.Sources, a.usesColor(a.Err)); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "Configuration is valid: agent %s, %s.\n", cfg.Agent.Name, pluralize(len(cfg.Running()), "source"))
	a.printRecordBlocks(blocks)
	return nil
}

func pluralize(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
