package columns_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns/columnstest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// rowOf makes the row that a source's record becomes.
func rowOf(r record.Record, i int) columns.Row {
	polled := (r.Stop/record.Minute + 1) * record.Minute
	return columns.Row{
		Record:  r,
		Origin:  record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"},
		Rank:    record.RankScheduler,
		Version: record.Version{Ended: true, Observed: int64(polled) + int64(i%50)},
		Stop:    record.None,
	}
}

func generate(n int, ids string) []columns.Row {
	g := columnstest.Generator(1, n*100, ids) // the density of a hundred times as many
	rows := make([]columns.Row, 0, n)
	for r := range g.All() {
		row := rowOf(r, len(rows))
		// As a decoder leaves them: in order in memory, nothing shared.
		row, err := columns.DecodeRow(columns.AppendRow(nil, &row))
		if err != nil {
			panic(err)
		}
		if rows = append(rows, row); len(rows) == n {
			break
		}
	}
	return rows
}

func build(rows []columns.Row) []byte {
	b := columns.NewBuilder()
	for i := range rows {
		b.Add(&rows[i])
	}
	return b.Bytes()
}

func parse(t testing.TB, data []byte) *columns.Batch {
	t.Helper()
	b, err := columns.ParseBatch(data)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func encode(t testing.TB, d *columns.Dict, parts ...columns.Part) *columns.Encoded {
	t.Helper()
	e, err := columns.EncodeBlock(d, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func decode(t testing.TB, data []byte, d *columns.Dict) *columns.Block {
	t.Helper()
	b, err := columns.NewReader(d).Block(data)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// same compares rows; the values of a key without values may be absent or
// empty.
func same(t testing.TB, want, got columns.Row) {
	t.Helper()
	if reflect.DeepEqual(want, got) {
		return
	}
	empty := cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		return ok && f.Name() == "Values"
	}, cmpopts.EquateEmpty())
	if diff := cmp.Diff(want, got, empty, cmpopts.EquateNaNs()); diff != "" {
		t.Fatalf("row differs (-want +got):\n%s", diff)
	}
}

func TestBatchGivesBackItsRows(t *testing.T) {
	for _, ids := range []string{columnstest.Slurm, columnstest.UUID} {
		rows := generate(columns.MaxRows, ids)
		data := build(rows)
		b := parse(t, data)
		for i := range rows {
			same(t, rows[i], b.Row(i))
		}
		t.Logf("%s: %.1f B a row", ids, float64(len(data))/float64(len(rows)))
	}
}

func TestBlockGivesBackTheRowsOfABatch(t *testing.T) {
	for _, ids := range []string{columnstest.Slurm, columnstest.UUID} {
		d := columns.NewDict()
		rows := generate(4*columns.MaxRows, ids)
		for at := 0; at < len(rows); at += columns.MaxRows {
			part := rows[at : at+columns.MaxRows]
			e := encode(t, d, columns.Part{Batch: parse(t, build(part)), FirstSeq: uint64(at + 1), Received: 7, Changed: 9})
			b := decode(t, e.Data, d)
			for i := range part {
				got, err := b.Row(i)
				if err != nil {
					t.Fatal(err)
				}
				want := part[i]
				want.Seq, want.Received, want.Changed = uint64(at+1+i), 7, 9
				same(t, want, got)
			}
			t.Logf("%s: %.1f B a row, %d new entries", ids, float64(len(e.Data))/float64(len(part)), len(e.Entries))
		}
	}
}

// contains is a match for [columns.Dict.MetaFilter]: value is one of the values.
func contains(value string) func(values []string, present bool) bool {
	return func(values []string, _ bool) bool { return slices.Contains(values, value) }
}
