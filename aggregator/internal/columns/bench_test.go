package columns_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns/columnstest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// batches is how many batches a benchmark goes round.
const batches = 8

func each(b *testing.B, run func(b *testing.B, ids string)) {
	for _, ids := range []string{columnstest.Slurm, columnstest.UUID} {
		b.Run(ids, func(b *testing.B) { run(b, ids) })
	}
}

func perRow(b *testing.B, rows int) {
	b.ReportMetric(float64(b.N)*float64(rows)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// store makes batches and the blocks of them, after some that fill the
// dictionary.
func store(b *testing.B, ids string) (rows []columns.Row, batch [][]byte, block []*columns.Encoded, d *columns.Dict) {
	const warm = 24
	d = columns.NewDict()
	all := generate((warm+batches)*columns.MaxRows, ids)
	for k := range warm + batches {
		data := build(all[k*columns.MaxRows : (k+1)*columns.MaxRows])
		e := encode(b, d, columns.Part{Batch: parse(b, data), FirstSeq: uint64(k)*columns.MaxRows + 1, Received: 1, Changed: 1})
		if k >= warm {
			batch, block = append(batch, data), append(block, e)
		}
	}
	return all[warm*columns.MaxRows:], batch, block, d
}

func BenchmarkBatchBuild(b *testing.B) {
	each(b, func(b *testing.B, ids string) {
		rows := generate(columns.MaxRows, ids)
		builder, size := columns.NewBuilder(), 0
		b.ReportAllocs()
		for b.Loop() {
			builder.Reset()
			for i := range rows {
				builder.Add(&rows[i])
			}
			size = len(builder.Bytes())
		}
		perRow(b, len(rows))
		b.ReportMetric(float64(size)/float64(len(rows)), "B/row")
		b.ReportMetric(float64(builder.Size())/float64(len(rows)), "Size/row")
	})
}

func BenchmarkBatchParse(b *testing.B) {
	each(b, func(b *testing.B, ids string) {
		data := build(generate(columns.MaxRows, ids))
		b.ReportAllocs()
		var id []byte
		for b.Loop() {
			batch := parse(b, data)
			for i := range batch.Len() {
				id = batch.AppendID(id[:0], i)
			}
		}
		perRow(b, columns.MaxRows)
	})
}

func benchmarkReencode(b *testing.B, ids string, skip []int) {
	_, batch, block, d := store(b, ids)
	size, k := 0, 0
	for _, e := range block {
		size += len(e.Data)
	}
	b.ReportAllocs()
	for b.Loop() {
		part := columns.Part{Batch: parse(b, batch[k%batches]), Skip: skip, FirstSeq: 1, Received: 1, Changed: 1}
		encode(b, d, part)
		k++
	}
	perRow(b, columns.MaxRows)
	b.ReportMetric(float64(size)/float64(columns.MaxRows*batches), "B/row")
}

// BenchmarkParseEncodeWhole is what a follower does for a batch without
// duplicates.
func BenchmarkParseEncodeWhole(b *testing.B) {
	each(b, func(b *testing.B, ids string) { benchmarkReencode(b, ids, nil) })
}

// BenchmarkParseEncodeRest is the same for a batch with duplicates.
func BenchmarkParseEncodeRest(b *testing.B) {
	each(b, func(b *testing.B, ids string) { benchmarkReencode(b, ids, []int{3, 77, 1000}) })
}

// BenchmarkEncodeRows makes blocks of loose rows.
func BenchmarkEncodeRows(b *testing.B) {
	each(b, func(b *testing.B, ids string) {
		rows, _, _, d := store(b, ids)
		for i := range rows {
			rows[i].Seq = uint64(i + 1)
		}
		k := 0
		for b.Loop() {
			at := k % batches * columns.MaxRows
			encode(b, d, columns.Part{Rows: rows[at : at+columns.MaxRows]})
			k++
		}
		perRow(b, columns.MaxRows)
	})
}

// BenchmarkScanFilter decodes and adds up the cores of a group's jobs that
// stopped in a window: stop, sets, templates and one amount.
func BenchmarkScanFilter(b *testing.B) {
	each(b, func(b *testing.B, ids string) {
		_, _, block, d := store(b, ids)
		filter := d.MetaFilter("account", contains("acct007"))
		h, sum := block[0].Header, int64(0)
		for b.Loop() {
			for _, e := range block {
				sum += scan(b, decode(b, e.Data, d), filter, h.MinStop+1)
			}
		}
		perRow(b, columns.MaxRows*batches)
	})
}

func scan(b *testing.B, block *columns.Block, filter *columns.MetaFilter, from record.Time) (sum int64) {
	m := block.All()
	if err := block.SelectStop(m, from, from+record.Day); err != nil {
		b.Fatal(err)
	}
	if err := block.SelectMeta(m, filter); err != nil {
		b.Fatal(err)
	}
	cores, err := block.Amounts(0)
	if err != nil {
		b.Fatal(err)
	}
	for i := range m.Rows() {
		sum += cores[i]
	}
	return sum
}

// BenchmarkSelect narrows a mask over columns that are decoded already.
func BenchmarkSelect(b *testing.B) {
	_, _, block, d := store(b, columnstest.Slurm)
	blk := decode(b, block[0].Data, d)
	filter := d.MetaFilter("group_id", contains("group07"))
	h := blk.Header()
	run := func(name string, narrow func(m columns.Mask) error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := narrow(blk.All()); err != nil {
					b.Fatal(err)
				}
			}
			perRow(b, columns.MaxRows)
		})
	}
	run("stop", func(m columns.Mask) error { return blk.SelectStop(m, h.MinStop+1, h.MaxStop-1) })
	run("start", func(m columns.Mask) error { return blk.SelectStart(m, h.MinStart+1, h.MaxStart-1) })
	run("runtime", func(m columns.Mask) error { return blk.SelectRuntime(m, 60, 3600) })
	run("meta", func(m columns.Mask) error { return blk.SelectMeta(m, filter) })
	run("amount", func(m columns.Mask) error {
		return blk.SelectAmount(m, "Cores", func(a int64, ok bool) bool { return ok && a > 2 })
	})
}

// BenchmarkLookup gives one row of a block.
func BenchmarkLookup(b *testing.B) {
	each(b, func(b *testing.B, ids string) {
		_, _, block, d := store(b, ids)
		for b.Loop() {
			var row columns.Row
			if err := decode(b, block[0].Data, d).Pick(&row, 2000); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRows decodes a block and gives all its rows.
func BenchmarkRows(b *testing.B) {
	_, _, block, d := store(b, columnstest.Slurm)
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range decode(b, block[0].Data, d).Rows() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	perRow(b, columns.MaxRows)
}

// BenchmarkRowsLent gives the rows of one block after the other to who keeps
// none.
func BenchmarkRowsLent(b *testing.B) {
	_, _, block, d := store(b, columnstest.Slurm)
	reader, k := columns.NewReader(d), 0
	b.ReportAllocs()
	for b.Loop() {
		blk, err := reader.Block(block[k%batches].Data)
		if err != nil {
			b.Fatal(err)
		}
		blk.ReuseRows()
		var row columns.Row
		for i := range blk.Len() {
			if err := blk.ReadRow(&row, i); err != nil {
				b.Fatal(err)
			}
		}
		k++
	}
	perRow(b, columns.MaxRows)
}
