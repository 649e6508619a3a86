package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) capacityCommand() *cobra.Command {
	var at, window, zone string
	cmd := &cobra.Command{
		Use: "capacity", Short: "Show cluster capacity: cores, memory, GPUs, service units",
		Long: `Show the capacity of clusters and groups of clusters: cores, memory, GPUs, service units.

Capacity comes from the cluster blocks of the configuration and from sources that
report it. Where it is unknown, the table shows "-" and utilization excludes that time.
With -window there is a row for each change in the window.

For utilization, run "bursar usage -measure utilization".`,
		Example: `  bursar capacity
  bursar capacity -at 2025-01-01
  bursar capacity -window this-year -format csv
  bursar usage -window last-month -by cluster -measure Cores,capacity,utilization,'utilization*GPUs'`,
	}
	cmd.Flags().StringVar(&at, "at", "", "what there was at this `time`; default now")
	cmd.Flags().StringVar(&window, "window", "", "the changes in a `time`, by a word as in bursar usage")
	cmd.Flags().StringVar(&zone, "zone", "", "the time `zone` by whose clock days begin; default the site's")
	_ = cmd.RegisterFlagCompletionFunc("window", cobra.FixedCompletions(windowWords(), cobra.ShellCompDirectiveNoFileComp)) // the option exists
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.Capacity, error) {
		return api.Capacity(ctx, &v1.CapacityQuery{At: at, Window: window, Zone: zone})
	}
	return queryCommand(p, cmd, ask, func(answer v1.Capacity, f format, c *clock) page {
		if named, err := time.LoadLocation(zone); zone != "" && err == nil {
			c = clockFor(f, named)
		}
		out := listPage(view.Capacity(answer), c)
		if zone != "" {
			out.notes = append(out.notes, c.zoneNotes()...)
		}
		return out
	})
}

func (p *Program) censusCommand() *cobra.Command {
	by := "user"
	words := []string{"user", "queue", "source", "all"}
	cmd := &cobra.Command{
		Use: "census", Short: "Show how many jobs run and wait now, by user or queue",
		Long: `Show how many jobs run and wait, by user or queue, as each source last reported it.

The numbers are those of the schedulers; waiting jobs have no records yet. The time of
each source's report is below the table.`,
		Example: "  bursar census\n  bursar census -by queue\n  bursar census -by all -format csv",
	}
	cmd.Flags().Var(&choice{&by, words}, "by", "a line for each: "+strings.Join(words, ", "))
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the option exists
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.Capacity, error) { return api.Capacity(ctx, nil) }
	return queryCommand(p, cmd, ask, func(answer v1.Capacity, f format, c *clock) page {
		l := view.Census(answer, by, c.zone.String())
		if answer.Census == nil && f != asTable {
			p.say("%s", l.Empty)
		}
		out := listPage(l, c)
		out.answer = answer.Census
		return out
	})
}
