package columns_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns/columnstest"
)

func TestRowsThatAreLentSayWhatRowsSay(t *testing.T) {
	d := columns.NewDict()
	rows := generate(3*columns.MaxRows, columnstest.Slurm)
	reader := columns.NewReader(d)
	for k := range 3 {
		e := encode(t, d, columns.Part{Batch: parse(t, build(rows[k*columns.MaxRows:(k+1)*columns.MaxRows])), FirstSeq: uint64(k*columns.MaxRows + 1)})
		block, err := reader.Block(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		block.ReuseRows()
		kept := decode(t, e.Data, d)
		for i := range block.Len() {
			var row columns.Row
			if err := block.ReadRow(&row, i); err != nil {
				t.Fatal(err)
			}
			want, err := kept.Row(i)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, row); diff != "" {
				t.Fatalf("block %d, row %d:\n%s", k, i, diff)
			}
		}
	}
}

func TestABatchSaysOfItsEntriesWhatItsRowsSay(t *testing.T) {
	batch := parse(t, build(generate(columns.MaxRows, columnstest.UUID)))
	for i := range batch.Len() {
		var own columns.Row
		batch.ReadOwn(&own, i)
		refs, want := batch.Refs(i), batch.Row(i)
		own.Origin, own.Rank = batch.OriginAt(refs.Origin)
		own.Record.State, own.Record.Exit = batch.End(refs.End)
		own.Record.Components = append(own.Record.Components, batch.Template(refs.Template)...)
		for k, amount := range batch.AppendAmounts(nil, i, len(own.Record.Components)) {
			own.Record.Components[k].Amount = amount
		}
		own.Record.Meta = want.Record.Meta // of which the next test tells
		if diff := cmp.Diff(want, own); diff != "" {
			t.Fatalf("row %d:\n%s", i, diff)
		}
	}
}

func TestTheItemsOfASetAreTheValuesOfAMeta(t *testing.T) {
	batch := parse(t, build(generate(512, columnstest.Slurm)))
	for i := range batch.Len() {
		items, present := batch.AppendSet(nil, batch.Refs(i).Set)
		var got, want [][2]string
		for _, item := range items {
			key, value, has := batch.Pair(item.Pair)
			if !has || item.GoesOn {
				t.Fatalf("row %d: %+v", i, item)
			}
			got = append(got, [2]string{key, value})
		}
		meta := batch.Row(i).Record.Meta
		for k := range meta {
			want = append(want, [2]string{meta[k].Key, meta[k].Values[0]})
		}
		if diff := cmp.Diff(want, got); diff != "" || present != (meta != nil) {
			t.Fatalf("row %d: %v\n%s", i, present, diff)
		}
	}
}
