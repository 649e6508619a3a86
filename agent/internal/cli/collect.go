package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/agent/internal/run"
)

func (a *app) collectCommand() *cobra.Command {
	var once bool
	var source string
	c := &cobra.Command{
		Use: "collect", Short: "Collect once into the buffer, without the daemon", Args: cobra.NoArgs,
		Long: `Collect all sources, or one, from their checkpoints to now into the buffer, and exit:
for a first back-fill, or from cron. This is refused while the agent runs, which holds
the buffer and collects by itself.`,
		Example: "  bursar-agent collect -once\n  bursar-agent collect -once -source slurm/nemo",
		RunE: func(c *cobra.Command, _ []string) error {
			if !once {
				return errors.New("say -once: the agent itself, `bursar-agent run`, collects again and again")
			}
			return a.collectOnce(c.Context(), source)
		},
	}
	c.Flags().BoolVar(&once, "once", false, "collect once and exit")
	c.Flags().StringVar(&source, "source", "", "the only source to collect, as `TYPE/LABEL`")
	return c
}

func (a *app) collectOnce(ctx context.Context, source string) error {
	cfg, _, err := a.loadConfig(ctx)
	if err != nil {
		return err
	}
	client := control.NewClient(cfg.SocketPath())
	defer client.Close()
	if _, err := client.Status(ctx); !errors.Is(err, control.ErrNotRunning) {
		return errors.New("the agent is running; it has the buffer and collects by itself")
	}
	sources, err := pickSources(cfg, source)
	if err != nil {
		return err
	}
	log := slog.New(cfg.Agent.Log.Handler(a.Err, slog.LevelWarn))
	plugins := a.pluginOptions()
	plugins.Log = log
	bar := newBar(a.Err, isTerminal(a.Err), time.Now)
	last := map[string]control.Counts{}
	err = run.Once(ctx, cfg, sources, plugins, log, func(name string, s control.Source) {
		if s.State == run.Configuring {
			bar.showProgress(name+", "+s.State, nil, s.Counts)
			return
		}
		last[name] = s.Counts
		bar.showProgress(name, s.Progress, s.Counts)
	})
	bar.clearLine()
	for _, s := range sources {
		if counts, ok := last[s.Name()]; ok {
			fmt.Fprintf(a.Out, "%s: %s\n", s.Name(), counts)
		}
	}
	return attachSources(cfg, err)
}

func (a *app) recollectCommand() *cobra.Command {
	var source, from, to string
	var plan bool
	c := a.addFormatFlag(&cobra.Command{
		Use: "recollect", Short: "Collect a past window again with the current mapping", Args: cobra.NoArgs,
		Long: `Collect the jobs of a window again and send all of them, so that a fixed mapping
applies to past jobs. Records that the mapping now leaves out are withdrawn. With -plan
nothing is sent.`,
		Example: "  bursar-agent recollect -source slurm/nemo -from 2026-01-01 -to 2026-02-01 -plan",
		RunE: func(c *cobra.Command, _ []string) error {
			req, err := recollectRequest(source, from, to, time.Now())
			if err != nil {
				return err
			}
			req.Plan = plan
			return a.recollectSource(c.Context(), req)
		},
	})
	c.Flags().StringVar(&source, "source", "", "the source, as `TYPE/LABEL`")
	c.Flags().StringVar(&from, "from", "", "start of the window, a `TIME`: a day in UTC, RFC 3339, or a span back such as 48h")
	c.Flags().StringVar(&to, "to", "", "end of the window, a `TIME` that is not in it (default now)")
	c.Flags().BoolVar(&plan, "plan", false, "only count what would be sent")
	return c
}

func recollectRequest(source, from, to string, now time.Time) (control.Recollect, error) {
	r := control.Recollect{Source: source, To: now.UTC()}
	if source == "" || from == "" {
		return r, errors.New("say which -source, and -from when")
	}
	var err error
	if r.From, err = parseMoment(from, now); err != nil {
		return r, fmt.Errorf("-from: %w", err)
	}
	if to == "" {
		return r, nil
	}
	if r.To, err = parseMoment(to, now); err != nil {
		return r, fmt.Errorf("-to: %w", err)
	}
	return r, nil
}

func (a *app) recollectSource(ctx context.Context, req control.Recollect) error {
	client := a.newClient()
	defer client.Close()
	bar := newBar(a.Err, isTerminal(a.Err), time.Now)
	counts, err := client.Recollect(ctx, req, func(s control.Step) { bar.showProgress(req.Source, s.Progress, s.Counts) })
	bar.clearLine()
	if err != nil {
		return err
	}
	if a.format == "json" {
		return printJSON(a.Out, counts)
	}
	verb := "Recollected"
	if req.Plan {
		verb = "Would recollect"
	}
	_, err = fmt.Fprintf(a.Out, "%s %s from %s to %s: %s\n", verb, req.Source, req.From.Format(time.RFC3339), req.To.Format(time.RFC3339), counts)
	return err
}
