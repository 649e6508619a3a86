package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/client"
)

// summaryFlags are what only bursar report summary has.
type summaryFlags struct {
	options            report.SummaryOptions
	by, where, measure []string
	ai4                ai4Flags
}

func (p *Program) reportSummary() *cobra.Command {
	f := &summaryFlags{}
	cmd := &cobra.Command{
		Use: "summary", Short: "What each group and user had, day by day, with runs that went on and waited",
		Long: `What each group and user had, in two periods side by side, and day by day in the
first one: cores, GPUs by model, memory, disk and other components in the mean of
each day, weighted with time, and how many runs went on and waited. Names, addresses
and projects of users are those of the directory.

-compat ai4 writes the files of ai4-accounting in the directory of -o instead, in
its format: summaries/NAMESPACE-timeseries.csv, -users-agg.csv and -full-agg.csv,
which ai4-papi reads, -users-agg-merged.csv with names, and users/user-db.csv and
.json, where users of former files stay. They are of one period, by default all the
history, in UTC, of records as the Nomad source and bursar import ai4 make them. The
figures are what ai4-accounting says: what a snapshot every four hours would have
seen, rounded, with MHz for cores where none were reserved, without jobs that have no
owner or another name than module…, tool… or batch…, and without the namespaces
default and tutorials. What differs: the columns queued and running are always there;
a period of one day has the same form as others; every namespace that has ever had a
record, is in the newest of -snapshots or is named with -namespace has files; jobs
that wait and have never started are not seen; users have their names from the
directory, also those of batch jobs; what is over counts as listed for four hours,
whoever purged it. Where records do not say when they were "allocated", jobs that are
starting count as queued.`,
		Example: "  bursar report summary\n  bursar report summary -period 2026-10-01..2026-10-07 -by namespace,user_id -o week.html\n" +
			"  bursar report summary -period last-month -where group_id=imagine -format csv\n" +
			"  bursar report summary -compat ai4 -namespace imagine,ai4life -o /srv/ai4-accounting",
	}
	o := &f.options
	periodFlags(cmd, &o.Periods, &o.Zone)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.by, "by", nil, "the `keys` whose tuples are the lines, with commas; default group_id,user_id")
	fl.StringArrayVar(&f.measure, "measure", nil, "what to show, a `list` as for bursar usage; default all components")
	fl.StringArrayVar(&f.where, "where", nil, "only of `key=value`; may be repeated")
	fl.Var(&choice{&o.Bucket, []string{"day", "week", "month"}}, "bucket", "how fine the course is: day, week, month (default day)")
	fl.IntVar(&o.Top, "top", 0, "how many lines at most, a `number`; the others are one line; 0 is all")
	f.ai4.add(cmd, "write the files of another program into the directory of -o: ai4")
	return p.reports(cmd, func(ctx context.Context, c *client.Client) (*report.Document, error) {
		if f.ai4.compat == asAI4 {
			return nil, p.writeAI4(ctx, cmd, c, f)
		}
		if err := f.ai4.unused(cmd); err != nil {
			return nil, err
		}
		if err := f.complete(cmd, p.Now()); err != nil {
			return nil, err
		}
		return report.Summary(ctx, c.API, *o)
	})
}

// complete fills the options of what flags say.
func (f *summaryFlags) complete(cmd *cobra.Command, now time.Time) (err error) {
	if err := checkPeriods(cmd, f.options.Periods); err != nil {
		return err
	}
	f.options.Now = now
	f.options.By, f.options.Measure = lists(f.by), lists(f.measure)
	if f.options.Where, err = argumentsOf(f.where); err != nil {
		return usageError(cmd, err)
	}
	return nil
}

// lists joins lists with commas.
func lists(values []string) (out []string) {
	for _, v := range values {
		for one := range strings.SplitSeq(v, ",") {
			if one = strings.TrimSpace(one); one != "" {
				out = append(out, one)
			}
		}
	}
	return out
}
