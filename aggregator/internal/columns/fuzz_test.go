package columns_test

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns/columnstest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// seal mends the checksums of a batch or block that was changed, so that the
// fuzzer gets behind them.
func seal(data []byte) []byte {
	data = slices.Clone(data)
	if len(data) < columns.HeaderSize {
		return data
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	head := crc32.Update(crc32.Checksum(data[:2], table), table, data[6:columns.HeaderSize-4])
	binary.LittleEndian.PutUint32(data[2:], head)
	binary.LittleEndian.PutUint32(data[columns.HeaderSize-4:], crc32.Checksum(data[columns.HeaderSize:], table))
	return data
}

func sealRow(data []byte) []byte {
	data = slices.Clone(data)
	if len(data) >= 6 {
		table := crc32.MakeTable(crc32.Castagnoli)
		binary.LittleEndian.PutUint32(data[2:], crc32.Update(crc32.Checksum(data[:2], table), table, data[6:]))
	}
	return data
}

func FuzzParseBatch(f *testing.F) {
	f.Add(build(generate(40, columnstest.Slurm)))
	f.Add(build(generate(40, columnstest.UUID)))
	f.Add(build(rare(30, 0)))
	f.Add(build(wideRows()))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := columns.ParseBatch(data); err == nil && !slices.Equal(seal(data), data) {
			t.Fatal("a batch with a wrong checksum was read")
		}
		b, err := columns.ParseBatch(seal(data))
		if err != nil {
			return
		}
		var want []columns.Row
		for i := range b.Len() {
			r := b.Row(i)
			r.Seq, r.Received, r.Changed, r.Supersedes = uint64(i+1), 5, 5, 0
			want = append(want, r)
		}
		d := columns.NewDict()
		e := encode(t, d, columns.Part{Batch: b, FirstSeq: 1, Received: 5, Changed: 5})
		for i, got := range allRows(t, decode(t, e.Data, d)) {
			if got.Record.ID != want[i].Record.ID || !record.Same(&got.Record, &want[i].Record) {
				t.Fatalf("row %d of the block is not that of the batch", i)
			}
		}
	})
}

// wideRows have more components than there are columns.
func wideRows() []columns.Row {
	rows := rare(3, 1)
	for i := range rows {
		for k := range 40 {
			rows[i].Record.Components = append(rows[i].Record.Components, record.Component{Name: "c", Amount: int64(k * i)})
		}
	}
	return rows
}

func allRows(t *testing.T, b *columns.Block) (rows []columns.Row) {
	for r, err := range b.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

func FuzzDecodeBlock(f *testing.F) {
	d := columns.NewDict()
	for k, rows := range [][]columns.Row{generate(60, columnstest.Slurm), generate(60, columnstest.UUID), rare(100, 1), wideRows()} {
		f.Add(encode(f, d, columns.Part{Batch: parse(f, build(rows)), FirstSeq: uint64(k*1000 + 1)}).Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := columns.NewReader(d).Block(seal(data))
		if err != nil {
			return
		}
		picked, err := columns.NewReader(d).Block(seal(data))
		if err != nil {
			t.Fatal(err)
		}
		var row columns.Row
		_ = picked.Pick(&row, picked.Len()-1)
		use(b, d)
		for _, err := range b.Rows() {
			if err != nil {
				return
			}
		}
	})
}

// use calls what reads a block; errors are as good as answers.
func use(b *columns.Block, d *columns.Dict) {
	m := b.All()
	_ = b.SelectStop(m, 0, record.MaxTime)
	_ = b.SelectStart(m, 0, record.MaxTime)
	_ = b.SelectRuntime(m, 0, 1<<40)
	_ = b.SelectMeta(m, d.MetaFilter("job", contains("7")))
	_ = b.SelectAmount(m, "Cores", func(a int64, ok bool) bool { return ok && a > 1 })
	_, _, _ = b.Find(5)
	for p := range 33 {
		_, _ = b.Amounts(p)
	}
	_, _ = b.ID(b.Len() - 1)
	var row columns.Row
	for i := range min(b.Len(), 5) {
		_ = b.Pick(&row, b.Len()-1-i)
	}
}

func FuzzDecodeRow(f *testing.F) {
	for _, rows := range [][]columns.Row{generate(3, columnstest.Slurm), rare(2, 1), wideRows()} {
		for i := range rows {
			f.Add(columns.AppendRow(nil, &rows[i]))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := columns.DecodeRow(sealRow(data))
		if err != nil {
			return
		}
		again, err := columns.DecodeRow(columns.AppendRow(nil, &r))
		if err != nil {
			t.Fatal(err)
		}
		same(t, r, again)
	})
}

func FuzzLoadDict(f *testing.F) {
	d := columns.NewDict()
	encode(f, d, columns.Part{Rows: rare(20, 1)})
	for _, e := range d.Entries() {
		f.Add(byte(e.Table), e.Data, d.State())
	}
	f.Fuzz(func(t *testing.T, table byte, data, state []byte) {
		fresh := columns.NewDict()
		for _, e := range d.Entries() {
			if err := fresh.Load(e); err != nil {
				t.Fatal(err)
			}
		}
		e := columns.Entry{Table: columns.Table(table), Data: data}
		e.ID = uint32(fresh.Len(e.Table%8) + 1)
		_ = fresh.Load(e)
		_ = fresh.LoadState(state)
		encode(t, fresh, columns.Part{Rows: rare(20, 30)})
	})
}
