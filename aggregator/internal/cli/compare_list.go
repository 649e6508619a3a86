package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// listOptions say what a list of amounts has.
type listOptions struct{ id, amount, prefix string }

func (p *Program) compareListCommand() *cobra.Command {
	var list listOptions
	cmd := &cobra.Command{
		Use: "csv FILE", Short: "Compare with a list of ids and amounts",
		Long: `Compare a CSV of record ids and what each run used with bursar's records, for any
system that can list its jobs. The first line names the columns; other columns are
ignored. The amount is what the run used of the component, in core-seconds or with
-unit hour in core-hours; an amount that was rounded is equal to what it was rounded
from. -prefix puts before each id what record ids begin with, as in nemo-4711. FILE
may be - for stdin. A list has no times: give the window that it covers.` + compareAbout,
		Example: "  bursar compare csv jobs.csv -id JobID -amount core_hours -unit hour -prefix nemo- -window 2026-03\n  bursar compare csv gpus.csv -component GPUs -o gpus.html",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"csv"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	opt := p.compareFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&list.id, "id", "id", "`column` with the ids")
	f.StringVar(&list.amount, "amount", "amount", "`column` with the amounts")
	f.StringVar(&list.prefix, "prefix", "", "`text` that record ids have before the ids of the list")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if opt.other = filepath.Base(args[0]); args[0] == "-" {
			opt.other = "stdin"
		}
		return p.runComparison(cmd, opt, func(ctx context.Context, c *comparison) error { return p.readList(ctx, args[0], &list, c) })
	}
	return cmd
}

// readList reads the other side from a CSV. Lines that have no id or amount are named.
func (p *Program) readList(ctx context.Context, path string, opt *listOptions, c *comparison) error {
	c.listed = true
	in, size := p.Stdin, int64(0)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
		in = f
	}
	bar := p.newBar("there", size)
	defer bar.clearLine()
	in = bar.wrapReader(ctx, in)
	lines := bufio.NewReaderSize(in, mostLine)
	if mark, _ := lines.Peek(3); string(mark) == "\ufeff" {
		_, _ = lines.Discard(3) // they are there
	}
	head, err := listRow(lines)
	if err != nil {
		return fmt.Errorf("the first line: %w", err)
	}
	id, amount := slices.Index(head, opt.id), slices.Index(head, opt.amount)
	if id < 0 || amount < 0 {
		return fmt.Errorf("columns %q and %q not found in the first line: it has %s; use -id and -amount", opt.id, opt.amount, cutToWidth(strings.Join(head, ", "), 200))
	}
	for n := 2; ; n++ {
		row, err := listRow(lines)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var e *comparand
		broken, is := errors.AsType[*csv.ParseError](err)
		switch {
		case err == nil && len(row) == 0: // blank
			continue
		case err == nil:
			e, err = opt.parseEntry(row, id, amount)
		case is:
			err = broken.Err
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err != nil {
			c.addDifference(kindInvalid, "not a line of the list", newPlaceholder(sideInvalid, fmt.Sprintf("line %d", n), ""), err.Error())
			continue
		}
		if err := c.spool.addEntry(e); err != nil {
			return err
		}
	}
}

// mostLine is how long a line of a list may be.
const mostLine = 64 << 10

// listRow reads the columns of a line; a blank one has none. A line that is too long or
// broken is read to its end, so that the next one follows.
func listRow(in *bufio.Reader) ([]string, error) {
	line, err := in.ReadSlice('\n')
	for more := err; errors.Is(more, bufio.ErrBufferFull); {
		_, more = in.ReadSlice('\n')
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, err
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return nil, nil
	}
	rows := csv.NewReader(bytes.NewReader(line))
	rows.TrimLeadingSpace = true
	return rows.Read()
}

// parseEntry reads a line of the list.
func (o *listOptions) parseEntry(row []string, id, amount int) (*comparand, error) {
	if len(row) <= max(id, amount) {
		return nil, fmt.Errorf("missing columns: it has %d", len(row))
	}
	e := newPlaceholder(sideThere, o.prefix+strings.TrimSpace(row[id]), strings.TrimSpace(row[amount]))
	if err := record.ValidateID(e.ID); err != nil || strings.TrimSpace(row[id]) == "" {
		return nil, fmt.Errorf("invalid id %q", cutToWidth(row[id], 60))
	}
	if n := v1.Rational(e.note); n == nil || n.Sign() < 0 {
		return nil, fmt.Errorf("invalid amount %q of %s: use a number, such as 3600 or 1.5", cutToWidth(e.note, 60), e.ID)
	}
	return e, nil
}
