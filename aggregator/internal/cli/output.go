package cli

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/csvtext"
)

// format is what -format says.
type format string

// The formats.
const (
	asTable format = "table"
	asJSON  format = "json"
	asCSV   format = "csv"
	// asParquet is a file for programs: it is not written to a terminal.
	asParquet format = "parquet"
)

// formatFlag adds -format to a command.
func formatFlag(cmd *cobra.Command, into *format, allowed ...format) {
	*into = allowed[0]
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	cmd.Flags().Var(&choice{(*string)(into), names}, "format", "how to write the answer: "+strings.Join(names, ", "))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // the option exists
}

// choice is an option with few values.
type choice struct {
	value   *string
	allowed []string
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return "word" }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		return errors.New(oneOf(s, c.allowed))
	}
	*c.value = s
	return nil
}

// oneOf says which of the words is meant, or which there are.
func oneOf(word string, words []string) string {
	use := "use one of " + strings.Join(words, ", ")
	if near := hcl.Suggest(word, words); near != "" {
		use = fmt.Sprintf("did you mean %q?", near)
	}
	return use
}

// table is rows under a head.
type table struct {
	head []string
	look []column
	rows [][]string
	// paint are the colours of rows on a terminal, "" for none; it may be shorter.
	paint []string
	// title stands above it; "": none.
	title string
	// below is a text that follows for people, as it is; "": none.
	below string
	// exact says that the cells are as files have them: what is not known is empty.
	exact bool
}

// column says how a column behaves.
type column struct {
	right bool // it holds numbers
	first bool // it is cut before all others where there is no room
	leave bool // it is left out where there is no room
}

// newTable makes a table. Signs before a name say how its column behaves: ">" for
// numbers, "~" for one that is cut first, "?" for one that may be left out.
func newTable(head ...string) *table {
	t := &table{}
	for _, h := range head {
		name := strings.TrimLeft(h, ">~?")
		signs := h[:len(h)-len(name)]
		t.head = append(t.head, name)
		t.look = append(t.look, column{strings.Contains(signs, ">"), strings.Contains(signs, "~"), strings.Contains(signs, "?")})
	}
	return t
}

func (t *table) addRow(cells ...string) { t.rows = append(t.rows, cells) }

// writeCSV writes the table as comma separated values, for machines: an empty value is
// empty, and the heads are words.
func (t *table) writeCSV(w io.Writer) error {
	all := [][]string{make([]string, len(t.head))}
	for i, h := range t.head {
		all[0][i] = csvtext.Harmless(strings.ToLower(strings.ReplaceAll(h, " ", "_")))
	}
	for _, r := range t.rows {
		r = slices.Clone(r)
		for i := range r {
			if r[i] == "-" && !t.exact {
				r[i] = ""
			}
			r[i] = csvtext.Cell(r[i])
		}
		all = append(all, r)
	}
	out := csv.NewWriter(w)
	if err := out.WriteAll(all); err != nil {
		return err
	}
	return out.Error()
}

// gap stands between columns.
const gap = "  "

// writeText writes the table for people, at most width columns wide unless width is 0.
// It returns the columns that had no room.
func (t *table) writeText(w io.Writer, width int, color bool) (left []string, err error) {
	var b strings.Builder
	widths := t.fitWidths(width)
	line := func(cells []string) string {
		var parts []string
		for i, c := range cells {
			if widths[i] > 0 {
				parts = append(parts, padToWidth(cutToWidth(printable(c), widths[i]), widths[i], t.look[i].right))
			}
		}
		return strings.TrimRight(strings.Join(parts, gap), " ")
	}
	if t.title != "" {
		b.WriteString("\n" + t.title + "\n")
	}
	head := line(t.head)
	if color {
		head = "\x1b[1m" + head + "\x1b[0m"
	}
	b.WriteString(head + "\n")
	for i, r := range t.rows {
		text := line(r)
		if color && i < len(t.paint) && t.paint[i] != "" {
			text = "\x1b[" + t.paint[i] + "m" + text + "\x1b[0m"
		}
		b.WriteString(text + "\n")
	}
	for i, n := range widths {
		if n == 0 {
			left = append(left, t.head[i])
		}
	}
	_, err = io.WriteString(w, b.String())
	return left, err
}

// How far columns are cut: those that are cut first, and the others when that and
// leaving out is not enough.
const (
	narrow    = 14
	narrowest = 6
)

// fitWidths returns the widths of the columns so that all fit into limit, 0 for those
// that are left out.
func (t *table) fitWidths(limit int) []int {
	w := make([]int, len(t.head))
	for i := range w {
		w[i] = uniseg.StringWidth(t.head[i])
		for _, r := range t.rows {
			w[i] = max(w[i], uniseg.StringWidth(printable(r[i])))
		}
	}
	if limit == 0 {
		return w
	}
	shrinkWidest(w, limit, narrow, func(i int) bool { return t.look[i].first })
	for i := range w {
		if t.look[i].leave && totalWidth(w) > limit {
			w[i] = 0
		}
	}
	shrinkWidest(w, limit, narrowest, func(int) bool { return true })
	return w
}

// shrinkWidest narrows the widest of some columns until all fit or none is above least.
func shrinkWidest(w []int, limit, least int, may func(int) bool) {
	for totalWidth(w) > limit {
		at := -1
		for i := range w {
			if may(i) && w[i] > least && (at < 0 || w[i] > w[at]) {
				at = i
			}
		}
		if at < 0 {
			return
		}
		w[at]--
	}
}

// totalWidth is the width of a line of such columns.
func totalWidth(w []int) (sum int) {
	for _, n := range w {
		if n > 0 {
			sum += n + len(gap)
		}
	}
	return sum - len(gap)
}

// cutToWidth shortens s to a width.
func cutToWidth(s string, width int) string {
	if uniseg.StringWidth(s) <= width {
		return s
	}
	var b strings.Builder
	used := 0
	for g := uniseg.NewGraphemes(s); g.Next() && used+g.Width() < width; used += g.Width() {
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}

func padToWidth(s string, width int, right bool) string {
	blank := strings.Repeat(" ", max(0, width-uniseg.StringWidth(s)))
	if right {
		return blank + s
	}
	return s + blank
}

// printable replaces control characters, so that a record cannot drive the
// terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// printableLines makes each line of a text printable.
func printableLines(text string) string {
	list := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range list {
		list[i] = printable(list[i])
	}
	return strings.Join(list, "\n")
}

// printTable writes a table for people.
func (p *Program) printTable(t *table) error {
	left, err := t.writeText(p.Stdout, p.Width, p.Color)
	if len(left) > 0 {
		p.say("No room for %s: a wider terminal or -format csv shows all.", strings.Join(left, ", "))
	}
	if err == nil && t.below != "" {
		_, err = fmt.Fprintf(p.Stdout, "\n%s\n", printableLines(t.below))
	}
	return err
}

func (p *Program) printJSON(answer any) error {
	text, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "%s\n", text)
	return err
}

// say writes a message for people.
func (p *Program) say(text string, args ...any) {
	fmt.Fprintln(p.Stderr, printableLines(fmt.Sprintf(text, args...)))
}
