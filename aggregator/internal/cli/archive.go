package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/commandline"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) archiveCommand() *cobra.Command {
	return groupCommand("archive", "List, verify and restore archived months",
		"  bursar archive list\n  bursar archive verify archive/site\n  bursar archive restore archive/site 2024-03",
		p.archiveList(), p.archiveOrder("verify", "Read the files of archives and compare them with their manifests and the store",
			`Read the files of an archive, or of all, and compare them with their manifests and with what
the store knows. The exit code is 2 when they differ. Ctrl-C stops the waiting, not the run.`),
		p.archiveOrder("restore", "Give the records of archived months back to the store",
			`Give the records of an archived month, with its supplements, back to the store, when the
files agree with what the store knows. The files stay. A month that is due is removed again
by the next run: pause the action before.`))
}

func (p *Program) archiveList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the months that were removed from the store, and where their files are",
		Example: "  bursar archive list\n  bursar archive list -format json",
	}
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.Archives, error) { return api.Archives(ctx, nil) }
	return queryCommand(p, cmd, ask, showList(view.Archives))
}

// archiveTime is how long all files may take to be read.
const archiveTime = 6 * time.Hour

// archiveOrder makes a command that has an action do something, and waits until it has.
func (p *Program) archiveOrder(do, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use: do + " ACTION [ARCHIVE]", Short: short, Long: long, Args: cobra.RangeArgs(1, 2),
		Example: fmt.Sprintf("  bursar archive %s archive/site 2024-03\n  bursar archive %s archive/site 2024-03-2", do, do),
	}
	what := "all"
	if do == "restore" {
		cmd.Use, cmd.Args, what = do+" ACTION ARCHIVE", cobra.ExactArgs(2), ""
	}
	ask := func(ctx context.Context, api v1.API, args []string) (out v1.ActionRunEffects, err error) {
		typ, label, err := actionOf(args[0])
		if err != nil {
			return out, commandline.UsageError(cmd, err)
		}
		if len(args) > 1 {
			what = args[1]
		}
		answer, err := api.RunAction(ctx, typ, label, v1.ActionOrder{Arguments: map[string]string{do: what}})
		if err != nil {
			return out, err
		}
		ctx, cancel := context.WithTimeout(ctx, archiveTime)
		defer cancel()
		return awaitRunEnd(ctx, api, typ, label, answer.Ordered)
	}
	return queryCommandWith(p, cmd, 0, ask, func(run v1.ActionRunEffects, _ format, c *clock) page {
		out := listPage(view.Attempts(run), c)
		if run.Run.Done < run.Run.Effects {
			out.found = newFinding("%d of %d archives: %s did not succeed", run.Run.Effects-run.Run.Done, run.Run.Effects, do)
		}
		return out
	}, asTable, asJSON)
}

// awaitRunEnd waits until the run that was ordered at that time has ended.
func awaitRunEnd(ctx context.Context, api v1.API, typ, label string, ordered v1.Time) (v1.ActionRunEffects, error) {
	for {
		list, err := api.ActionRuns(ctx, typ, label, &v1.ActionRunsQuery{Limit: 100})
		i := slices.IndexFunc(list.Runs, func(r v1.ActionRun) bool { return r.Ordered.Equal(ordered.Time) })
		if err == nil && i >= 0 {
			switch r := &list.Runs[i]; {
			case r.Failure != "":
				return v1.ActionRunEffects{}, fmt.Errorf("run %d of %s/%s cannot be planned: %s", r.Run, typ, label, r.Failure)
			case !r.Ended.IsZero():
				return api.ActionRun(ctx, typ, label, r.Run, nil)
			}
		}
		if late := sleepContext(ctx, planPause); late != nil {
			return v1.ActionRunEffects{}, fmt.Errorf("the run of %s/%s goes on: %w; look later with: bursar actions history %s/%s",
				printable(typ), printable(label), errors.Join(late, err), printable(typ), printable(label))
		}
	}
}
