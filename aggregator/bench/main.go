// Command bench measures what DESIGN.md promises for one node and for three, with the
// benchmark record and the real programs on this machine. README.md says what
// each line means.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	if err := measureAll(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what is asked for.
type options struct {
	n       int
	ids     string
	only    []string
	runs    int
	kills   int
	dir     string
	bin     string
	format  string
	profile string
	keep    bool
	sizes   []int // of the growth
}

func parseOptions(args []string) (*options, error) {
	o := &options{}
	var only, sizes string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.n, "n", 10_000_000, "how many `records`")
	f.StringVar(&o.ids, "ids", "slurm,uuid", "`kinds` of record ids: slurm, uuid or both; all but ingest, lookup and disk is measured with the first")
	f.StringVar(&only, "only", "", "measure only these, by `name`: "+strings.Join(measurementNames(), ","))
	f.IntVar(&o.runs, "runs", 3, "how `often` what is measured by runs is run")
	f.StringVar(&sizes, "records", "", "with which `numbers` of records growth measures, ascending; without it a tenth of -n, and -n")
	f.IntVar(&o.kills, "kills", 10, "how `often` the leader of three nodes is killed, and stopped")
	f.StringVar(&o.dir, "dir", os.TempDir(), "`folder` in which a temporary one is made, and removed at the end")
	f.StringVar(&o.bin, "bin", "bin", "`folder` with bursar, bursar-agent and plugins")
	f.StringVar(&o.format, "format", "table", "table or json")
	f.StringVar(&o.profile, "cpuprofile", "", "run the aggregator inside this program and write profiles of it into this `folder`; the figures are then not comparable")
	f.BoolVar(&o.keep, "keep", false, "leave the temporary folder")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	var err error
	if o.sizes, err = parseSizes(sizes, o.n); err != nil {
		return nil, err
	}
	return o, o.checkOptions(f.Args())
}

func (o *options) checkOptions(rest []string) error {
	for _, name := range o.only {
		if !slices.Contains(measurementNames(), name) {
			return fmt.Errorf("-only: %q is none of %s", name, strings.Join(measurementNames(), ", "))
		}
	}
	for _, kind := range o.measuredKinds() {
		if kind != "slurm" && kind != "uuid" {
			return fmt.Errorf("-ids: %q is neither slurm nor uuid", kind)
		}
	}
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.n < 10_000:
		return fmt.Errorf("-n: %d records are too few to measure; at least 10000", o.n)
	case o.runs < 1 || o.kills < 1:
		return fmt.Errorf("-runs %d, -kills %d: at least 1", o.runs, o.kills)
	case o.format != "table" && o.format != "json":
		return fmt.Errorf("-format: %q is neither table nor json", o.format)
	}
	return nil
}

func (o *options) measuredKinds() []string { return strings.Split(o.ids, ",") }

// wantsMeasurement reports whether a measurement is asked for.
func (o *options) wantsMeasurement(name string) bool {
	return len(o.only) == 0 || slices.Contains(o.only, name)
}

// mostRecords is how many records there are at a time. The nodes of growth are its own.
func (o *options) mostRecords() int {
	if !o.wantsMeasurement("growth") {
		return o.n
	}
	most := slices.Max(o.sizes)
	if len(o.only) != 1 {
		most += o.n
	}
	return most
}

// programPath returns the path of one of our programs.
func (o *options) programPath(name string) string { return filepath.Join(o.bin, name) }

// bytesPerRecord is what a record may take on disk at the height of a run: in the
// agent's buffer, in two stores under compaction, and in PostgreSQL.
func (o *options) bytesPerRecord() int64 {
	if o.wantsMeasurement("postgres") {
		return 1600
	}
	return 600
}

func measureAll(ctx context.Context, args []string) (err error) {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.dir, "bursar-bench-")
	if err != nil {
		return err
	}
	if !o.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if room, err := freeBytes(dir); err != nil {
		return err
	} else if need := int64(o.mostRecords())*o.bytesPerRecord() + 1<<30; room < need {
		return fmt.Errorf("%s has %d MiB free, and %d records may need %d; choose another folder by -dir or fewer records by -n", o.dir, room>>20, o.mostRecords(), need>>20)
	}
	b, err := newBench(ctx, o, dir)
	if err != nil {
		return err
	}
	err = b.runAll(ctx)
	b.progress.clearLine()
	b.report.Conditions.LoadAfter = loadAverage()
	return errors.Join(b.report.writeReport(os.Stdout, o.format), err)
}

// terminalOf returns f when it is a terminal.
func terminalOf(f *os.File) io.Writer {
	if _, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err != nil {
		return nil
	}
	return f
}
