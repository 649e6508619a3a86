package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"
)

// format is what -format says.
type format string

// The formats.
const (
	asTable format = "table"
	asJSON  format = "json"
	asCSV   format = "csv"
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
		return fmt.Errorf("want one of %s", strings.Join(c.allowed, ", "))
	}
	*c.value = s
	return nil
}

// table is rows under a head.
type table struct {
	head  []string
	right []bool // columns of numbers
	rows  [][]string
}

// newTable makes a table; a name that begins with ">" heads a column of numbers.
func newTable(head ...string) *table {
	t := &table{}
	for _, h := range head {
		name, right := strings.CutPrefix(h, ">")
		t.head, t.right = append(t.head, name), append(t.right, right)
	}
	return t
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// csv writes the table as comma separated values, for machines: an empty value is
// empty, and the heads are words.
func (t *table) csv(w io.Writer) error {
	all := [][]string{make([]string, len(t.head))}
	for i, h := range t.head {
		all[0][i] = strings.ToLower(strings.ReplaceAll(h, " ", "_"))
	}
	for _, r := range t.rows {
		r = slices.Clone(r)
		for i := range r {
			if r[i] == "-" {
				r[i] = ""
			}
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

// text writes the table for people, at most width columns wide unless width is 0.
func (t *table) text(w io.Writer, width int, color bool) error {
	var b strings.Builder
	widths := t.widths(width)
	line := func(cells []string) string {
		var l strings.Builder
		for i, c := range cells {
			if i > 0 {
				l.WriteString(gap)
			}
			l.WriteString(pad(cut(printable(c), widths[i]), widths[i], t.right[i]))
		}
		return strings.TrimRight(l.String(), " ")
	}
	head := line(t.head)
	if color {
		head = "\x1b[1m" + head + "\x1b[0m"
	}
	b.WriteString(head + "\n")
	for _, r := range t.rows {
		b.WriteString(line(r) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// narrowest is how far a column is cut.
const narrowest = 6

// widths are those of the columns; the widest are cut until all fit.
func (t *table) widths(limit int) []int {
	w := make([]int, len(t.head))
	total := len(gap) * (len(w) - 1)
	for i := range w {
		w[i] = uniseg.StringWidth(t.head[i])
		for _, r := range t.rows {
			w[i] = max(w[i], uniseg.StringWidth(printable(r[i])))
		}
		total += w[i]
	}
	for limit > 0 && total > limit {
		i := widest(w)
		if w[i] <= narrowest {
			break
		}
		w[i]--
		total--
	}
	return w
}

func widest(w []int) (at int) {
	for i := range w {
		if w[i] > w[at] {
			at = i
		}
	}
	return at
}

// cut shortens s to a width.
func cut(s string, width int) string {
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

func pad(s string, width int, right bool) string {
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

// show writes a table in the format that was asked for; json gives the answer of
// the server as it came, with indentation.
func (p *Program) show(f format, t *table, answer json.RawMessage) error {
	switch f {
	case asJSON:
		return p.json(answer)
	case asCSV:
		return t.csv(p.Stdout)
	}
	return t.text(p.Stdout, p.Width, p.Color)
}

func (p *Program) json(answer json.RawMessage) error {
	var out bytes.Buffer
	if err := json.Indent(&out, answer, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.Stdout, strings.TrimRight(out.String(), "\n"))
	return err
}

// say writes a message for people.
func (p *Program) say(text string, args ...any) { fmt.Fprintf(p.Stderr, text+"\n", args...) }
