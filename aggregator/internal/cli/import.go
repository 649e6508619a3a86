package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/commandline"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// importOptions are the options of bursar import.
type importOptions struct {
	spec     ImportSpec
	conn     *connection
	dry      bool
	withdraw bool
	compare  bool
	format   format
}

func (p *Program) importCommand() *cobra.Command {
	opt := importOptions{spec: ImportSpec{Executable: p.Executable, Version: p.Version}}
	cmd := &cobra.Command{
		Use: "import TYPE FILE…", Short: "Load old data of a scheduler or of another accounting system",
		Long: `Load old files into the cluster, through the source plugin bursar-source-TYPE on
this machine: its mapping makes the same records of them as an agent would, with
the same ids. Data from any other source about a run takes precedence.

An interrupted import can be repeated without adding duplicates, and
so can one of files that an agent has read. Give the label under which an agent
collects, or will collect, the same cluster.

Files of another accounting system may lack the id that an agent uses for a run. Then
the cluster is asked, and the record gets the id that another source has for the run;
a record that an earlier import of that name added under another id is withdrawn. When
an agent starts to collect after the import, import once more.

An import of auditor that broke off continues where it was: its position is in
~/.local/state/bursar (or $XDG_STATE_HOME/bursar) until all is compared. Remove that
file to read everything again; of other files or another cluster it is not used.

With auditor a file may be the address of a server or of a database, whose password and
certificates are taken from PGPASSWORD, PGPASSFILE and PGSSL…. At the end, counts and sums
of what was read are compared with what the cluster shows (-compare); where they differ,
the exit code is 2.

Jobs that give no valid record are quarantined with the reason; fix the cause and
import again. Records that are counted although something is odd, such as a component that
other records have or a key of the file that the mapping does not read, are named. The exit
code is 2 when there were such jobs or records.`,
		Example: "  bursar import gridengine -label katana /backup/accounting.*\n  bursar import ai4 -dry-run snapshots/\n  bursar import gridengine -config agent.hcl /backup/accounting\n  bursar import auditor postgres://reader@db.example.org/auditor '/srv/archive/*.parquet'",
		Args:    importArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.spec.Type, opt.spec.Files = args[0], args[1:]
			opt.compare = opt.compare || opt.spec.Type == "auditor" && !cmd.Flags().Changed("compare")
			opt.spec.Env = p.postgresEnv()
			return p.runImport(cmd.Context(), &opt)
		},
	}
	opt.conn = p.connectionFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&opt.spec.Label, "label", "", "`label` of the source, with which the ids begin; without -config the type, if it is not given")
	f.StringVar(&opt.spec.Config, "config", "", "`file` or folder with a block source \"TYPE\" \"LABEL\", as an agent has it; its config and record blocks count")
	f.StringVar(&opt.spec.Name, "name", DefaultImportName, "`name` that the import has in place of an agent's; imports at the same time need different ones")
	f.StringArrayVar(&opt.spec.Dirs, "plugin-dir", nil, "`folder` with the plugin, in place of the usual ones; may be repeated")
	f.BoolVar(&opt.dry, "dry-run", false, "only say what would come; no cluster is asked")
	f.BoolVar(&opt.withdraw, "withdraw", false, "take back what an earlier import brought and the mapping leaves out now")
	f.BoolVar(&opt.compare, "compare", false, "at the end, compare counts and sums with the cluster's; auditor does so by itself")
	f.BoolVar(&opt.spec.Dev, "dev", false, "accept plugins below folders that others may write to, such as /tmp")
	formatFlag(cmd, &opt.format, asTable, asJSON)
	return cmd
}

// importTypes are the sources that read files once.
func importTypes() []string { return []string{"ai4", "auditor", "gridengine", "htcondor"} }

// importArgs refuses a command line without a source or without a file.
func importArgs(cmd *cobra.Command, args []string) error {
	types := strings.Join(importTypes(), ", ")
	switch {
	case len(args) == 0:
		return commandline.UsageError(cmd, fmt.Errorf("missing source and file: use bursar import TYPE FILE…, such as bursar import gridengine /backup/accounting; TYPE is one of %s", types))
	case len(args) > 1:
		return nil
	case strings.ContainsAny(args[0], "/.*:"):
		return commandline.UsageError(cmd, fmt.Errorf("missing source: use bursar import TYPE %s; TYPE is one of %s", args[0], types))
	}
	return commandline.UsageError(cmd, fmt.Errorf("missing file: use bursar import %s FILE…", args[0]))
}

// refusesImport reports whether a source does not know the attribute with the files.
func refusesImport(d *hcl.Diagnostic) bool {
	return d.Subject != nil && d.Subject.Filename == commandLine && strings.HasPrefix(d.Summary, "unknown attribute")
}

// openSource starts the source on the files, and shows warnings about its configuration.
func (p *Program) openSource(ctx context.Context, spec ImportSpec) (*ImportSource, error) {
	src, diags, sources, err := OpenImport(ctx, spec)
	if slices.ContainsFunc(diags, refusesImport) {
		return nil, fmt.Errorf("the source %s reads nothing but what an agent follows; bursar import TYPE FILE… takes %s; for a file of another source, configure it in an agent: source %q \"LABEL\" { … }",
			spec.Type, strings.Join(importTypes(), ", "), spec.Type)
	}
	if err == nil && diags.HasErrors() {
		return nil, troubled{diags, sources}
	}
	if err != nil {
		return nil, errors.Join(err, diags.Err())
	}
	if len(diags) > 0 {
		_ = diags.Write(p.Stderr, sources, p.Color) // a terminal that is gone
	}
	return src, nil
}

// runImport imports and shows what came of it.
func (p *Program) runImport(ctx context.Context, opt *importOptions) error {
	opt.spec.Log = slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	src, err := p.openSource(ctx, opt.spec)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // a plugin that does not end by itself is killed
	if src.position, err = p.openPosition(src, opt); err != nil {
		return err
	}
	done := false
	defer func() { _ = src.position.close(done) }() // another import begins at the start then
	began := time.Now()
	result, committed, err := p.readFiles(ctx, src, opt)
	if err != nil {
		return err
	}
	out := importAnswer(src, opt, result, committed, time.Since(began))
	if opt.compare && !opt.dry {
		if out.Compared, err = p.compareImport(ctx, src, opt, result); err != nil {
			return fmt.Errorf("all is committed, but not compared: %w", err)
		}
	}
	done = true
	if err := p.showImport(opt.format, out); err != nil {
		return err
	}
	return out.resultFinding()
}

// postgresEnv is what PostgreSQL's clients read of the environment.
func (p *Program) postgresEnv() map[string]string {
	env := map[string]string{}
	for _, name := range []string{"PGPASSWORD", "PGPASSFILE", "PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "HOME"} {
		if v := p.Getenv(name); v != "" {
			env[name] = v
		}
	}
	return env
}

// readFiles imports the files into the cluster, or reads them only.
func (p *Program) readFiles(ctx context.Context, src *ImportSource, opt *importOptions) (*ImportResult, *v1.Counts, error) {
	bar := p.newBar("import", 0)
	show := func(r *ImportResult, at *bursarv1.Progress) { bar.showJobs(r.Records, at) }
	if opt.dry {
		result, err := src.Read(ctx, Nowhere{}, opt.withdraw, false, nil, show)
		bar.clearLine()
		return result, nil, err
	}
	c, err := opt.conn.openClient(p)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	cluster, err := BeginImport(ctx, c, src, func(text string, args ...any) { p.say(bar.newline()+text, args...) })
	if err != nil {
		return nil, nil, err
	}
	result, err := src.Read(ctx, cluster, opt.withdraw, opt.compare, cluster.before, show)
	if err != nil {
		cluster.Stop(err)
	}
	counts, unsent := cluster.Close()
	bar.clearLine()
	return result, &counts, brokenOff(ctx, err, unsent)
}

// brokenOff says what an import that broke off leaves: the cluster's reason comes
// before that of the reading, which it ends.
func brokenOff(ctx context.Context, read, unsent error) error {
	err := read
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case unsent != nil:
		err = unsent
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; what was committed stays, and the same command again brings the rest and nothing twice", err)
}

// jsonImport is what bursar import says at its end.
type jsonImport struct {
	Name        string      `json:"name"`
	Type        string      `json:"type"`
	Label       string      `json:"label"`
	DryRun      bool        `json:"dry_run"`
	Records     int64       `json:"records"`
	Open        int64       `json:"open"`
	LeftOut     int64       `json:"left_out"`
	Withdrawn   int64       `json:"withdrawn"`
	Renamed     int64       `json:"renamed"`
	Quarantined int64       `json:"quarantined"`
	Refused     int64       `json:"refused"`
	Skipped     int64       `json:"skipped"`
	Months      []jsonMonth `json:"months"`
	Problems    []Problem   `json:"problems"`
	// Findings are about records that are counted.
	Findings  []translate.Finding `json:"findings"`
	Committed *v1.Counts          `json:"committed"`
	Compared  *Comparison         `json:"compared,omitempty"`
	Seconds   float64             `json:"seconds"`

	writes int64
}

type jsonMonth struct {
	Month   string `json:"month"`
	Records int64  `json:"records"`
}

func importAnswer(src *ImportSource, opt *importOptions, r *ImportResult, committed *v1.Counts, took time.Duration) *jsonImport {
	out := &jsonImport{
		Name: src.Name, Type: src.Type, Label: src.Label, DryRun: opt.dry, Records: r.Records, Open: r.Open, LeftOut: r.Filtered, Withdrawn: r.Withdrawn, Renamed: r.Renamed,
		Quarantined: r.Quarantined, Refused: r.Refused, Skipped: r.Skipped, Months: []jsonMonth{}, Problems: []Problem{}, Findings: append([]translate.Finding{}, r.Findings...), Committed: committed,
		Seconds: took.Round(time.Millisecond).Seconds(), writes: r.Frames,
	}
	for _, month := range r.MonthNames() {
		out.Months = append(out.Months, jsonMonth{month, r.Months[month]})
	}
	out.Problems = append(out.Problems, r.Problems...)
	return out
}

// showImport writes the answer, and for people the first problems.
func (p *Program) showImport(f format, out *jsonImport) error {
	if f == asJSON {
		return p.printJSON(out)
	}
	if err := p.printTable(importTable(out)); err != nil {
		return err
	}
	if out.Compared != nil {
		if err := p.showComparison(out.Compared); err != nil {
			return err
		}
	}
	for _, x := range out.Problems {
		p.say("%s: %s: %s", x.Run, x.Reason, x.Message)
	}
	if more := out.Quarantined + out.Refused - int64(len(out.Problems)); more > 0 {
		p.say("and %d more", more)
	}
	for i := range out.Findings {
		p.say("%s", out.Findings[i].String())
	}
	if c := out.Committed; c != nil && c.Pulled < out.writes {
		p.say("All records are committed. The answers to %d writes were lost; bursar agents shows their results.", out.writes-c.Pulled)
	}
	return nil
}

func importTable(out *jsonImport) *table {
	t := newTable("WHAT", ">COUNT")
	add := func(what string, n int64) { t.addRow(what, strconv.FormatInt(n, 10)) }
	some := func(what string, n int64) {
		if n != 0 {
			add(what, n)
		}
	}
	add("records", out.Records)
	if out.DryRun {
		for _, m := range out.Months {
			add("  "+m.Month, m.Records)
		}
	}
	some("  without an end", out.Open)
	some("  earlier ids taken back", out.Renamed)
	add("left out", out.LeftOut)
	some("  taken back", out.Withdrawn)
	add("skipped", out.Skipped)
	add("quarantined jobs", out.Quarantined)
	add("quarantined input", out.Refused)
	if c := out.Committed; c != nil {
		some("new at the cluster", c.Added)
		some("another word on known runs", c.Merged)
		some("known already", c.Unchanged+c.Stale)
		some("withdrawn", c.Withdrawn)
		some("deleted before", c.Deleted)
		some("in conflict", c.Conflicting)
	}
	return t
}

// resultFinding returns a finding when not all became records.
func (out *jsonImport) resultFinding() error {
	failed := out.Quarantined + out.Refused
	switch {
	case out.Compared != nil && out.Compared.differ && out.Type == "auditor":
		return newFinding("what was read and what the cluster shows differ; bursar compare auditor shows which records")
	case out.Compared != nil && out.Compared.differ:
		return newFinding("what was read and what the cluster shows differ")
	case out.Compared != nil && out.Compared.Uncounted != "" && failed == 0:
		return newFinding("the records at the source could not be counted by a second route")
	case failed == 0 && len(out.Findings) > 0:
		return newFinding("all jobs are counted, with %s", view.Plural(len(out.Findings), "finding"))
	case failed == 0:
		return nil
	case out.DryRun:
		return newFinding("%d would go to quarantine", failed)
	}
	return newFinding("%d went to quarantine; bursar quarantine list shows them", failed)
}
