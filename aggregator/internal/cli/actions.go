package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/bursar-accounting/bursar/proto/v1"

	"github.com/bursar-accounting/bursar/proto/commandline"
)

// actionName names an action on the command line.
func actionName(a *v1.Action) string { return a.Type + "/" + a.Label }

func (p *Program) actionsCommand() *cobra.Command {
	return group("actions", "List, plan and run actions", "  bursar actions list\n  bursar actions plan priority/nemo\n  bursar actions run priority/nemo",
		p.actionsList(), p.actionsPlan(),
		p.actionsRun(),
		p.actionsOrder("pause", "Stop starting new runs; running ones finish", v1.API.PauseAction, true),
		p.actionsOrder("resume", "Let a paused or disabled action go on", v1.API.ResumeAction, false),
		p.actionsHistory(), p.actionsPayload(),
		p.actionsSettle("retry", "Try an effect again that is unknown, rejected, skipped or superseded", v1.API.RetryEffect),
		p.actionsSettle("skip", "Settle an effect that waits, is unknown or was rejected: it is not done", v1.API.SkipEffect))
}

func (p *Program) actionsList() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the actions with their last runs",
		Long: `List the actions with their last runs, and what is to be done about those that are
not healthy.

With -check the exit code is 2 when one of them is failing, disabled, in doubt or
paused.`,
		Example: "  bursar actions list\n  bursar actions list -format json",
	}
	cmd.Flags().BoolVar(&check, "check", false, "exit with 2 when an action is not healthy")
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.Actions, error) { return api.Actions(ctx, nil) }
	return look(p, cmd, ask, func(list v1.Actions, raw json.RawMessage, f format) error {
		if len(list.Actions) == 0 && f == asTable {
			p.say(`There are no actions; a block action "type" "label" { … } in aggregator.hcl makes one.`)
			return nil
		}
		t, bad := actionTable(list.Actions)
		if err := p.show(f, t, raw); err != nil {
			return err
		}
		for i := range list.Actions {
			if f == asTable {
				p.actionTrouble(&list.Actions[i])
			}
		}
		if check && len(bad) > 0 {
			return found("not healthy: %s", printable(strings.Join(bad, ", ")))
		}
		return nil
	})
}

func actionTable(list []v1.Action) (t *table, bad []string) {
	t = newTable("ACTION", "STATE", "?SCHEDULE", "?RUNS ON", "?>RUN", "PLANNED", "~OUTCOME", "?LAST SUCCESS", "?>ORDERS")
	for i := range list {
		a := &list[i]
		row := []string{actionName(a), a.State, dash(string(a.Schedule)), dash(string(a.RunOn)), "-", "-", "-", instant(a.LastSuccess), strconv.Itoa(a.Orders)}
		if r := a.Last; r != nil {
			row[4], row[5], row[6] = strconv.FormatUint(r.Run, 10), instant(r.Planned), r.Outcome()
		}
		t.add(row...)
		paint := ""
		switch a.State {
		case "failing", "disabled", "unknown", "paused":
			paint = "31"
			bad = append(bad, actionName(a))
		}
		t.paint = append(t.paint, paint)
	}
	return t, bad
}

// actionTrouble says what is wrong with an action, and what to do.
func (p *Program) actionTrouble(a *v1.Action) {
	name := printable(actionName(a))
	if m := a.Paused; m != nil {
		why := ""
		if m.Why != "" {
			why = ": " + printable(string(m.Why))
		}
		p.say("%s: paused by %s at %s%s", name, string(m.By), instant(m.At), why)
	}
	if m := a.Disabled; m != nil {
		p.say("%s: disabled: %s", name, string(m.Why))
		p.say("%s: do first: bursar actions resume %s", name, name)
	}
	if m := a.Problem; m != nil {
		p.say("%s: no plan since %s: %s", name, instant(m.At), string(m.Why))
	}
	for _, run := range a.Doubtful {
		p.say("%s: run %d has effects that may have happened: bursar actions history %s %d, then retry or skip", name, run, name, run)
	}
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
	var f format
	var verbose bool
	cmd := &cobra.Command{
		Use: "plan ACTION [NAME=VALUE…]", Short: "Show what a run would do now; nothing is done",
		Example: "  bursar actions plan priority/nemo\n  bursar actions plan apel/site month=2026-10 -v", Args: cobra.MinimumNArgs(1),
	}
	conn := p.connect(cmd)
	conn.timeout = planTime
	formatFlag(cmd, &f, asTable, asJSON, asCSV)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show each effect in full")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		typ, label, err := actionOf(args[0])
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		arguments, err := argumentsOf(args[1:])
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		ask := func(ctx context.Context, api v1.API) (v1.ActionPlan, error) {
			return api.PlanAction(ctx, typ, label, v1.ActionOrder{Arguments: arguments})
		}
		return asked(cmd.Context(), p, conn, f, ask, func(plan v1.ActionPlan, raw json.RawMessage, f format) error {
			return p.showPlan(&plan, raw, f, verbose)
		})
	}
	return cmd
}

func (p *Program) showPlan(plan *v1.ActionPlan, raw json.RawMessage, f format, verbose bool) error {
	t := newTable("EFFECT", "~WHAT", "?>BYTES")
	for _, e := range plan.Effects {
		t.add(e.Name, e.Summary, strconv.Itoa(e.Size))
	}
	if len(plan.Effects) > 0 || f != asTable {
		if err := p.show(f, t, raw); err != nil {
			return err
		}
	}
	if f != asTable {
		return nil
	}
	if len(plan.Effects) == 0 {
		p.say("There is nothing to do.")
	}
	for _, e := range plan.Effects {
		if verbose && e.Show != "" {
			fmt.Fprintf(p.Stdout, "\n%s\n%s\n", printable(e.Name), lines(e.Show))
		}
	}
	if on := string(plan.RunOn); on != "" && len(plan.Effects) > 0 {
		p.say("The programs would run on the agent %s.", on)
	}
	for _, n := range plan.Notes {
		p.say("%s", n)
	}
	if plan.Partial {
		return found("something is missing from the plan; the notes name it")
	}
	return nil
}

// actionsOrder makes a command that orders something of an action.
func (p *Program) actionsOrder(verb, short string, do func(v1.API, context.Context, string, string, v1.ActionOrder) (v1.Message, error), reason bool) *cobra.Command {
	var why string
	cmd := &cobra.Command{Use: verb + " ACTION", Short: short, Example: "  bursar actions " + verb + " priority/nemo", Args: cobra.ExactArgs(1)}
	conn := p.connect(cmd)
	if reason {
		cmd.Flags().StringVar(&why, "why", "", "the `reason`, for those who look later")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		typ, label, err := actionOf(args[0])
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		return p.order(conn, func(api v1.API) (v1.Message, error) {
			return do(api, cmd.Context(), typ, label, v1.ActionOrder{Why: why})
		})
	}
	return cmd
}

// order gives an order and says what the server says.
func (p *Program) order(conn *connection, do func(api v1.API) (v1.Message, error)) error {
	c, err := conn.open(p)
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

func (p *Program) actionsSettle(verb, short string, do func(v1.API, context.Context, string, string, uint64, int, v1.ActionOrder) (v1.Message, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " ACTION RUN EFFECT", Short: short, Args: cobra.ExactArgs(3),
		Example: "  bursar actions history mail/monthly 12\n  bursar actions " + verb + " mail/monthly 12 0",
	}
	conn := p.connect(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := effectOf(args)
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		return p.order(conn, func(api v1.API) (v1.Message, error) {
			return do(api, cmd.Context(), e.typ, e.label, e.run, e.effect, v1.ActionOrder{})
		})
	}
	return cmd
}

func (p *Program) actionsHistory() *cobra.Command {
	var f format
	var limit int
	cmd := &cobra.Command{
		Use: "history ACTION [RUN]", Short: "List the runs of an action, or the effects of a run with all attempts",
		Example: "  bursar actions history priority/nemo\n  bursar actions history priority/nemo 12", Args: cobra.RangeArgs(1, 2),
	}
	conn := p.connect(cmd)
	formatFlag(cmd, &f, asTable, asJSON, asCSV)
	cmd.Flags().IntVar(&limit, "limit", 20, "how many runs at most, the newest first")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		typ, label, err := actionOf(args[0])
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		if len(args) == 1 {
			return asked(cmd.Context(), p, conn, f, func(ctx context.Context, api v1.API) (v1.ActionRuns, error) {
				return api.ActionRuns(ctx, typ, label, &v1.ActionRunsQuery{Limit: limit})
			}, p.showRuns)
		}
		run, err := strconv.ParseUint(args[1], 10, 31)
		if err != nil {
			return commandline.UsageError(cmd, errors.New("the run is its number"))
		}
		return asked(cmd.Context(), p, conn, f, func(ctx context.Context, api v1.API) (v1.ActionRunEffects, error) {
			return api.ActionRun(ctx, typ, label, run, nil)
		}, p.showRun)
	}
	return cmd
}

func (p *Program) showRuns(list v1.ActionRuns, raw json.RawMessage, f format) error {
	t := newTable(">RUN", "WHY", "?BY", "PLANNED", "?ENDED", ">EFFECTS", "~OUTCOME")
	for i := range list.Runs {
		r := &list.Runs[i]
		t.add(strconv.FormatUint(r.Run, 10), r.Why, dash(string(r.By)), instant(r.Planned), instant(r.Ended), strconv.Itoa(r.Effects), r.Outcome())
	}
	return p.show(f, t, raw)
}

func (p *Program) showRun(a v1.ActionRunEffects, raw json.RawMessage, f format) error {
	t := newTable(">EFFECT", "NAME", "STATE", "?>TRY", "?NODE", "?>FENCE", "BEGUN", "?OUTCOME", "~MESSAGE")
	for _, e := range a.Effects {
		number := strconv.Itoa(e.Effect)
		if len(e.Attempts) == 0 {
			t.add(number, e.Name, e.State, "-", "-", "-", "-", "-", e.Summary)
		}
		for _, n := range e.Attempts {
			t.add(number, e.Name, e.State, strconv.Itoa(n.Number), n.Node, strconv.FormatUint(n.Fence, 10), instant(n.Begun), dash(string(n.Outcome)), n.Message)
		}
	}
	if err := p.show(f, t, raw); err != nil {
		return err
	}
	for _, n := range a.Run.Notes {
		if f == asTable {
			p.say("%s", n)
		}
	}
	return nil
}
