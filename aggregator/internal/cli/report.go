package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// The formats of documents beside those of lists.
const (
	asHTML format = "html" // one file that needs nothing else
	asXLSX format = "xlsx" // a workbook of spreadsheet programs
)

// builder asks for a report; nil without an error when it has written it itself.
type builder func(ctx context.Context, c *client.Client) (*report.Document, error)

func (p *Program) reportCommand() *cobra.Command {
	var list []*cobra.Command
	for _, e := range report.Catalogue() {
		list = append(list, p.catalogueCommand(&e))
	}
	return groupCommand("report", "Make a report to read, print or share",
		"  bursar report usage -by group_id\n  bursar report usage -where project=bell -format html -o bell.html\n  bursar report subscription -period 2026-Q3\n  bursar report statement -of group_id=atlas -o atlas.html",
		list...)
}

// catalogueCommand makes the command of a report of the catalogue.
func (p *Program) catalogueCommand(e *report.Entry) *cobra.Command {
	cmd := &cobra.Command{Use: e.Name, Short: strings.TrimSuffix(e.About, "."), Long: e.Long, Example: e.Example, Args: cobra.NoArgs}
	asked := parameterFlags(cmd, e)
	var build builder = func(ctx context.Context, c *client.Client) (*report.Document, error) {
		query := asked()
		for i := range e.Parameters { // what is not given is the cluster's to say
			given := cmd.Flags().Changed(strings.ReplaceAll(e.Parameters[i].Name, "_", "-"))
			if name := e.Parameters[i].Name; !given && slices.Equal(query[name], e.Parameters[i].Default) {
				delete(query, name)
			}
		}
		return report.Make(ctx, c.API, e.Name, query, p.Now())
	}
	switch e.Name {
	case "usage":
		build = p.likeUsageStats(cmd, asked, build)
	case "summary":
		build = p.likeAI4(cmd, asked, build)
	case "utilization":
		build = p.likeAuditor(cmd, asked, build)
	case "subscription":
		build = p.likeClusterAccountant(cmd, e, asked, build)
	}
	conn := p.connectionFlags(cmd)
	for i := range e.Parameters {
		if param := &e.Parameters[i]; param.Kind == report.ParamPairs {
			p.completePairs(cmd, conn, param.Name, param.Words)
		}
	}
	out := outletFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.chooseFormat(cmd); err != nil {
			return commandline.UsageError(cmd, err)
		}
		c, err := conn.openClient(p)
		if err != nil {
			return err
		}
		defer c.Close()
		d, err := build(cmd.Context(), c)
		switch {
		case errors.Is(err, report.ErrQuery):
			return commandline.UsageError(cmd, err)
		case err != nil || d == nil:
			return err
		}
		return p.deliverDocument(out, d)
	}
	return cmd
}

// outlet is where a document goes, and as what.
type outlet struct {
	f    format
	file string // "": stdout
}

// outletFlags adds -format and -o to a command.
func outletFlags(cmd *cobra.Command) *outlet {
	o := &outlet{}
	formatFlag(cmd, &o.f, asTable, asCSV, asJSON, asHTML, asXLSX)
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "`file` to write to; its ending chooses the format where none is given")
	return o
}

// chooseFormat sets the format of the file's ending where none is given.
func (o *outlet) chooseFormat(cmd *cobra.Command) (err error) {
	if compat := cmd.Flag("compat"); !cmd.Flags().Changed("format") && (compat == nil || !compat.Changed) { // whose output may be a folder
		o.f, err = byEnding(o.file)
	}
	return err
}

// deliverDocument writes a document to stdout or to a file.
func (p *Program) deliverDocument(o *outlet, d *report.Document) error {
	if o.file == "" && o.f == asXLSX && p.Width > 0 {
		return errors.New("-format xlsx is not text for a terminal; write it to a file: -o report.xlsx")
	}
	if o.file == "" {
		return p.writeReport(p.Stdout, d, o.f, p.Width)
	}
	return p.saveReport(o.file, d, o.f)
}

// parameter is the flag of a parameter of a report.
type parameter struct {
	report.Param

	given []string
}

// String implements [pflag.Value].
func (f *parameter) String() string {
	if f.given == nil {
		return strings.Join(f.Default, ", ")
	}
	return strings.Join(f.given, ",")
}

// Set implements [pflag.Value].
func (f *parameter) Set(value string) error {
	f.given = append(f.given, value)
	return nil
}

// Type implements [pflag.Value].
func (f *parameter) Type() string {
	return cmp.Or(map[string]string{report.ParamPairs: "key=value", report.ParamChoice: "word"}[f.Kind], f.Kind)
}

// parameterFlags adds a flag for each parameter of a report, and returns what gives their
// values. The terminal has all rows where a page has the first hundred.
func parameterFlags(cmd *cobra.Command, e *report.Entry) (asked func() url.Values) {
	flags := map[string]*parameter{}
	for _, param := range e.Parameters {
		if param.Name == "top" && e.Name == "summary" {
			param.Default = []string{"0"}
		}
		f, name := &parameter{Param: param}, strings.ReplaceAll(param.Name, "_", "-")
		flags[param.Name] = f
		about := strings.ToLower(param.About[:1]) + strings.TrimSuffix(param.About[1:], ".")
		if param.Kind == report.ParamChoice {
			about += ": " + strings.Join(param.Words, ", ")
		}
		cmd.Flags().Var(f, name, about)
		if param.Kind != report.ParamPairs { // which ask the cluster
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(param.Words, cobra.ShellCompDirectiveNoFileComp)) // the option exists
		}
	}
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "co2-per-kwh" { // as the flag was called
			name = "carbon-per-kwh"
		}
		return pflag.NormalizedName(name)
	})
	return func() url.Values {
		query := url.Values{}
		for name, f := range flags {
			if query[name] = f.given; f.given == nil {
				query[name] = f.Default
			}
		}
		return query
	}
}

// byEnding is the format of a file by its name: text where that has no ending.
func byEnding(file string) (format, error) {
	ending := strings.TrimPrefix(filepath.Ext(file), ".")
	for _, f := range []format{asHTML, asXLSX, asCSV, asJSON} {
		if strings.EqualFold(ending, string(f)) {
			return f, nil
		}
	}
	if ending == "" || strings.EqualFold(ending, "txt") {
		return asTable, nil
	}
	return "", fmt.Errorf("-o: no format for %q: use a file that ends in .html, .xlsx, .csv, .json or .txt, or give -format", "."+ending)
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
	case asXLSX:
		return d.WriteXLSX(w)
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
		for _, period := range periodsOf(d.Table(i)) {
			if err := p.reportPart(w, d, d.Table(i), period, width); err != nil {
				return err
			}
		}
	}
	for _, note := range d.Notes {
		p.say("%s", wrapText(note, p.Width, 0))
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
	left, err := reportTable(t, period).writeText(w, width, p.Color && w == p.Stdout)
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
			cells = append(cells, (*v1.DocumentTable)(t).Show(row, i))
		}
		out.addRow(cells...)
	}
	for _, row := range t.Rows {
		add(row)
	}
	if len(t.Totals) > 0 {
		add(t.Totals)
	}
	return out
}
