package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/client"
)

// asHTML is one file that needs nothing else.
const asHTML format = "html"

// builder asks for a report; nil without an error when it has written it itself.
type builder func(ctx context.Context, c *client.Client) (*report.Document, error)

func (p *Program) reportCommand() *cobra.Command {
	return group("report", "Make a report to read, print or share",
		"  bursar report usage -by group_id\n  bursar report usage -where project=bell -format html -o bell.html\n  bursar report subscription -period 2026-Q3\n  bursar report statement -of group_id=atlas -o atlas.html",
		p.reportUsage(), p.reportSummary(), p.reportSubscription(), p.reportUtilization(), p.reportEfficiency(), p.reportStatement())
}

// reports makes a command write the report that build makes of its options.
func (p *Program) reports(cmd *cobra.Command, build builder) *cobra.Command {
	var f format
	var file string
	conn := p.connect(cmd)
	formatFlag(cmd, &f, asTable, asCSV, asJSON, asHTML)
	cmd.Flags().StringVarP(&file, "output", "o", "", "`file` to write to; its ending chooses the format where none is given")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("format") {
			f = byEnding(file)
		}
		c, err := conn.open(p)
		if err != nil {
			return err
		}
		defer c.Close()
		d, err := build(cmd.Context(), c)
		if err != nil || d == nil {
			return err
		}
		if file == "" {
			return p.writeReport(p.Stdout, d, f, p.Width)
		}
		return p.saveReport(file, d, f)
	}
	return cmd
}

// byEnding is the format of a file by its name.
func byEnding(file string) format {
	for _, f := range []format{asHTML, asCSV, asJSON} {
		if strings.HasSuffix(file, "."+string(f)) {
			return f
		}
	}
	return asTable
}

func (p *Program) saveReport(file string, d *report.Document, f format) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	err = p.writeReport(out, d, f, 0)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err == nil {
		p.say("%s is written.", file)
	}
	return err
}

func (p *Program) writeReport(w io.Writer, d *report.Document, f format, width int) error {
	switch f {
	case asHTML:
		return d.WriteHTML(w)
	case asCSV:
		return d.WriteCSV(w)
	case asJSON:
		return d.WriteJSON(w)
	default:
		return p.reportText(w, d, width)
	}
}

// reportText writes a report for a terminal.
func (p *Program) reportText(w io.Writer, d *report.Document, width int) error {
	title := d.Title
	if d.Subject != "" {
		title += " – " + d.Subject
	}
	if _, err := fmt.Fprintln(w, printable(title)); err != nil {
		return err
	}
	for i := range d.Tables {
		for _, period := range periodsOf(&d.Tables[i]) {
			if err := p.reportPart(w, d, &d.Tables[i], period, width); err != nil {
				return err
			}
		}
	}
	for _, note := range d.Notes {
		p.say("%s", wrap(note, p.Width, 0))
	}
	return nil
}

// periodsOf are the periods of which a table has columns, counted from 1; a terminal
// has room for one beside the names. 0: it has columns of none.
func periodsOf(t *report.Table) (out []int) {
	for i := range t.Columns {
		if n := t.Columns[i].Period; n > 0 && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	if out == nil {
		return []int{0}
	}
	return out
}

// reportPart writes the columns of a period.
func (p *Program) reportPart(w io.Writer, d *report.Document, t *report.Table, period, width int) error {
	title := t.Title
	if period > 0 && !strings.Contains(title, d.Periods[period-1].Name) {
		title += ", " + d.Periods[period-1].Name
	}
	if _, err := fmt.Fprintf(w, "\n%s\n", printable(title)); err != nil {
		return err
	}
	left, err := reportTable(t, period).text(w, width, p.Color && w == p.Stdout)
	if len(left) > 0 {
		p.say("The terminal has no room for: %s.", strings.Join(left, ", "))
	}
	return err
}

func reportTable(t *report.Table, period int) *table {
	var head []string
	var shown []int
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Period != 0 && c.Period != period {
			continue
		}
		shown = append(shown, i)
		name := c.Title
		if c.Unit != "" {
			name += " (" + c.Unit + ")"
		}
		if c.Kind != report.Text {
			name = ">" + name
		}
		head = append(head, name)
	}
	out := newTable(head...)
	add := func(row []report.Cell) {
		var cells []string
		for _, i := range shown {
			cells = append(cells, t.Columns[i].Show(row[i]))
		}
		out.add(cells...)
	}
	for _, row := range t.Rows {
		add(row)
	}
	if len(t.Totals) > 0 {
		add(t.Totals)
	}
	return out
}

// periodFlags are those of all reports.
func periodFlags(cmd *cobra.Command, periods *[]string, zone *string) {
	fl := cmd.Flags()
	fl.StringArrayVar(periods, "period", nil, "a `window` in the words of bursar usage; given twice, two of them side by side; default this-month and this-year")
	fl.StringVar(zone, "zone", "UTC", "the time `zone` by whose clock days begin, like Europe/Berlin")
	_ = cmd.RegisterFlagCompletionFunc("period", cobra.FixedCompletions(windowWords(), cobra.ShellCompDirectiveNoFileComp)) // the option exists
}

// checkPeriods returns an error where there are too many.
func checkPeriods(cmd *cobra.Command, periods []string) error {
	if len(periods) > 2 {
		return usageError(cmd, fmt.Errorf("-period was given %d times; at most 2 periods stand side by side", len(periods)))
	}
	return nil
}

func (p *Program) reportUsage() *cobra.Command {
	o := report.UsageOptions{}
	var where, measure []string
	var ai4 ai4Flags
	cmd := &cobra.Command{
		Use: "usage", Short: "Who used how much, in two periods side by side",
		Long: `Who used how much, in two periods side by side: a line for each group, user or
value of any key, and the sum. Without -measure the table has the records, the
people and all components. -compat ai4 prints the tables of ai4-accounting's
usage_stats with its figures, which lack what no snapshot saw.`,
		Example: "  bursar report usage\n  bursar report usage -period last-month -period last-year -by site_id -measure Cores,GPUs,people\n  bursar report usage -where group_id=atlas -by user_id -o atlas.html",
	}
	periodFlags(cmd, &o.Periods, &o.Zone)
	fl := cmd.Flags()
	fl.StringVar(&o.By, "by", "group_id", "the `key` that gives the lines; also project, pi, cluster")
	fl.StringArrayVar(&measure, "measure", nil, "what to show, a `list` as for bursar usage")
	fl.StringArrayVar(&where, "where", nil, "only of `key=value`; may be repeated")
	fl.IntVar(&o.Top, "top", 0, "how many lines at most, a `number`; the others are one line; 0 is all")
	ai4.add(cmd, "print the tables of another program, with its figures: ai4")
	return p.reports(cmd, func(ctx context.Context, c *client.Client) (*report.Document, error) {
		if ai4.compat == asAI4 {
			return nil, p.printAI4(ctx, cmd, c, &ai4, o.Periods)
		}
		if err := ai4.unused(cmd); err != nil {
			return nil, err
		}
		if err := checkPeriods(cmd, o.Periods); err != nil {
			return nil, err
		}
		o.Now = p.Now()
		for _, list := range measure {
			o.Measure = append(o.Measure, strings.Split(list, ",")...)
		}
		var err error
		if o.Where, err = argumentsOf(where); err != nil {
			return nil, usageError(cmd, err)
		}
		return report.Usage(ctx, c.API, o)
	})
}

func (p *Program) reportUtilization() *cobra.Command {
	o := report.UtilizationOptions{}
	cmd := &cobra.Command{
		Use: "utilization", Short: "How full clusters were, and its course",
		Long: `How full clusters were: what was used of what was there, for each cluster and all
of them, and its course over the first period. Capacity is reported by sources, or
configured in blocks "cluster".`,
		Example: "  bursar report utilization\n  bursar report utilization -period 2026-Q3 -bucket week -component GPUs -o gpus.html",
	}
	periodFlags(cmd, &o.Periods, &o.Zone)
	cmd.Flags().Var(&choice{&o.Bucket, []string{"day", "week", "month"}}, "bucket", "how fine the course is: day, week, month (default day)")
	cmd.Flags().StringVar(&o.Component, "component", "", "what is counted, a `name` such as GPUs, Memory or su; default the cores")
	return p.reports(cmd, func(ctx context.Context, c *client.Client) (*report.Document, error) {
		if err := checkPeriods(cmd, o.Periods); err != nil {
			return nil, err
		}
		o.Now = p.Now()
		return report.Utilization(ctx, c.API, o)
	})
}
