package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"

	"github.com/bursar-accounting/bursar/proto/commandline"
)

// actionsRun makes the command that orders a run and waits until it is planned.
func (p *Program) actionsRun() *cobra.Command {
	var detach bool
	cmd := &cobra.Command{
		Use: "run ACTION [NAME=VALUE…]", Short: "Start a run and wait until it is planned",
		Long: `Start a run and wait until it is planned; it starts when the previous one has ended.
Its effects are carried out afterwards: "bursar actions history" shows them. The exit
code is 1 when the run cannot be planned, and 2 when something is missing from it, such as
records that an action leaves out. Ctrl-C stops the waiting, not the run.`,
		Example: "  bursar actions run priority/nemo\n  bursar actions run apel/site month=2026-10", Args: cobra.MinimumNArgs(1),
	}
	conn := p.connectionFlags(cmd)
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait until the run is planned")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		typ, label, err := actionOf(args[0])
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		arguments, err := argumentsOf(args[1:])
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		answer, err := c.RunAction(cmd.Context(), typ, label, v1.ActionOrder{Arguments: arguments})
		if err != nil {
			return err
		}
		if detach || answer.Ordered.IsZero() {
			p.say("%s", answer.Message)
			return nil
		}
		return p.awaitPlan(cmd.Context(), c.API, typ, label, answer.Ordered)
	}
	return cmd
}

const (
	// waitForPlan is how long a run may take until it is planned: the run before it may
	// have to end, and a plan may take planTime.
	waitForPlan = 2 * planTime
	// planPause is the pause between two looks.
	planPause = 300 * time.Millisecond
)

// awaitPlan waits until the run that was ordered at that time is in the history. The error
// says so when the action was paused or disabled since: then the order waits, too.
func (p *Program) awaitPlan(ctx context.Context, api v1.API, typ, label string, ordered v1.Time) error {
	ctx, cancel := context.WithTimeout(ctx, waitForPlan)
	defer cancel()
	name := typ + "/" + label
	var stopped error
	for {
		list, err := api.ActionRuns(ctx, typ, label, &v1.ActionRunsQuery{Limit: 100})
		if i := slices.IndexFunc(list.Runs, func(r v1.ActionRun) bool { return r.Ordered.Equal(ordered.Time) }); err == nil && i >= 0 {
			return p.reportPlan(&list.Runs[i], name)
		}
		if stopped != nil {
			return stopped
		}
		if err == nil {
			stopped, err = stoppedAction(ctx, api, name) // the run may have been planned before
		}
		if late := sleepContext(ctx, planPause); late != nil {
			return fmt.Errorf("run of %s ordered, but not planned yet: %w; look later with: bursar actions history %s", printable(name), errors.Join(late, err), printable(name))
		}
	}
}

// stoppedAction returns why a run that was ordered has to wait: its action is paused or disabled.
func stoppedAction(ctx context.Context, api v1.API, name string) (stopped, err error) {
	list, err := api.Actions(ctx, &v1.Reading{})
	for i := range list.Actions {
		a := &list.Actions[i]
		if view.ActionName(a) != name {
			continue
		}
		switch {
		case a.Paused != nil:
			return fmt.Errorf("run of %s ordered, but the action has been paused since: it is planned after: bursar actions resume %s", printable(name), printable(name)), nil
		case a.Disabled != nil:
			why := cmp.Or(string(a.Disabled.Why), "no reason given")
			return fmt.Errorf("run of %s ordered, but the action has been disabled since: %s; it is planned after: bursar actions resume %s", printable(name), printable(why), printable(name)), nil
		}
	}
	return nil, err
}

// sleepContext sleeps; the error is the context's, when that ends first.
func sleepContext(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// reportPlan says what became of the plan of a run.
func (p *Program) reportPlan(r *v1.ActionRun, name string) error {
	name = printable(name)
	if r.Failure != "" {
		return fmt.Errorf("run %d of %s failed: it cannot be planned: %s; fix the cause and run it again", r.Run, name, printable(string(r.Failure)))
	}
	p.say("run %d is planned, with %s: bursar actions history %s %d", r.Run, view.Plural(r.Effects, "effect"), name, r.Run)
	for _, n := range r.Notes {
		p.say("%s", n)
	}
	if r.Partial {
		return newFinding("something is missing from run %d of %s; the notes name it", r.Run, name)
	}
	return nil
}
