package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/commandline"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) actionsCommand() *cobra.Command {
	return groupCommand("actions", "List, plan and run actions", "  bursar actions list\n  bursar actions plan priority/nemo\n  bursar actions run priority/nemo",
		p.actionsList(), p.actionsPlan(),
		p.actionsRun(),
		p.actionsOrder("pause", "Stop starting new runs; running ones finish", v1.API.PauseAction, true),
		p.actionsOrder("resume", "Resume a paused or disabled action", v1.API.ResumeAction, false),
		p.actionsHistory(), p.actionsPayload(),
		p.actionsOnEffect("retry", "Retry an effect that is unknown, rejected, skipped or superseded", v1.API.RetryEffect),
		p.actionsOnEffect("skip", "Skip an effect that is pending, unknown or rejected", v1.API.SkipEffect))
}

func (p *Program) actionsList() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the actions with their last runs",
		Long: `List the actions with their last runs, and what to do about those that need
attention.

With -check the exit code is 2 when an action is failing, disabled or paused, or the
outcome of an effect is unknown.`,
		Example: "  bursar actions list\n  bursar actions list -format json",
	}
	cmd.Flags().BoolVar(&check, "check", false, "exit with 2 when an action is not healthy")
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.Actions, error) { return api.Actions(ctx, nil) }
	return queryCommand(p, cmd, ask, func(list v1.Actions, _ format, c *clock) page {
		out := listPage(view.Actions(list), c)
		var bad []string
		for i := range list.Actions {
			if a := &list.Actions[i]; slices.Contains([]string{"failing", "disabled", "unknown", "paused"}, a.State) {
				bad = append(bad, view.ActionName(a))
			}
		}
		if check && len(bad) > 0 {
			out.found = newFinding("not healthy: %s", strings.Join(bad, ", "))
		}
		return out
	})
}

// actionOf reads the name of an action.
func actionOf(name string) (typ, label string, err error) {
	typ, label, ok := strings.Cut(name, "/")
	if !ok || typ == "" || label == "" {
		return "", "", fmt.Errorf("%q is no action; \"bursar actions list\" prints them, as TYPE/LABEL", name)
	}
	return typ, label, nil
}

// argumentsOf reads NAME=VALUE.
func argumentsOf(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not NAME=VALUE", s)
		}
		out[name] = value
	}
	return out, nil
}

// planTime is how long a plan may take.
const planTime = 16 * time.Minute

func (p *Program) actionsPlan() *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use: "plan ACTION [NAME=VALUE…]", Short: "Show what a run would do now, without doing it",
		Example: "  bursar actions plan priority/nemo\n  bursar actions plan apel/site month=2026-10 -v", Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show each effect in full")
	ask := func(ctx context.Context, api v1.API, args []string) (v1.ActionPlan, error) {
		typ, label, err := actionOf(args[0])
		if err != nil {
			return v1.ActionPlan{}, commandline.UsageError(cmd, err)
		}
		arguments, err := argumentsOf(args[1:])
		if err != nil {
			return v1.ActionPlan{}, commandline.UsageError(cmd, err)
		}
		return api.PlanAction(ctx, typ, label, v1.ActionOrder{Arguments: arguments})
	}
	return queryCommandWith(p, cmd, planTime, ask, func(plan v1.ActionPlan, _ format, c *clock) page { return showPlan(&plan, c, verbose) }, asTable, asJSON, asCSV)
}

func showPlan(plan *v1.ActionPlan, c *clock, verbose bool) page {
	out := listPage(view.Plan(*plan), c)
	if plan.Partial {
		out.found = newFinding("something is missing from the plan; the notes name it")
	}
	var full []string
	for _, e := range plan.Effects {
		if verbose && e.Show != "" {
			full = append(full, e.Name+"\n"+e.Show)
		}
	}
	if out.table != nil {
		out.table.below = strings.Join(full, "\n\n")
	}
	return out
}

// actionsOrder makes a command that orders something of an action.
func (p *Program) actionsOrder(verb, short string, do func(v1.API, context.Context, string, string, v1.ActionOrder) (v1.Message, error), reason bool) *cobra.Command {
	var why string
	cmd := &cobra.Command{Use: verb + " ACTION", Short: short, Example: "  bursar actions " + verb + " priority/nemo", Args: cobra.ExactArgs(1)}
	conn := p.connectionFlags(cmd)
	if reason {
		cmd.Flags().StringVar(&why, "why", "", "the `reason`, for those who look later")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		typ, label, err := actionOf(args[0])
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		return p.sendOrder(conn, func(api v1.API) (v1.Message, error) {
			return do(api, cmd.Context(), typ, label, v1.ActionOrder{Why: why})
		})
	}
	return cmd
}

// sendOrder sends an order and says what the server answers.
func (p *Program) sendOrder(conn *connection, do func(api v1.API) (v1.Message, error)) error {
	c, err := conn.openClient(p)
	if err != nil {
		return err
	}
	defer c.Close()
	answer, err := do(c.API)
	if err != nil {
		return err
	}
	p.say("%s", answer.Message)
	return nil
}

func (p *Program) actionsOnEffect(verb, short string, do func(v1.API, context.Context, string, string, uint64, int, v1.ActionOrder) (v1.Message, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " ACTION RUN EFFECT", Short: short, Args: cobra.ExactArgs(3),
		Example: "  bursar actions history mail/monthly 12\n  bursar actions " + verb + " mail/monthly 12 0",
	}
	conn := p.connectionFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := effectOf(args)
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		return p.sendOrder(conn, func(api v1.API) (v1.Message, error) {
			return do(api, cmd.Context(), e.typ, e.label, e.run, e.effect, v1.ActionOrder{})
		})
	}
	return cmd
}

func (p *Program) actionsHistory() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "history ACTION [RUN]", Short: "List the runs of an action, or the effects of a run with all attempts",
		Example: "  bursar actions history priority/nemo\n  bursar actions history priority/nemo 12", Args: cobra.RangeArgs(1, 2),
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "how many runs at most, the newest first")
	ask := func(ctx context.Context, api v1.API, args []string) (any, error) {
		typ, label, err := actionOf(args[0])
		if err != nil {
			return nil, commandline.UsageError(cmd, err)
		}
		if len(args) == 1 {
			return api.ActionRuns(ctx, typ, label, &v1.ActionRunsQuery{Limit: limit})
		}
		run, err := strconv.ParseUint(args[1], 10, 31)
		if err != nil {
			return nil, commandline.UsageError(cmd, errors.New("the run is its number"))
		}
		return api.ActionRun(ctx, typ, label, run, nil)
	}
	return queryCommand(p, cmd, ask, func(answer any, _ format, c *clock) page {
		if runs, many := answer.(v1.ActionRuns); many {
			return listPage(view.ActionRuns(cmd.Flags().Arg(0), runs), c)
		}
		return listPage(view.Attempts(answer.(v1.ActionRunEffects)), c)
	})
}
