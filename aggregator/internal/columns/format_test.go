package columns_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

var update = flag.Bool("update", false, "write the golden files of the present format anew")

// goldenRows have something of everything.
func goldenRows() []columns.Row {
	rows := rare(100, 1) // values that are in the rows
	rows = append(rows, wideRows()...)
	one := columns.Row{
		Record: record.Record{
			ID:    "nemo-slurm-1234567_45",
			Meta:  record.Meta{{Key: "empty"}, {Key: "site_id", Values: []string{"nemo"}}, {Key: "voms", Values: []string{"/atlas", "/atlas/de"}}},
			Start: 1_700_000_000_000_001, Stop: 1_700_000_100_000_000, Submit: 1_699_999_000_000_000,
			Components: []record.Component{
				{Name: "Cores", Amount: 8, Scores: []record.Score{{Name: "HEPScore23", Value: 21.5}, {Name: "HS06", Value: 250}}},
				{Name: "TotalCPU", Amount: 1 << 40, Kind: record.Total},
			},
			State: "FAILED", Exit: record.Exit{Known: true, Code: 1, Signal: 9},
		},
		Origin: record.Origin{Agent: "head", Type: "slurm", Label: "nemo"}, Rank: record.RankScheduler,
		Version: record.Version{Ended: true, Observed: 1_700_000_200_000_000}, Stop: record.None,
		Received: 1_700_000_300_000_000, Changed: 1_700_000_400_000_000, Supersedes: 3,
	}
	pushed := one
	pushed.Record.ID, pushed.Record.Stop, pushed.Record.Meta = "nemo-0f8fad5b-d9cb-469f-a165-70867728950e", record.None, record.Meta{}
	pushed.Origin, pushed.Version.Ended, pushed.Stop, pushed.StopObserved = record.Pushed, false, one.Record.Stop, 77
	both, open, negative, gone := pushed, one, one, columns.Row{Stop: record.None, Tombstone: true, Supersedes: 9}
	both.Record.ID, both.Record.Stop, both.Version.Ended = "deadbeefdeadbeef0001-007", 42, true
	open.Record.ID, open.Record.Stop, open.Record.Meta, open.Version.Ended = "nemo-slurm-1234568", record.None, nil, false
	negative.Record.ID, negative.Record.Start, negative.Record.Stop = "1969", -5, -1_000_000
	gone.Record = record.Record{ID: "gone", Stop: record.None, Submit: record.None}
	rows = append(rows, one, pushed, both, open, negative, gone)
	for i := range rows {
		rows[i].Seq = uint64(1000 + i)
	}
	return rows
}

// golden returns the bytes of a golden file, written before when asked to.
func golden(t *testing.T, name string, present []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", "format1", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, present, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestFormat1IsReadForEver must pass with the files of every release. The bytes
// that are written today may differ from them (a compressor may do better); the
// rows may not.
func TestFormat1IsReadForEver(t *testing.T) {
	rows, d := goldenRows(), columns.NewDict()
	e := encode(t, d, columns.Part{Rows: rows})
	batch := parse(t, golden(t, "batch", build(rows)))
	for i := range rows {
		same(t, rows[i], batch.Row(i))
	}
	for i, name := range []string{"one", "pushed", "both", "open", "negative", "gone"} {
		want := rows[len(rows)-6+i]
		got, err := columns.DecodeRow(golden(t, "row-"+name, columns.AppendRow(nil, &want)))
		if err != nil {
			t.Fatal(err)
		}
		same(t, want, got)
	}
	stored := columns.NewDict()
	for _, entry := range entriesOf(golden(t, "dict", entriesBytes(d))) {
		if err := stored.Load(entry); err != nil {
			t.Fatal(err)
		}
	}
	if err := stored.LoadState(golden(t, "state", d.State())); err != nil {
		t.Fatal(err)
	}
	block := decode(t, golden(t, "block", e.Data), stored)
	checkBlock(t, block, rows)
	if h := block.Header(); h.Open != 1 || h.Tombstones != 1 {
		t.Errorf("header %+v", h)
	}
	if !bytes.Equal(stored.State(), d.State()) || stored.Len(columns.TableSet) != d.Len(columns.TableSet) {
		t.Error("the rule of admission decides otherwise than when the files were written")
	}
}

// entriesBytes is a plain file of entries: table, length, data.
func entriesBytes(d *columns.Dict) (b []byte) {
	for _, e := range d.Entries() {
		b = append(b, byte(e.Table), byte(len(e.Data)), byte(len(e.Data)>>8))
		b = append(b, e.Data...)
	}
	return b
}

func entriesOf(b []byte) (out []columns.Entry) {
	next := map[columns.Table]uint32{}
	for len(b) > 0 {
		table, n := columns.Table(b[0]), int(b[1])|int(b[2])<<8
		next[table]++
		out = append(out, columns.Entry{Table: table, ID: next[table], Data: b[3 : 3+n]})
		b = b[3+n:]
	}
	return out
}

func TestDamageAndNewerFormatsAreErrors(t *testing.T) {
	d := columns.NewDict()
	rows := goldenRows()
	block, batch, row := encode(t, d, columns.Part{Rows: rows}).Data, build(rows), columns.AppendRow(nil, &rows[0])
	readers := map[string]func([]byte) error{
		"block": func(b []byte) error { _, err := columns.NewReader(d).Block(b); return err },
		"batch": func(b []byte) error { _, err := columns.ParseBatch(b); return err },
		"row":   func(b []byte) error { _, err := columns.DecodeRow(b); return err },
	}
	for name, data := range map[string][]byte{"block": block, "batch": batch, "row": row} {
		read := readers[name]
		if err := read(data); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range data {
			bad := slices.Clone(data)
			bad[i] ^= 0x10
			if err := read(bad); i > 0 && !errors.Is(err, columns.ErrCorrupt) || i == 0 && !errors.Is(err, columns.ErrFormat) {
				t.Fatalf("%s: byte %d changed: %v", name, i, err)
			}
			if i < 200 || i%37 == 0 {
				if err := read(data[:i]); !errors.Is(err, columns.ErrCorrupt) {
					t.Fatalf("%s: cut at %d: %v", name, i, err)
				}
			}
		}
	}
}

func TestABlockAgainstTheWrongDictionaryIsAnError(t *testing.T) {
	d := columns.NewDict()
	e := encode(t, d, columns.Part{Rows: goldenRows()})
	b := decode(t, e.Data, columns.NewDict())
	if _, err := b.Row(0); !errors.Is(err, columns.ErrCorrupt) {
		t.Errorf("row: %v", err)
	}
	if err := b.SelectMeta(b.All(), d.MetaFilter("site", contains("x"))); !errors.Is(err, columns.ErrCorrupt) {
		t.Errorf("meta: %v", err)
	}
}

func TestRowsThatMakeNoBlockAreRefusedAndLeaveTheDictionaryAlone(t *testing.T) {
	rows := goldenRows()
	back := slices.Clone(rows)
	slices.Reverse(back)
	cases := map[string][]columns.Part{
		"none":     {},
		"empty":    {{}},
		"order":    {{Rows: back}},
		"overlap":  {{Rows: rows}, {Batch: parse(t, build(rows)), FirstSeq: 1050}},
		"both":     {{Rows: rows, Batch: parse(t, build(rows))}},
		"too many": {{Batch: parse(t, build(rare(columns.MaxRows, 0))), FirstSeq: 1}, {Rows: []columns.Row{{Seq: 1 << 40}}}},
	}
	for name, parts := range cases {
		d := columns.NewDict()
		if _, err := columns.EncodeBlock(d, parts...); !errors.Is(err, columns.ErrRows) {
			t.Errorf("%s: %v", name, err)
		}
		if len(d.Entries()) != 0 {
			t.Errorf("%s: the dictionary changed", name)
		}
	}
}

func TestABatchIsFullBeforeItIsTooLarge(t *testing.T) {
	b := columns.NewBuilder()
	rows := rare(columns.MaxRows, 0)
	for i := range rows {
		if b.Full() {
			break
		}
		rows[i].Record.Meta = record.Meta{{Key: "k", Values: []string{string(bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 500))}}}
		b.Add(&rows[i])
	}
	if n := len(b.Bytes()); b.Len() == columns.MaxRows || n > columns.MaxBatch+2048 {
		t.Errorf("%d rows of %d bytes", b.Len(), n)
	}
	b.Reset()
	if b.Bytes() != nil || b.Len() != 0 {
		t.Error("a reset builder has rows")
	}
	b.Add(&rows[0])
	same(t, rows[0], parse(t, b.Bytes()).Row(0))
}
