package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/compat"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// asAI4 is the program whose files and tables reports can be written as.
const asAI4 = "ai4"

// ai4Flags are those of reports that can be written as those of ai4-accounting.
type ai4Flags struct {
	compat, every, snapshots string
	namespaces               []string
}

func (f *ai4Flags) addFlags(cmd *cobra.Command, about string) {
	fl := cmd.Flags()
	fl.Var(&choice{&f.compat, []string{asAI4}}, "compat", about)
	fl.StringVar(&f.every, "every", "", "with -compat ai4: how far its snapshots are apart, a `duration`; default 4h")
	fl.StringVar(&f.snapshots, "snapshots", "", "with -compat ai4: a `directory` with snapshots of ai4-accounting; their times and what waits in them count")
	fl.StringArrayVar(&f.namespaces, "namespace", nil, "with -compat ai4: include these `namespaces` even if they have no records; a comma-separated list")
}

// buildExact makes the report of bursar itself, with which the other flags have no meaning.
func (f *ai4Flags) buildExact(ctx context.Context, cmd *cobra.Command, c *client.Client, exact builder) (*report.Document, error) {
	if f.every != "" || f.snapshots != "" || f.namespaces != nil {
		return nil, commandline.UsageError(cmd, errors.New("-every, -snapshots and -namespace are for -compat ai4"))
	}
	return exact(ctx, c)
}

// readOptions returns the options of a report like ai4-accounting's.
func (f *ai4Flags) readOptions(cmd *cobra.Command, asked func() url.Values, now time.Time) (o compat.AI4Options, err error) {
	o.Now = now
	for name := range asked() {
		if name != "period" && cmd.Flags().Changed(name) {
			return o, commandline.UsageError(cmd, fmt.Errorf("-%s has no meaning with -compat ai4, which has a form of its own", name))
		}
	}
	if cmd.Flags().Changed("format") {
		return o, commandline.UsageError(cmd, errors.New("-format has no meaning with -compat ai4, which has a form of its own"))
	}
	periods := asked()["period"]
	switch {
	case !cmd.Flags().Changed("period"):
		periods = nil
	case len(periods) > 1:
		return o, commandline.UsageError(cmd, errors.New("-compat ai4 is of one -period"))
	}
	if f.every != "" && f.snapshots != "" {
		return o, commandline.UsageError(cmd, errors.New("give -every or -snapshots"))
	}
	o.Period = cmp.Or(periods...)
	if f.every != "" {
		if o.Every, err = hcl.ParseDuration(f.every); err != nil {
			return o, commandline.UsageError(cmd, fmt.Errorf("-every: %w", err))
		}
	}
	o.Namespaces = splitLists(f.namespaces)
	if f.snapshots != "" {
		var listed []string
		o.Snapshots, o.Waiting, listed, err = readSnapshots(f.snapshots)
		o.Namespaces = append(o.Namespaces, listed...)
	}
	return o, err
}

// likeUsageStats adds the flags that make report usage print what usage_stats of
// ai4-accounting prints.
func (p *Program) likeUsageStats(cmd *cobra.Command, asked func() url.Values, exact builder) builder {
	cmd.Long += `

-compat ai4 prints the tables of ai4-accounting's usage_stats with its figures,
which lack what no snapshot saw.`
	var f ai4Flags
	f.addFlags(cmd, "print the tables of another program, with its figures: ai4")
	return func(ctx context.Context, c *client.Client) (*report.Document, error) {
		if f.compat == "" {
			return f.buildExact(ctx, cmd, c, exact)
		}
		o, err := f.readOptions(cmd, asked, p.Now())
		if err != nil {
			return nil, err
		}
		text, err := compat.AI4Usage(ctx, c.API, o)
		if err != nil {
			return nil, err
		}
		if file := cmd.Flags().Lookup("output").Value.String(); file != "" {
			if err := replaceFile(file, []byte(text)); err != nil {
				return nil, err
			}
			p.say("%s is written.", file)
			return nil, nil
		}
		_, err = fmt.Fprint(p.Stdout, text)
		return nil, err
	}
}

// likeAI4 adds the flags that make report summary write the files of ai4-accounting.
func (p *Program) likeAI4(cmd *cobra.Command, asked func() url.Values, exact builder) builder {
	cmd.Example += "\n  bursar report summary -compat ai4 -namespace imagine,ai4life -o /srv/ai4-accounting"
	cmd.Long += `

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
that wait and never start count where -snapshots show them, and else are not known; users have their names from the
directory, also those of batch jobs; what is over counts as listed for four hours,
whoever purged it. Where records do not say when they were "allocated", jobs that are
starting count as queued.`
	var f ai4Flags
	f.addFlags(cmd, "write the files of another program into the directory of -o: ai4")
	return func(ctx context.Context, c *client.Client) (*report.Document, error) {
		if f.compat == "" {
			return f.buildExact(ctx, cmd, c, exact)
		}
		dir := cmd.Flags().Lookup("output").Value.String()
		if dir == "" {
			return nil, commandline.UsageError(cmd, errors.New("-compat ai4 writes several files; name their directory with -o"))
		}
		o, err := f.readOptions(cmd, asked, p.Now())
		if err != nil {
			return nil, err
		}
		if o.Known, err = readUsers(filepath.Join(dir, filepath.FromSlash(compat.AI4Users))); err != nil {
			return nil, err
		}
		out, err := compat.AI4(ctx, c.API, o)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(out.Files)) {
			if err := replaceFile(filepath.Join(dir, filepath.FromSlash(name)), out.Files[name]); err != nil {
				return nil, fmt.Errorf("write the files for ai4-papi: %w", err)
			}
		}
		for _, note := range out.Notes {
			p.say("%s", wrapText(printable(note), p.Width, 0))
		}
		p.say("%d files are written in %s.", len(out.Files), dir)
		return nil, nil
	}
}

// snapshotJob is what a snapshot says of a job, as far as it matters to those that wait.
type snapshotJob struct {
	Name   any     `json:"name"`
	Status any     `json:"status"`
	Owner  any     `json:"owner"`
	Start  *string `json:"alloc_start"`
}

// readSnapshots returns the times of the snapshots in a directory, which their names
// say, the jobs that wait in each, and the namespaces that the newest one lists, also those
// without jobs.
func readSnapshots(dir string) (times []time.Time, waiting map[time.Time][]compat.AI4Waiting, namespaces []string, err error) {
	waiting = map[time.Time][]compat.AI4Waiting{}
	var latest time.Time
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, isJSON := strings.CutSuffix(filepath.Base(path), ".json")
		t, wrong := time.Parse("2006-01-02T15:04:05", name)
		if !isJSON || wrong != nil {
			return nil //nolint:nilerr // another file
		}
		jobs, err := readSnapshot(path)
		if err != nil {
			return err
		}
		if times == nil || t.After(latest) {
			latest, namespaces = t, slices.Collect(maps.Keys(jobs))
		}
		times, waiting[t] = append(times, t), waitingIn(jobs)
		return nil
	})
	if err == nil && len(times) == 0 {
		err = fmt.Errorf("%s has no files with names like 2025-03-01T04:00:30.json", dir)
	}
	return times, waiting, namespaces, err
}

func readSnapshot(path string) (jobs map[string][]snapshotJob, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &jobs); err != nil {
		return nil, fmt.Errorf("read the snapshot %s: %w; move the file away if it is damaged", path, err)
	}
	return jobs, nil
}

// waitingIn are the jobs of a snapshot that wait: ai4-accounting also takes those for waiting
// that run without a start.
func waitingIn(jobs map[string][]snapshotJob) (list []compat.AI4Waiting) {
	for _, namespace := range slices.Sorted(maps.Keys(jobs)) {
		for _, j := range jobs[namespace] {
			name, _ := j.Name.(string)
			owner, _ := j.Owner.(string)
			if j.Status == "queued" || j.Status == "running" && (j.Start == nil || *j.Start == "") {
				list = append(list, compat.AI4Waiting{Namespace: namespace, Name: name, Owner: owner})
			}
		}
	}
	return list
}

// readUsers reads the users that an earlier run wrote; none where there is no file.
func readUsers(path string) (known map[string]compat.AI4User, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("the users that are known already, %s: %w; fix the file or move it away", path, err)
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

// splitLists returns the values of lists that are not empty, without spaces around them.
func splitLists(values []string) (out []string) {
	for _, one := range v1.SplitList(values...) {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}
