package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// usageOptions are the options of the command usage.
type usageOptions struct {
	window, from, to, zone, bucket string
	by, measure, component, meta   []string
	where                          []string
	unit, credit, order, compare   string
	people                         string
	top                            int
}

// tableTop is how many groups a table has when nothing else is asked.
const tableTop = 20

// unset is -top when it is not given; -1 is all, as 0 is.
const unset = math.MaxInt

func (p *Program) usageCommand() *cobra.Command {
	var o usageOptions
	var f format
	cmd := &cobra.Command{
		Use: "usage", Short: "Show usage by any key, for any time window",
		Long: `Show usage by any key, for any time window.

The usage of a run is split exactly where the window and its buckets end. Running jobs
count up to now. A rate, such as cores, is multiplied by time and comes in hours; a
total, such as CPU seconds, is spread over the run.

A window is 2026, 2026-Q3, 2026-03, 2026-W05, 2026-03-01, today, yesterday,
this-week, this-month, this-quarter, this-year, last-week and so on, or a length up to
now, like 14d: with -bucket from the start of its first day. -from and -to take these and
times; a date as -to is the start of that day. "Partial" is a bucket that is not whole.

Measures are records, started, stopped, people, wait, efficiency, unused, running and
queued (average numbers at a time), the components, and COMPONENT*SCORE; cost with
prices, su with service units, energy and co2 with a block energy. Group by meta keys or by keys that the
configuration derives from them, such as project. capacity is the cores of clusters,
and utilization the part of them that was used, by cluster or of all;
utilization*Memory is that of another component.
In lists a comma of a value is written \, and a backslash before a comma \\:
-where 'group_id=oak\,elm' is of one group, -where group_id=oak,elm of two.

A table shows the 20 largest groups and all others in one line; -top 0 shows all.
With -compare it shows the difference of the first component; json and csv have those
of all measures.`,
		Example: `  bursar usage -by group_id
  bursar usage -window last-month -by site_id,group_id -measure 'Cores*HEPScore23,records,efficiency'
  bursar usage -window this-year -bucket month -zone Europe/Berlin
  bursar usage -window 2026-Q3 -compare last-year -by group_id -top 10 -order Cores
  bursar usage -window 30d -bucket day -measure utilization,'utilization*GPUs' -where cluster=nemo
  bursar usage -from 2026-03-01 -to 2026-03-15 -by user_id -bucket day -where group_id=atlas -format csv > atlas.csv`,
		Args: cobra.NoArgs,
	}
	conn := p.connectionFlags(cmd)
	formatFlag(cmd, &f, asTable, asJSON, asCSV, asParquet)
	o.addFlags(cmd)
	p.completeKeys(cmd, conn)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		where, err := pairsOf("-where", o.where)
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		meta, err := pairsOf("-meta", o.meta)
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		query, err := o.usageQuery(f, where, meta)
		if err != nil {
			return commandline.UsageError(cmd, err)
		}
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		return p.writeUsage(cmd.Context(), c, query, f)
	}
	return cmd
}

func (o *usageOptions) addFlags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&o.window, "window", "", "the `time` that counts, by a word; default this-month")
	fl.StringVar(&o.from, "from", "", "the `time` from which on usage counts")
	fl.StringVar(&o.to, "to", "", "the `time` up to which usage counts; default now")
	fl.StringVar(&o.zone, "zone", "", "the time `zone` by whose clock days begin, like Europe/Berlin; default the site's")
	fl.Var(&choice{&o.bucket, calendar.Units()}, "bucket", "cut the window into: "+strings.Join(calendar.Units(), ", "))
	fl.StringArrayVar(&o.by, "by", nil, "a line for each value of these meta `keys`; with commas, or repeated")
	fl.StringArrayVar(&o.measure, "measure", nil, "what to show, a `list`; default records and all components with their scores")
	fl.StringArrayVar(&o.component, "component", nil, "components to show with all their scores, a `list`")
	fl.StringArrayVar(&o.where, "where", nil, "of `key=value`, like project=bell; several values with commas, or several times, match any of them, an empty one records without a value; a comma of a value is written \\,")
	fl.StringArrayVar(&o.meta, "meta", nil, "of records with `key=value` among the values of the key, of several with commas one; may be repeated, and then all hold")
	_ = fl.MarkHidden("meta") // the option exists
	fl.Var(&choice{&o.unit, []string{"hour", "second"}}, "unit", "of what is used over time: hour, second (default hour)")
	fl.Var(&choice{&o.credit, []string{"spread", "stop"}}, "credit", "spread over the run, or all of it to its stop (default spread)")
	fl.IntVar(&o.top, "top", unset, "how many groups have a line of their own, a `number`; 0 is all; default 20 in a table, else all")
	fl.Lookup("top").DefValue = "" // the text says it
	fl.StringVar(&o.order, "order", "", "the `measure` by which groups are ordered")
	fl.StringVar(&o.compare, "compare", "", "another `window`, and the difference to it: previous, last-year, or a word of -window")
	fl.StringVar(&o.people, "people", "", "the `key` whose values the measure people counts; default user_id")
	for name, words := range map[string][]string{
		"bucket": calendar.Units(), "unit": {"hour", "second"}, "credit": {"spread", "stop"},
		"window": windowWords(), "compare": append([]string{"previous", "last-year"}, windowWords()...), "measure": append(usage.MeasureWords(), usage.CapacityWords()...), "order": append(usage.MeasureWords(), usage.CapacityWords()...),
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the option exists
	}
}

func windowWords() []string {
	return []string{"today", "yesterday", "this-week", "this-month", "this-quarter", "this-year", "last-week", "last-month", "last-quarter", "last-year", "7d", "30d"}
}

// usageQuery checks the options and makes the query of them.
func (o *usageOptions) usageQuery(f format, where, meta []pair) (q *v1.UsageQuery, err error) {
	q = &v1.UsageQuery{
		Window: o.window, From: o.from, To: o.to, Zone: o.zone, Bucket: o.bucket, Unit: cmp.Or(o.unit, "hour"), Credit: o.credit,
		Order: o.order, Compare: o.compare, People: o.people, Where: map[string]string{},
		By: oneList(o.by), Measure: oneList(o.measure), Components: oneList(o.component),
	}
	if q.Window+q.From+q.To == "" {
		q.Window = "this-month"
	}
	switch {
	case o.top < -1:
		return nil, fmt.Errorf("-top: %d is no number of groups; 0 is all", o.top)
	case o.top != unset:
		q.Top = max(o.top, 0)
	case f == asTable && len(o.by) > 0:
		q.Top = tableTop
	}
	for _, w := range where {
		if before, ok := q.Where[w.key]; ok {
			w.value = oneList([]string{before, w.value})
		}
		q.Where[w.key] = w.value
	}
	q.Meta, err = metaTests("-meta", meta)
	return q, err
}

// oneList is the list of the values of several, for a query that takes one.
func oneList(lists []string) string { return v1.JoinList(v1.SplitList(lists...)...) }

// writeUsage asks for the usage and writes the answer in the format.
func (p *Program) writeUsage(ctx context.Context, c *client.Client, query *v1.UsageQuery, f format) error {
	switch {
	case f == asCSV:
		return c.UsageAs(ctx, query, "text/csv", p.Stdout)
	case f == asParquet && p.Width > 0:
		return errors.New("-format parquet is not text for a terminal; write it to a file: bursar usage -format parquet > usage.parquet")
	case f == asParquet:
		return c.UsageAs(ctx, query, "application/vnd.apache.parquet", p.Stdout)
	}
	answer, err := c.Usage(ctx, query)
	if err != nil {
		return err
	}
	shown := page{table: usageTable(&answer, p.Width), notes: usageNotes(&answer, query.Unit)}
	if answer.Records == 0 && len(query.Where)+len(query.Meta) > 0 {
		shown.found = newFinding("no record matches")
	}
	return p.writeAnswer(answer, f, shown)
}
