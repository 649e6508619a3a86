package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// compareOptions are the options of bursar compare.
type compareOptions struct {
	conn       *connection
	out        *outlet
	window     string
	by, ignore []string
	component  string
	unit       string // of usage: second or hour
	archived   bool
	other      string // the other side, for people
}

const compareAbout = `

Each record is equal, missing here (in bursar), missing there, or different; causes are
named where the data show them, and each kind and cause has its first ten ids. Records
are counted on the day they stop, by the site's clock.

A record is in the window by its stop, or while it runs by its start. Both sides are
read 7 days beyond the window, so that a record whose stop differs is found. Times are
compared to the millisecond. All records of both sides go through temporary files
($TMPDIR).

The exit code is 2 when something differs, and 0 when all is equal.`

func (p *Program) compareCommand() *cobra.Command {
	return groupCommand("compare", "Compare bursar with another accounting system",
		"  bursar compare auditor http://127.0.0.1:8000 -window last-month -by group_id\n  bursar compare csv jobs.csv -unit hour -window 2026-03",
		p.compareAuditorCommand(), p.compareListCommand())
}

func (p *Program) compareAuditorCommand() *cobra.Command {
	spec := ImportSpec{Type: "auditor", Executable: p.Executable, Name: DefaultImportName}
	cmd := &cobra.Command{
		Use: "auditor URL|DSN|FILE…", Short: "Compare with a running AUDITOR, its database or its archives",
		Long: `Compare the records of AUDITOR, or of another bursar, with bursar's: from its server,
from its PostgreSQL, or from its Parquet files, as bursar import auditor reads them.
Ids, starts, stops, meta and components are compared. -ignore leaves out what is meant
to differ, such as -ignore meta.host,Memory; -ignore meta leaves out all meta.` + compareAbout,
		Example: `  bursar compare auditor http://127.0.0.1:8000 -window last-month -by group_id
  bursar compare auditor postgres://reader@db.example.org/auditor -o auditor.html
  bursar compare auditor http://127.0.0.1:8000 -window yesterday -ignore meta -format json`,
		Args: cobra.MinimumNArgs(1),
	}
	opt := p.compareFlags(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&opt.ignore, "ignore", nil, "`fields` that may differ: start, stop, meta, meta.KEY, or the name of a component")
	f.StringVar(&spec.Config, "config", "", "`file` or folder with a block source \"auditor\" \"LABEL\"; its config and record blocks are applied to the records of the other side")
	f.StringVar(&spec.Label, "label", "", "`label` of the block of -config, where there are several")
	f.StringArrayVar(&spec.Dirs, "plugin-dir", nil, "`folder` with the plugin, in place of the usual ones; may be repeated")
	f.BoolVar(&spec.Dev, "dev", false, "accept plugins below folders that others may write to, such as /tmp")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		spec.Files, spec.Env = args, p.postgresEnv()
		names := make([]string, len(args))
		for i, a := range args {
			names[i] = withoutSecrets(a)
		}
		opt.other = strings.Join(names, ", ")
		return p.runComparison(cmd, opt, func(ctx context.Context, c *comparison) error { return p.readAuditor(ctx, spec, c) })
	}
	return cmd
}

// compareFlags adds the options of all comparisons.
func (p *Program) compareFlags(cmd *cobra.Command) *compareOptions {
	opt := &compareOptions{conn: p.connectionFlags(cmd), out: outletFlags(cmd)}
	f := cmd.Flags()
	f.StringVar(&opt.window, "window", "", "the `time` that counts, by a word as of bursar usage; default all")
	f.StringSliceVar(&opt.by, "by", nil, "a table for each of these meta `keys`")
	f.StringVar(&opt.component, "component", "Cores", "the `component` whose usage is summed up")
	f.BoolVar(&opt.archived, "archived", false, "compare records of bursar's archives too, read from their files")
	opt.unit = "second"
	f.Var(&choice{&opt.unit, []string{"second", "hour"}}, "unit", "of usage: second, hour")
	for name, words := range map[string][]string{"window": windowWords(), "unit": {"second", "hour"}, "component": {"Cores", "GPUs", "Memory", "TotalCPU"}} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the option exists
	}
	p.completeKeys(cmd, opt.conn)
	return opt
}

// withoutSecrets is a file, or an address without user, password and parameters.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	switch {
	case !strings.Contains(address, "://"):
		return address
	case err != nil:
		scheme, _, _ := strings.Cut(address, "://")
		return scheme + "://…"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// runComparison compares both sides, of which read reads the other one, and writes the result.
func (p *Program) runComparison(cmd *cobra.Command, opt *compareOptions, read func(ctx context.Context, c *comparison) error) (err error) {
	ctx := cmd.Context()
	if err := opt.out.chooseFormat(cmd); err != nil {
		return commandline.UsageError(cmd, err)
	}
	remote, err := opt.conn.openClient(p)
	if err != nil {
		return err
	}
	defer remote.Close()
	c, err := p.beginComparison(ctx, remote, opt)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, c.spool.close()) }()
	if err := read(ctx, c); err != nil {
		return fmt.Errorf("%s: %w", opt.other, err)
	}
	if err := p.readHere(ctx, c); err != nil {
		return err
	}
	c.ended = record.FromStd(p.Now())
	if err := c.compareJobs(ctx); err != nil {
		return err
	}
	c.askFilters(ctx)
	if err := p.deliverDocument(opt.out, c.buildDocument(p.Now())); err != nil {
		return err
	}
	if n := c.differenceCount(); n > 0 {
		return newFinding("%s", view.Plural(n, "difference"))
	}
	return nil
}

// compareMargin is how far beyond the window both sides are read.
const compareMargin = 7 * record.Day

// comparison is the state of a comparison of the other side, there, with bursar, here.
type comparison struct {
	opt      *compareOptions
	client   *client.Client
	from, to record.Time // the window
	zone     *time.Location
	known    int64 // how many records bursar has in the window, about
	began    record.Time
	ended    record.Time // when both sides had been read
	listed   bool        // there are amounts by id, without times
	totals   bool        // the component is a total
	spool    *spool

	quarantine map[string]v1.Quarantined // by record id, and by job
	unsure     bool                      // there are more in quarantine
	lookups    int                       // how many ids may still be looked up

	leftOut int64 // records there that a mapping leaves out
	// unknownFrom and unknownTo are the first and last stop of what is missing here for an
	// unknown reason; filters is what may be it.
	unknownFrom, unknownTo record.Time
	filters                string
	results                map[string]int64
	kinds                  map[string]*sideSums
	causes                 map[causeKey]*causeGroup
	fields                 map[string]int64 // how many records differ in each
	days                   map[string]*sideSums
	groups                 []map[string]*sideSums // for each key of by
}

// beginComparison asks for the window, and for what is in quarantine.
func (p *Program) beginComparison(ctx context.Context, remote *client.Client, opt *compareOptions) (*comparison, error) {
	c := &comparison{
		opt: opt, client: remote, from: record.MinTime, to: record.MaxTime, began: record.FromStd(p.Now()), unknownFrom: record.MaxTime, unknownTo: record.MinTime, quarantine: map[string]v1.Quarantined{}, lookups: mostLookups,
		results: map[string]int64{}, kinds: map[string]*sideSums{}, causes: map[causeKey]*causeGroup{}, fields: map[string]int64{}, days: map[string]*sideSums{},
	}
	for range opt.by {
		c.groups = append(c.groups, map[string]*sideSums{})
	}
	query := &v1.UsageQuery{Window: opt.window, Measure: "records"}
	if opt.window == "" {
		query.From = "1970-01-01"
	}
	about, err := remote.Usage(ctx, query)
	if err != nil {
		return nil, err
	}
	c.known = int64(about.Records)
	if opt.window != "" {
		c.from, c.to = record.FromStd(about.Window.From.Time), record.FromStd(about.Window.To.Time)
	}
	if c.zone, err = time.LoadLocation(about.Zone); err != nil {
		return nil, fmt.Errorf("the site's time zone: %w", err)
	}
	list, err := remote.Quarantine(ctx, nil)
	if err != nil {
		return nil, err
	}
	c.unsure = list.More
	for _, q := range list.Quarantine {
		c.quarantine[q.ID] = q
		c.quarantine[cmp.Or(q.RecordID, q.ID)] = q
	}
	c.spool, err = newSpool()
	return c, err
}

// isInWindow reports whether a record is in the window.
func (c *comparison) isInWindow(r *record.Record) bool {
	at := r.Stop
	if r.Open() {
		at = r.Start
	}
	return at == record.None || at >= c.from && at < c.to // of a list: not known
}

// widenedWindow is the window with its margin.
func (c *comparison) widenedWindow() (from, to record.Time) {
	return max(c.from, record.MinTime+compareMargin) - compareMargin, min(c.to, record.MaxTime-compareMargin) + compareMargin
}

// readAuditor reads the records of the other side through the source plugin.
func (p *Program) readAuditor(ctx context.Context, spec ImportSpec, c *comparison) error {
	spec.Log = slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	src, err := p.openSource(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // a plugin that does not end by itself is killed
	if c.opt.window != "" {
		from, to := c.widenedWindow()
		src.window = &bursarv1.CollectRequest_Window{From: int64(from), To: int64(to)}
	}
	bar := p.newBar("there", 0)
	defer bar.clearLine()
	at := ""
	result, err := src.Read(ctx, compareSink{Nowhere{}, c}, true, false, nil, func(r *ImportResult, progress *bursarv1.Progress) {
		at = cmp.Or(progress.GetAt(), at)
		bar.showJobs(r.Records, progress)
	})
	if err != nil && result.Records > 0 {
		err = fmt.Errorf("behind %s, at %s: %w", view.Plural(result.Records, "record"), cmp.Or(at, "the first"), err)
	}
	return err
}

// compareSink is an ImportSink that hands what was read to a comparison.
type compareSink struct {
	Nowhere

	c *comparison
}

// Take implements ImportSink.
func (s compareSink) Take(f *wire.Frame) error {
	e := &comparand{Record: f.Record, side: sideThere}
	switch q := &f.Quarantine; f.Kind {
	case wire.KindRecord:
	case wire.KindWithdraw: // the mapping leaves it out
		e = newPlaceholder(sideLeftOut, f.ID, "")
	case wire.KindQuarantine:
		e = newPlaceholder(sideInvalid, cmp.Or(q.RecordID, q.ID), q.Message)
	default:
		return nil
	}
	return s.c.spool.addEntry(e)
}

// readHere reads bursar's records: running ones first, since they may end meanwhile.
func (p *Program) readHere(ctx context.Context, c *comparison) error {
	bar := p.newBar("here", c.known)
	bar.amount = func(n int64) string { return fmt.Sprintf("%d records", n) }
	defer bar.clearLine()
	ended := url.Values{"open": {"false"}}
	if c.opt.window != "" {
		from, to := c.widenedWindow()
		ended.Set("stop_time[gte]", from.String())
		ended.Set("stop_time[lt]", to.String())
	}
	for _, query := range []url.Values{{"open": {"true"}}, ended} {
		query.Set("format", "ndjson")
		if c.opt.archived {
			query.Set("archived", "true")
		}
		for raw, err := range c.client.Raw(ctx, "/v1/records", query) {
			if err != nil {
				return err
			}
			r, err := wire.DecodeRecordJSON(raw)
			if err != nil {
				return fmt.Errorf("a record of the cluster: %w", err)
			}
			if err := c.spool.addEntry(&comparand{Record: r, side: sideHere}); err != nil {
				return err
			}
			bar.advanceBy(1)
		}
	}
	return nil
}

// componentUsage is what was used of the component, in its unit; nil where that is not known.
func (c *comparison) componentUsage(e *comparand) *big.Rat {
	if e == nil {
		return nil
	}
	if c.listed && e.side == sideThere {
		return v1.Rational(e.note)
	}
	var sum *big.Rat
	for i := range e.Components {
		one := &e.Components[i]
		if one.Name != c.opt.component || one.Kind == record.Rate && e.Open() {
			continue
		}
		amount := new(big.Rat).SetInt64(one.Amount)
		if c.totals = c.totals || one.Kind == record.Total; one.Kind == record.Rate {
			amount.Mul(amount, big.NewRat(int64(max(e.Stop-e.Start, 0)), int64(c.unitTime())))
		}
		if sum == nil {
			sum = new(big.Rat)
		}
		sum.Add(sum, amount)
	}
	return sum
}

// unitTime is the time of a unit of usage.
func (c *comparison) unitTime() record.Time {
	if c.opt.unit == "hour" {
		return record.Hour
	}
	return record.Second
}

// isIgnored reports whether a field may differ.
func (c *comparison) isIgnored(field string) bool {
	before, _, _ := strings.Cut(field, ".")
	return slices.Contains(c.opt.ignore, field) || before == "meta" && slices.Contains(c.opt.ignore, before)
}
