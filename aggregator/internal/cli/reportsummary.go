package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/client"
)

// asAI4 is the program whose files a report can be written as.
const asAI4 = "ai4"

// summaryFlags are what only bursar report summary has.
type summaryFlags struct {
	options                  report.SummaryOptions
	by, where, measure       []string
	compat, every, snapshots string
}

func (p *Program) reportSummary() *cobra.Command {
	f := &summaryFlags{}
	cmd := &cobra.Command{
		Use: "summary", Short: "what each group and user had, day by day, with runs that went on and waited",
		Long: `What each group and user had, in two periods side by side, and day by day in the
first one: cores, GPUs by model, memory, disk and other components in the mean of
each day, weighted with time, and how many runs went on and waited. Names, addresses
and projects of users are those of the directory.

-compat ai4 writes the files of ai4-accounting in the directory of -o instead, in
its format: summaries/NAMESPACE-timeseries.csv, -users-agg.csv and -full-agg.csv,
which ai4-papi reads, -users-agg-merged.csv with names, and users/user-db.csv and
.json, where users of former files stay. They are of one period, by default the last
90 days, in UTC, of records as the Nomad source makes them. The figures are what
ai4-accounting says: what a snapshot every four hours would have seen, rounded, with
MHz for cores where none were reserved, without jobs that have no owner or another
name than module…, tool… or batch…, and without the namespaces default and
tutorials. What differs: the columns queued and running are always there; a period of
one day has the same form as others; an empty namespace has files; jobs that wait and
have never started are not seen; users have their names from the directory, also
those of batch jobs; what is over counts as listed for four hours, whoever purged it.
Where records do not say when they were "allocated", jobs that are starting count as
queued.`,
		Example: "  bursar report summary\n  bursar report summary -period 2026-10-01..2026-10-07 -by namespace,user_id -o week.html\n" +
			"  bursar report summary -period last-month -where group_id=imagine -format csv\n" +
			"  bursar report summary -compat ai4 -o /srv/ai4-accounting",
	}
	o := &f.options
	periodFlags(cmd, &o.Periods, &o.Zone)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.by, "by", nil, "the `keys` whose tuples are the lines, with commas; default group_id,user_id")
	fl.StringArrayVar(&f.measure, "measure", nil, "what to show, a `list` as for bursar usage; default all components")
	fl.StringArrayVar(&f.where, "where", nil, "only of `key=value`; may be repeated")
	fl.Var(&choice{&o.Bucket, []string{"day", "week", "month"}}, "bucket", "how fine the course is: day, week, month (default day)")
	fl.IntVar(&o.Top, "top", 0, "how many lines at most, a `number`; the others are one line; 0 is all")
	fl.Var(&choice{&f.compat, []string{asAI4}}, "compat", "write the files of another program into the directory of -o: ai4")
	fl.StringVar(&f.every, "every", "", "with -compat ai4: how far its snapshots are apart, a `duration`; default 4h")
	fl.StringVar(&f.snapshots, "snapshots", "", "with -compat ai4: a `directory` with snapshots of ai4-accounting; their times count")
	return p.reports(cmd, func(ctx context.Context, c *client.Client) (*report.Document, error) {
		if f.compat == asAI4 {
			return nil, p.writeAI4(ctx, cmd, c, f)
		}
		if f.every != "" || f.snapshots != "" {
			return nil, usage(cmd, errors.New("-every and -snapshots are for -compat ai4"))
		}
		if err := f.complete(cmd, p.Now()); err != nil {
			return nil, err
		}
		return report.Summary(ctx, c, *o)
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
		return usage(cmd, err)
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

// writeAI4 writes the files of ai4-accounting.
func (p *Program) writeAI4(ctx context.Context, cmd *cobra.Command, c *client.Client, f *summaryFlags) error {
	dir := cmd.Flags().Lookup("output").Value.String()
	o, err := f.ai4(cmd, dir, p.Now())
	if err != nil {
		return err
	}
	out, err := report.AI4(ctx, c, o)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(out.Files)) {
		if err := replaceFile(filepath.Join(dir, filepath.FromSlash(name)), out.Files[name]); err != nil {
			return fmt.Errorf("write the files for ai4-papi: %w", err)
		}
	}
	for _, note := range out.Notes {
		p.say("%s", wrap(printable(note), p.Width, 0))
	}
	p.say("%d files are written in %s.", len(out.Files), dir)
	return nil
}

// ai4 are the options of the files of ai4-accounting.
func (f *summaryFlags) ai4(cmd *cobra.Command, dir string, now time.Time) (o report.AI4Options, err error) {
	o.Now = now
	for _, name := range []string{"by", "measure", "where", "bucket", "top", "zone", "format"} {
		if cmd.Flags().Changed(name) {
			return o, usage(cmd, fmt.Errorf("-%s has no meaning with -compat ai4: the files have a form of their own", name))
		}
	}
	switch {
	case dir == "":
		return o, usage(cmd, errors.New("-compat ai4 writes several files; name their directory with -o"))
	case len(f.options.Periods) > 1:
		return o, usage(cmd, errors.New("-compat ai4 is of one -period"))
	case f.every != "" && f.snapshots != "":
		return o, usage(cmd, errors.New("give -every or -snapshots"))
	}
	o.Period = cmp.Or(f.options.Periods...)
	if f.every != "" {
		if o.Every, err = hcl.ParseDuration(f.every); err != nil {
			return o, usage(cmd, fmt.Errorf("-every: %w", err))
		}
	}
	if f.snapshots != "" {
		if o.Snapshots, err = snapshotTimes(f.snapshots); err != nil {
			return o, err
		}
	}
	o.Known, err = knownUsers(filepath.Join(dir, filepath.FromSlash(report.AI4Users)))
	return o, err
}

// snapshotTimes are those of which snapshots have their names.
func snapshotTimes(dir string) (times []time.Time, err error) {
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, isJSON := strings.CutSuffix(filepath.Base(path), ".json")
		if t, wrong := time.Parse("2006-01-02T15:04:05", name); isJSON && wrong == nil {
			times = append(times, t)
		}
		return nil
	})
	if err == nil && len(times) == 0 {
		err = fmt.Errorf("%s has no files with names like 2025-03-01T04:00:30.json", dir)
	}
	return times, err
}

// knownUsers reads the users that were written before; none where there is no file.
func knownUsers(path string) (known map[string]report.AI4User, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("the users that are known already, %s: %w; mend the file or move it away", path, err)
	}
	return known, nil
}

// replaceFile writes a file that another program may read meanwhile.
func replaceFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // the other program may be another user's
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".next-*")
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	err = errors.Join(err, next.Chmod(0o644), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}
