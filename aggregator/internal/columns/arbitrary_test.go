package columns_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// arbitraryTime draws times of all sorts: none, before 1970, whole seconds, the ends
// of the range.
func arbitraryTime(t *rapid.T, label string) record.Time {
	return rapid.OneOf(
		rapid.Just(record.None),
		rapid.Just(record.MinTime), rapid.Just(record.MaxTime), rapid.Just(record.Time(0)),
		rapid.Map(rapid.Int64Range(1_700_000_000, 1_700_100_000), func(s int64) record.Time { return record.Time(s) * record.Second }),
		rapid.Map(rapid.Int64Range(-1<<50, 1<<51), func(us int64) record.Time { return record.Time(us) }),
		rapid.Map(rapid.Int64(), func(us int64) record.Time { return record.Time(us) }),
	).Draw(t, label)
}

var arbitraryID = rapid.OneOf(
	rapid.StringMatching(`(nemo|helix)-slurm-[0-9]{1,9}(_[0-9]{1,3})?`),
	rapid.StringMatching(`[0-9]{1,25}`),
	rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}x?`),
	rapid.StringMatching(`job-[0-9a-f]{15,40}`),
	rapid.StringMatching(`([0-9]{1,3}[a-z.]){1,12}`),
	rapid.StringMatching(`0{1,20}[0-9a-fA-F-]{0,12}`),
	rapid.String(),
	rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat("ü1", n) }),
)

var arbitraryMeta = rapid.Custom(func(t *rapid.T) record.Meta {
	if rapid.Bool().Draw(t, "absent") {
		return nil
	}
	m := record.Meta{}
	for range rapid.IntRange(0, 4).Draw(t, "keys") {
		e := record.MetaEntry{Key: rapid.SampledFrom([]string{"a", "b", "site", "comment", ""}).Draw(t, "key")}
		for range rapid.IntRange(0, 3).Draw(t, "values") {
			e.Values = append(e.Values, rapid.OneOf(rapid.SampledFrom([]string{"x", "y", ""}), rapid.String()).Draw(t, "value"))
		}
		m = append(m, e)
	}
	return m
})

var arbitraryComponents = rapid.Custom(func(t *rapid.T) []record.Component {
	n := rapid.SampledFrom([]int{-1, 0, 1, 2, 5, 31, 32, 33, 50}).Draw(t, "components")
	if n < 0 {
		return nil
	}
	components := make([]record.Component, n)
	for i := range components {
		components[i] = record.Component{
			Name:   rapid.SampledFrom([]string{"Cores", "Memory", "GPU"}).Draw(t, "name"),
			Amount: rapid.OneOf(rapid.Int64Range(0, 64), rapid.Int64()).Draw(t, "amount"),
			Kind:   rapid.SampledFrom([]record.Kind{record.Rate, record.Total}).Draw(t, "kind"),
			Scores: rapid.SampledFrom([][]record.Score{nil, {}, {{Name: "HS", Value: 1.5}}, {{Name: "HS", Value: 2}, {Name: "HS", Value: 0.1}}}).Draw(t, "scores"),
		}
	}
	return components
})

var arbitraryRow = rapid.Custom(func(t *rapid.T) columns.Row {
	return columns.Row{
		Record: record.Record{
			ID: arbitraryID.Draw(t, "id"), Meta: arbitraryMeta.Draw(t, "meta"), Components: arbitraryComponents.Draw(t, "parts"),
			Start: arbitraryTime(t, "start"), Stop: arbitraryTime(t, "stop"), Submit: arbitraryTime(t, "submit"),
			State: rapid.SampledFrom([]string{"", "COMPLETED", "FAILED"}).Draw(t, "state"),
			Exit:  rapid.SampledFrom([]record.Exit{{}, {Known: true}, {Known: true, Code: -1, Signal: 9}}).Draw(t, "exit"),
		},
		Origin:       rapid.SampledFrom([]record.Origin{record.Pushed, {Agent: "h", Type: "slurm", Label: "n"}}).Draw(t, "origin"),
		Rank:         rapid.SampledFrom([]record.Rank{0, record.RankPush, record.RankScheduler}).Draw(t, "rank"),
		Version:      record.Version{Ended: rapid.Bool().Draw(t, "ended"), Observed: rapid.Int64().Draw(t, "observed")},
		Stop:         arbitraryTime(t, "register"),
		StopObserved: rapid.Int64Range(0, 1000).Draw(t, "stop observed"),
		Received:     arbitraryTime(t, "received"),
		Changed:      arbitraryTime(t, "changed"),
		Supersedes:   rapid.Uint64Range(0, 3).Draw(t, "supersedes"),
		Tombstone:    rapid.Bool().Draw(t, "tombstone"),
	}
})

// arbitraryRows draws rows with ascending Seqs.
func arbitraryRows(t *rapid.T, most int) []columns.Row {
	rows := rapid.SliceOfN(arbitraryRow, 1, most).Draw(t, "rows")
	seq := uint64(0)
	for i := range rows {
		seq += rapid.Uint64Range(1, 3).Draw(t, "seq")
		rows[i].Seq = seq
	}
	return rows
}

func TestArbitraryRowsSurviveTheRowCodec(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := arbitraryRow.Draw(rt, "row")
		got, err := columns.DecodeRow(columns.AppendRow(nil, &want))
		if err != nil {
			rt.Fatal(err)
		}
		same(t, want, got)
	})
}

func TestArbitraryRowsSurviveABatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := arbitraryRows(rt, 12)
		builder := columns.NewBuilder()
		for i := range rows {
			builder.Add(&rows[i])
		}
		data := builder.Bytes()
		if len(data) > builder.Size() {
			rt.Fatalf("%d bytes are more than the size %d", len(data), builder.Size())
		}
		b := parse(t, data)
		for i := range rows {
			same(t, rows[i], b.Row(i))
			if !b.Same(i, &rows[i]) || b.Stop(i) != rows[i].ShownStop() || b.Start(i) != rows[i].Record.Start || b.ID(i) != rows[i].Record.ID {
				rt.Fatalf("row %d reads otherwise by column", i)
			}
		}
	})
}

// draw is what goes into one block: loose rows, a batch without some of its
// rows, loose rows.
type draw struct {
	lead, batch, tail []columns.Row
	skip              []int
}

func drawParts(rt *rapid.T) draw {
	rows := arbitraryRows(rt, 16)
	a := rapid.IntRange(0, len(rows)).Draw(rt, "lead")
	z := rapid.IntRange(a, len(rows)).Draw(rt, "tail")
	d := draw{lead: rows[:a], batch: rows[a:z], tail: rows[z:]}
	for i := range d.batch {
		if rapid.Bool().Draw(rt, "skip") {
			d.skip = append(d.skip, i)
		}
	}
	return d
}

// parts returns the parts and the rows that the block must have.
func (w draw) parts(t testing.TB) (parts []columns.Part, want []columns.Row) {
	parts, want = append(parts, columns.Part{Rows: w.lead}), slices.Clone(w.lead)
	if len(w.batch) > 0 {
		seq := w.batch[0].Seq
		parts = append(parts, columns.Part{Batch: parse(t, build(w.batch)), Skip: w.skip, FirstSeq: seq, Received: 5, Changed: 8})
		for i, r := range w.batch {
			if slices.Contains(w.skip, i) {
				continue
			}
			r.Seq, r.Received, r.Changed, r.Supersedes = seq, 5, 8, 0
			seq++
			want = append(want, r)
		}
	}
	return append(parts, columns.Part{Rows: w.tail}), append(want, w.tail...)
}

func TestArbitraryRowsSurviveBlocksOfManyParts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := columns.NewDict()
		for range rapid.IntRange(1, 3).Draw(rt, "blocks") {
			parts, want := drawParts(rt).parts(t)
			e, err := columns.EncodeBlock(d, parts...)
			if len(want) == 0 {
				if err == nil {
					rt.Fatal("a block without rows")
				}
				return
			}
			if err != nil {
				rt.Fatal(err)
			}
			checkBlock(t, decode(t, e.Data, d), want)
			checkSingle(t, e.Data, d, want)
			checkPostings(t, d, e, want)
		}
	})
}

// checkBlock compares a block with the rows that it must have, by row and by
// column.
func checkBlock(t testing.TB, b *columns.Block, want []columns.Row) {
	t.Helper()
	starts, err := b.Starts()
	if err != nil {
		t.Fatal(err)
	}
	stops, err := b.Stops()
	if err != nil {
		t.Fatal(err)
	}
	if b.Len() != len(want) {
		t.Fatalf("%d rows, want %d", b.Len(), len(want))
	}
	for i, w := range want {
		got, err := b.Row(i)
		if err != nil {
			t.Fatal(err)
		}
		same(t, w, got)
		if starts[i] != w.Record.Start || stops[i] != w.ShownStop() {
			t.Fatalf("row %d: start %v stop %v", i, starts[i], stops[i])
		}
		if origin, err := b.Origin(i); err != nil || origin != w.Origin {
			t.Fatalf("row %d: origin %v, want %v: %v", i, origin, w.Origin, err)
		}
		if at, ok, err := b.Find(w.Seq); err != nil || !ok || at != i {
			t.Fatalf("seq %d found at %d, %v, %v", w.Seq, at, ok, err)
		}
	}
}

// checkPostings sees that every pair of the rows leads to the block.
// checkSingle compares the rows that are read one by one, and those that are
// lent.
func checkSingle(t testing.TB, data []byte, d *columns.Dict, want []columns.Row) {
	t.Helper()
	lent := decode(t, data, d)
	lent.ReuseRows()
	var row columns.Row
	for _, seq := range []uint64{want[0].Seq - 1, want[len(want)-1].Seq + 1} {
		if ok, err := columns.NewReader(d).Pick(&row, data, seq, ""); err != nil || ok {
			t.Fatal(ok, err)
		}
	}
	for i := range want {
		if ok, err := decode(t, data, d).PickSeq(&row, want[i].Seq); err != nil || !ok {
			t.Fatal(ok, err)
		}
		same(t, want[i], row)
		for _, id := range []string{"", want[i].Record.ID} {
			if ok, err := columns.NewReader(d).Pick(&row, data, want[i].Seq, id); err != nil || !ok {
				t.Fatal(ok, err)
			}
			same(t, want[i], row)
		}
		if err := lent.ReadRow(&row, i); err != nil {
			t.Fatal(err)
		}
		same(t, want[i], row)
	}
}

func checkPostings(t testing.TB, d *columns.Dict, e *columns.Encoded, want []columns.Row) {
	t.Helper()
	if !slices.IsSorted(e.KVs) {
		t.Fatal("postings do not ascend")
	}
	for i := range want {
		for _, m := range want[i].Record.Meta {
			for _, v := range m.Values {
				kv, ok := d.KV(m.Key, v)
				inline, has := d.InlineKV(m.Key)
				if !(ok && slices.Contains(e.KVs, kv)) && !(has && slices.Contains(e.KVs, inline)) {
					t.Fatalf("block is not posted under %q=%q", m.Key, v)
				}
			}
		}
	}
}

func TestNodesThatApplyTheSameHoldTheSameBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := columns.NewDict(), columns.NewDict()
		for range 3 {
			parts, want := drawParts(rt).parts(t)
			if len(want) == 0 {
				continue
			}
			x, y := encode(t, a, parts...), encode(t, b, parts...)
			if diff := cmp.Diff(x, y); diff != "" {
				rt.Fatal(diff)
			}
			b = reload(t, b) // as after a restart
		}
	})
}

// reload makes a dictionary out of what a store keeps of d.
func reload(t testing.TB, d *columns.Dict) *columns.Dict {
	t.Helper()
	fresh := columns.NewDict()
	for _, e := range d.Entries() {
		if err := fresh.Load(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := fresh.LoadState(d.State()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(fresh.State(), d.State()) {
		t.Fatal("state changed by reloading")
	}
	return fresh
}

// rare makes rows each with meta, components, origin, end and id that no other
// row has.
func rare(n, from int) []columns.Row {
	rows := make([]columns.Row, n)
	for i := range rows {
		k := from + i
		rows[i] = columns.Row{
			Record: record.Record{
				ID:         strings.Map(func(c rune) rune { return 'g' + c%16 }, fmt.Sprintf("%07d", k)),
				Meta:       record.Meta{{Key: "job", Values: []string{fmt.Sprint(k)}}, {Key: "site", Values: []string{"s", fmt.Sprint("t", k)}}},
				Components: []record.Component{{Name: fmt.Sprint("C", k), Amount: int64(k)}},
				Start:      record.Time(k), Stop: record.Time(2 * k), Submit: record.None, State: fmt.Sprint("S", k),
			},
			Origin: record.Origin{Agent: fmt.Sprint(k)}, Version: record.Version{Ended: true, Observed: 1}, Stop: record.None, Seq: uint64(k + 1),
		}
	}
	return rows
}

func TestRareValuesStayOutOfTheDictionary(t *testing.T) {
	d := columns.NewDict()
	for k := range 6 {
		rows := rare(columns.MaxRows, k*columns.MaxRows)
		for i := range rows {
			rows[i].Received, rows[i].Changed = 5, 8
		}
		e := encode(t, d, columns.Part{Batch: parse(t, build(rows)), FirstSeq: rows[0].Seq, Received: 5, Changed: 8})
		checkBlock(t, decode(t, e.Data, d), rows)
		checkPostings(t, d, e, rows[:100])
	}
	for table, most := range map[columns.Table]int{
		columns.TableKey: 2, columns.TablePair: 10, columns.TableSet: 10, columns.TableTemplate: 10, columns.TableEnd: 10, columns.TableID: 10,
		columns.TableOrigin: 10,
	} {
		if got := d.Len(table); got > most {
			t.Errorf("table %d has %d entries, want at most %d", table, got, most)
		}
	}
	reload(t, d)
}

func TestAKeyWithoutValuesIsNoEmptyValueWhateverItsOtherValues(t *testing.T) {
	d, rows := columns.NewDict(), rare(300, 0)
	for i := range rows {
		if i%100 == 50 {
			rows[i].Record.Meta[0].Values = nil
		}
	}
	checkBlock(t, decode(t, encode(t, d, columns.Part{Rows: rows}).Data, d), rows)
}

func TestAKeyIsFoundInAllBlocksWhereverItsNumberIs(t *testing.T) {
	d := columns.NewDict()
	var blocks []*columns.Encoded
	var all [][]columns.Row
	for k := range 6 {
		rows := rare(1000, k*1000)
		for i := range rows {
			rows[i].Record.Meta = record.Meta{{Key: rows[i].Record.ID, Values: []string{"v"}}}
			if k >= 4 && i > 0 { // first rare, then in every row
				rows[i].Record.Meta = append(rows[i].Record.Meta, record.MetaEntry{Key: "late", Values: []string{"w"}})
			}
			if k == 4 && i > 1 {
				rows[i].Record.Meta = rows[i].Record.Meta[:1]
			}
		}
		blocks, all = append(blocks, encode(t, d, columns.Part{Rows: rows})), append(all, rows)
	}
	for k, e := range blocks {
		checkPostings(t, d, e, all[k])
	}
}

func TestKeysBeyondTheDictionaryAreFoundAndKept(t *testing.T) {
	d := columns.NewDict()
	for k := range 4 {
		rows := rare(1500, k*1500)
		for i := range rows {
			rows[i].Record.Meta = record.Meta{{Key: rows[i].Record.ID, Values: []string{"v", "w"}}, {Key: rows[i].Record.ID + "~"}, {Key: "~", Values: []string{"z"}}}
		}
		e := encode(t, d, columns.Part{Rows: rows})
		checkBlock(t, decode(t, e.Data, d), rows)
		checkPostings(t, d, e, rows)
	}
	if got := d.Len(columns.TableKey); got > 4096 {
		t.Errorf("%d keys", got)
	}
}
