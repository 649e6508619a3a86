package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// completes is what cobra asks for the words that may come next.
type completes = func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective)

// completion bounds what a completion asks of the cluster: how long, of how many records the
// keys, and how many values of a key.
const (
	completionTime    = 2 * time.Second
	completionRecords = 200
	completionValues  = 1000
)

// clusterCompletion makes a completion that asks the cluster. Without an answer nothing is completed.
func (p *Program) clusterCompletion(conn *connection, words func(ctx context.Context, c *client.Client, start string) ([]string, error)) completes {
	return func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		c, err := conn.openClient(p)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		list, err := words(ctx, c, start)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list = slices.DeleteFunc(slices.Sorted(slices.Values(list)), func(w string) bool { return !strings.HasPrefix(w, start) })
		directive := cobra.ShellCompDirectiveNoFileComp
		if len(list) > 0 && strings.HasSuffix(list[0], "=") {
			directive |= cobra.ShellCompDirectiveNoSpace // a value follows
		}
		return list, directive
	}
}

// completeActions completes the first argument: the name of an action.
func (p *Program) completeActions(conn *connection) completes {
	names := p.clusterCompletion(conn, func(ctx context.Context, c *client.Client, _ string) (list []string, err error) {
		all, err := c.Actions(ctx, nil)
		for i := range all.Actions {
			list = append(list, all.Actions[i].Type+"/"+all.Actions[i].Label)
		}
		return list, err
	})
	return func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd, args, start)
	}
}

// completeKeys completes -by with meta keys of the newest records, and -where with keys and
// their values.
func (p *Program) completeKeys(cmd *cobra.Command, conn *connection) {
	for name, words := range map[string]func(context.Context, *client.Client, string) ([]string, error){"by": keysAfter, "where": pairsAfter} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, p.clusterCompletion(conn, words)) // the option exists
		}
	}
}

// completePairs completes an option with keys and their values; the keys of examples, such as
// project=bell, are there beside those of records.
func (p *Program) completePairs(cmd *cobra.Command, conn *connection, option string, examples []string) {
	words := func(ctx context.Context, c *client.Client, start string) ([]string, error) {
		list, err := pairsAfter(ctx, c, start)
		for _, example := range examples {
			if key, _, ok := strings.Cut(example, "="); ok && !strings.Contains(start, "=") && !slices.Contains(list, key+"=") {
				list = append(list, key+"=")
			}
		}
		return list, err
	}
	_ = cmd.RegisterFlagCompletionFunc(option, p.clusterCompletion(conn, words)) // the option exists
}

// keysAfter are keys behind those that stand there with commas.
func keysAfter(ctx context.Context, c *client.Client, start string) ([]string, error) {
	keys, err := someKeys(ctx, c)
	before := v1.SplitList(start)
	for i := range keys {
		keys[i] = v1.JoinList(append(before[:len(before)-1:len(before)-1], keys[i])...)
	}
	return keys, err
}

// pairsAfter are keys, and behind a key its values.
func pairsAfter(ctx context.Context, c *client.Client, start string) ([]string, error) {
	key, _, ok := strings.Cut(start, "=")
	if !ok {
		keys, err := someKeys(ctx, c)
		for i := range keys {
			keys[i] += "="
		}
		return keys, err
	}
	answer, err := c.Usage(ctx, &v1.UsageQuery{From: "1970-01-01", By: v1.JoinList(key), Measure: "records", Top: completionValues})
	var list []string
	for _, g := range answer.Groups {
		if len(g.Values) == 1 && g.Values[0] != nil {
			list = append(list, key+"="+v1.JoinList(*g.Values[0]))
		}
	}
	return list, err
}

// someKeys are the meta keys of the newest records.
func someKeys(ctx context.Context, c *client.Client) ([]string, error) {
	q := &v1.ListRecordsQuery{Limit: completionRecords}
	q.SortBy.Desc = "stop_time"
	keys := map[string]bool{}
	for r, err := range c.ListRecordsLines(ctx, q) {
		if err != nil {
			return nil, err
		}
		for key := range r.Meta {
			keys[key] = true
		}
	}
	return slices.Collect(maps.Keys(keys)), nil
}
