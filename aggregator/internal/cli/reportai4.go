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

	"github.com/bursar-accounting/bursar/aggregator/internal/compat"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/client"
)

// asAI4 is the program whose files and tables reports can be written as.
const asAI4 = "ai4"

// ai4Flags are those of reports that can be written as those of ai4-accounting.
type ai4Flags struct {
	compat, every, snapshots string
	namespaces               []string
}

func (f *ai4Flags) add(cmd *cobra.Command, about string) {
	fl := cmd.Flags()
	fl.Var(&choice{&f.compat, []string{asAI4}}, "compat", about)
	fl.StringVar(&f.every, "every", "", "with -compat ai4: how far its snapshots are apart, a `duration`; default 4h")
	fl.StringVar(&f.snapshots, "snapshots", "", "with -compat ai4: a `directory` with snapshots of ai4-accounting; their times count")
	fl.StringArrayVar(&f.namespaces, "namespace", nil, "with -compat ai4: include these `namespaces` even if they have no records; a comma-separated list")
}

// unused returns an error where flags are given that are of no use.
func (f *ai4Flags) unused(cmd *cobra.Command) error {
	if f.every != "" || f.snapshots != "" || f.namespaces != nil {
		return usageError(cmd, errors.New("-every, -snapshots and -namespace are for -compat ai4"))
	}
	return nil
}

// options are those of a report like ai4-accounting's; others are flags that have no
// meaning for it.
func (f *ai4Flags) options(cmd *cobra.Command, periods []string, now time.Time, others ...string) (o compat.AI4Options, err error) {
	o.Now = now
	for _, name := range others {
		if cmd.Flags().Changed(name) {
			return o, usageError(cmd, fmt.Errorf("-%s has no meaning with -compat ai4, which has a form of its own", name))
		}
	}
	switch {
	case len(periods) > 1:
		return o, usageError(cmd, errors.New("-compat ai4 is of one -period"))
	case f.every != "" && f.snapshots != "":
		return o, usageError(cmd, errors.New("give -every or -snapshots"))
	}
	o.Period = cmp.Or(periods...)
	if f.every != "" {
		if o.Every, err = hcl.ParseDuration(f.every); err != nil {
			return o, usageError(cmd, fmt.Errorf("-every: %w", err))
		}
	}
	o.Namespaces = lists(f.namespaces)
	if f.snapshots != "" {
		var listed []string
		o.Snapshots, listed, err = readSnapshots(f.snapshots)
		o.Namespaces = append(o.Namespaces, listed...)
	}
	return o, err
}

// printAI4 writes the tables that usage_stats of ai4-accounting prints.
func (p *Program) printAI4(ctx context.Context, cmd *cobra.Command, c *client.Client, f *ai4Flags, periods []string) error {
	o, err := f.options(cmd, periods, p.Now(), "by", "measure", "where", "top", "zone", "format")
	if err != nil {
		return err
	}
	text, err := compat.AI4Usage(ctx, c.API, o)
	if err != nil {
		return err
	}
	if file := cmd.Flags().Lookup("output").Value.String(); file != "" {
		if err := replaceFile(file, []byte(text)); err != nil {
			return err
		}
		p.say("%s is written.", file)
		return nil
	}
	_, err = fmt.Fprint(p.Stdout, text)
	return err
}

// writeAI4 writes the files of ai4-accounting.
func (p *Program) writeAI4(ctx context.Context, cmd *cobra.Command, c *client.Client, f *summaryFlags) error {
	dir := cmd.Flags().Lookup("output").Value.String()
	o, err := f.ai4.files(cmd, dir, f.options.Periods, p.Now())
	if err != nil {
		return err
	}
	out, err := compat.AI4(ctx, c.API, o)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(out.Files)) {
		if err := replaceFile(filepath.Join(dir, filepath.FromSlash(name)), out.Files[name]); err != nil {
			return fmt.Errorf("write the files for ai4-papi: %w", err)
		}
	}
	for _, note := range out.Notes {
		p.say("%s", wrap(note, p.Width, 0))
	}
	p.say("%d files are written in %s.", len(out.Files), dir)
	return nil
}

// files are the options of the files of ai4-accounting.
func (f *ai4Flags) files(cmd *cobra.Command, dir string, periods []string, now time.Time) (o compat.AI4Options, err error) {
	if dir == "" {
		return o, usageError(cmd, errors.New("-compat ai4 writes several files; name their directory with -o"))
	}
	if o, err = f.options(cmd, periods, now, "by", "measure", "where", "bucket", "top", "zone", "format"); err != nil {
		return o, err
	}
	o.Known, err = knownUsers(filepath.Join(dir, filepath.FromSlash(compat.AI4Users)))
	return o, err
}

// readSnapshots returns the times of the snapshots in a directory, which their names
// say, and the namespaces that the newest one lists, also those without jobs.
func readSnapshots(dir string) (times []time.Time, namespaces []string, err error) {
	var newest string
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
		if newest == "" || t.After(latest) {
			newest, latest = path, t
		}
		times = append(times, t)
		return nil
	})
	if err == nil && len(times) == 0 {
		err = fmt.Errorf("%s has no files with names like 2025-03-01T04:00:30.json", dir)
	}
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(newest)
	if err != nil {
		return nil, nil, err
	}
	var jobs map[string]json.RawMessage
	if err := json.Unmarshal(text, &jobs); err != nil {
		return nil, nil, fmt.Errorf("read the namespaces of %s: %w; move the file away if it is damaged", newest, err)
	}
	return times, slices.Collect(maps.Keys(jobs)), nil
}

// knownUsers reads the users that were written before; none where there is no file.
func knownUsers(path string) (known map[string]compat.AI4User, err error) {
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
