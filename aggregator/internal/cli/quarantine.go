package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/commandline"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (p *Program) quarantineCommand() *cobra.Command {
	return groupCommand("quarantine", "List, retry and drop quarantined jobs", "  bursar quarantine list\n  bursar quarantine retry -all",
		p.quarantineList(), p.quarantineShow(), p.quarantineEach("retry", "Map jobs again, after the agent's mapping was fixed", retryJob), p.quarantineEach("drop", "Forget jobs", dropJob))
}

func (p *Program) quarantineList() *cobra.Command {
	return queryCommand(p, &cobra.Command{
		Use: "list", Short: "List quarantined jobs", Example: "  bursar quarantine list\n  bursar quarantine list -format json",
	}, func(ctx context.Context, api v1.API, _ []string) (v1.Quarantine, error) {
		return api.Quarantine(ctx, nil)
	}, showList(view.Quarantine))
}

func (p *Program) quarantineShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show KEY", Short: "Show a quarantined job with its raw input", Example: "  bursar quarantine show nemo-head1/slurm/nemo/4711", Args: cobra.ExactArgs(1),
	}
	ask := func(ctx context.Context, api v1.API, args []string) (v1.Quarantined, error) {
		k, err := jobOf(args[0])
		if err != nil {
			return v1.Quarantined{}, commandline.UsageError(cmd, err)
		}
		return api.Quarantined(ctx, k[0], k[1], k[2], k[3], nil)
	}
	return queryCommandWith(p, cmd, 0, ask, showQuarantined, asTable, asJSON)
}

func showQuarantined(q v1.Quarantined, _ format, c *clock) page {
	t := newTable("WHAT", "VALUE")
	t.addRow("key", view.QuarantineKey(&q))
	t.addRow("reason", q.Reason)
	t.addRow("message", q.Message)
	t.addRow("record", orDash(q.RecordID))
	t.addRow("first", c.instantText(q.First))
	t.addRow("last", c.instantText(q.Last))
	t.addRow("count", strconv.FormatInt(q.Count, 10))
	t.below = q.Raw
	return page{table: t, notes: view.QuarantinedNotes(&q)}
}

// jobOf reads the key of a job: agent/type/label/id, where the id may hold slashes.
func jobOf(key string) (parts [4]string, err error) {
	if copy(parts[:], strings.SplitN(key, "/", 4)) != 4 || parts[3] == "" {
		return parts, fmt.Errorf("%q is no key; \"bursar quarantine list\" prints them, as AGENT/TYPE/LABEL/ID", key)
	}
	return parts, nil
}

func retryJob(ctx context.Context, api v1.API, k [4]string) error {
	_, err := api.RetryQuarantined(ctx, k[0], k[1], k[2], k[3])
	return err
}

func dropJob(ctx context.Context, api v1.API, k [4]string) error {
	return api.DropQuarantined(ctx, k[0], k[1], k[2], k[3])
}

// quarantineEach makes a command that does something to each of some jobs.
func (p *Program) quarantineEach(verb, short string, act func(context.Context, v1.API, [4]string) error) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: verb + " KEY…", Short: short,
		Example: "  bursar quarantine " + verb + " nemo-head1/slurm/nemo/4711\n  bursar quarantine " + verb + " -all",
	}
	conn := p.connectionFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all jobs in quarantine")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if all == (len(args) > 0) {
			return commandline.UsageError(cmd, errors.New("either keys or -all must be given"))
		}
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		if !all {
			return p.actOnKeys(cmd, c.API, args, verb, act)
		}
		keys, input, err := p.allKeys(cmd.Context(), c.API, verb == "retry")
		if err == nil && (len(keys) > 0 || input == 0) {
			err = p.actOnKeys(cmd, c.API, keys, verb, act)
		}
		if err == nil && input > 0 {
			err = newFinding("%d in quarantine cannot be mapped again", input)
		}
		return err
	}
	return cmd
}

// allKeys returns the keys of all jobs in quarantine. With mapped, it leaves out those that
// cannot be mapped again, says what to do with them, and returns how many they are.
func (p *Program) allKeys(ctx context.Context, api v1.API, mapped bool) (keys []string, input int, err error) {
	list, err := api.Quarantine(ctx, nil)
	for i := range list.Quarantine {
		q := &list.Quarantine[i]
		if mapped && q.Instead != "" {
			input++
			p.say("%s: %s; %s", view.QuarantineKey(q), q.Message, q.Instead)
			continue
		}
		keys = append(keys, view.QuarantineKey(q))
	}
	if list.More {
		p.say("There are more than the server lists at once: repeat this command afterwards.")
	}
	return keys, input, err
}

// actOnKeys calls act for every key and goes on where one fails.
func (p *Program) actOnKeys(cmd *cobra.Command, api v1.API, keys []string, verb string, act func(context.Context, v1.API, [4]string) error) error {
	failed := 0
	for _, key := range keys {
		k, err := jobOf(key)
		if err == nil {
			err = act(cmd.Context(), api, k)
		}
		if err != nil {
			failed++
			p.say("%s: %v", key, err)
		}
		if cmd.Context().Err() != nil {
			return cmd.Context().Err()
		}
	}
	p.say("%s: %d of %d done", verb, len(keys)-failed, len(keys))
	switch {
	case failed == 0:
		return nil
	case failed == len(keys):
		return errors.New("nothing was done")
	}
	return newFinding("%d of %d failed", failed, len(keys))
}
