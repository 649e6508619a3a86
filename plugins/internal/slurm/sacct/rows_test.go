package sacct_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
)

const mark = "\x1fABC"

func rowsOf(r io.Reader, columns int) (rows [][]string, cut []int, err error) {
	in := sacct.NewRows(r, mark, columns)
	for {
		row, err := in.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return rows, cut, err
		}
		rows, cut = append(rows, row.Fields), append(cut, row.Cut)
	}
}

func written(rows [][]string) string {
	var b strings.Builder
	for _, row := range rows {
		for _, f := range row {
			b.WriteString(f + mark)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestRowsOfAnyTextAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 5).Draw(t, "columns")
		text := rapid.StringOf(rapid.SampledFrom([]rune{'a', '|', '\n', '\x1f', 'A', 'B', 'é', '"'})).
			Filter(func(s string) bool { return !strings.Contains(s+mark, mark[:3]+"C") || !strings.Contains(s, mark[:3]) })
		var rows [][]string
		for range rapid.IntRange(0, 4).Draw(t, "rows") {
			row := []string{"7"} // the first column is a job's id
			for range columns - 1 {
				row = append(row, text.Draw(t, "field"))
			}
			rows = append(rows, row)
		}
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(written(rows)), "byte by byte": iotest.OneByteReader(strings.NewReader(written(rows))),
		} {
			got, _, err := rowsOf(r, columns)
			if err != nil || !cmp.Equal(got, rows) {
				t.Fatalf("%s: %q, %v; want %q", name, got, err, rows)
			}
		}
	})
}

func TestOutputThatEndsWithinARowIsAnError(t *testing.T) {
	whole := written([][]string{{"7", "COMPLETED", "a\nb"}, {"8", "FAILED", ""}})
	for n := 1; n < len(whole); n++ {
		got, _, err := rowsOf(strings.NewReader(whole[:n]), 3)
		if n == len(written([][]string{{"7", "COMPLETED", "a\nb"}})) {
			continue // cut between two rows
		}
		if err == nil {
			t.Errorf("%d of %d bytes: %q without an error", n, len(whole), got)
		}
	}
}

func TestARowWithTooManyColumnsIsAnError(t *testing.T) {
	if got, _, err := rowsOf(strings.NewReader(written([][]string{{"7", "a", "b"}})), 2); err == nil {
		t.Errorf("%q without an error", got)
	}
}

func TestWhatAWrapperPrintsFirstIsNoPartOfARow(t *testing.T) {
	got, _, err := rowsOf(strings.NewReader("loading slurm\nready\n"+written([][]string{{"7", "a"}})), 2)
	if want := [][]string{{"7", "a"}}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAHugeFieldIsCutAndTheNextRowsAreWhole(t *testing.T) {
	huge := strings.Repeat("x\n\x1fAB", sacct.MaxField/2)
	rows := [][]string{{"7", huge, "end"}, {"8", "b", "c"}}
	got, cut, err := rowsOf(strings.NewReader(written(rows)), 3)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	if cut[0] != 1 || len(got[0][1]) != sacct.MaxField || got[0][2] != "end" {
		t.Errorf("column %d cut to %d bytes, then %q", cut[0], len(got[0][1]), got[0][2])
	}
	if cut[1] != -1 || !cmp.Equal(got[1], rows[1]) {
		t.Errorf("next row: %q, cut %d", got[1], cut[1])
	}
}

func FuzzRows(f *testing.F) {
	f.Add([]byte(written([][]string{{"7", "a\nb"}})), 2)
	f.Add([]byte("7"+mark+"\n"+mark+"\n"), 1)
	f.Add([]byte("\n\n"), 1)
	f.Fuzz(func(t *testing.T, b []byte, columns int) {
		if columns < 1 || columns > 50 {
			return
		}
		rows, _, err := rowsOf(bytes.NewReader(b), columns)
		if err == nil && len(rows) > bytes.Count(b, []byte(mark)) {
			t.Errorf("%d rows from %q", len(rows), b)
		}
	})
}
