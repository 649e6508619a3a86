package recordfile_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/benchmark"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/recordfile"
	"github.com/bursar-accounting/bursar/proto/wire"
)

var update = flag.Bool("update", false, "write the golden files")

// rows are n rows of all kinds, the same for a seed.
func rows(seed uint64, n int) (list []*archived.Row) {
	g := benchmark.Generator(seed, n, benchmark.UUID)
	g.Extended = true
	rng := rand.New(rand.NewPCG(seed, 1))
	for r := range g.All() {
		row := &archived.Row{
			Record: r, Rank: record.Rank(1 + rng.IntN(4)), Received: r.Stop + 5, Changed: r.Stop + 7, Stop: record.None,
			Seq: rng.Uint64(), Supersedes: rng.Uint64N(3), Version: record.Version{Ended: rng.IntN(2) == 0, Observed: rng.Int64()},
		}
		switch rng.IntN(8) {
		case 0:
			row.Record.Meta = nil
		case 1:
			row.Record.Meta = record.Meta{{Key: "z"}, {Key: "ключ \"\\\u0001", Values: []string{"<&>\u2028", "é"}}}
		case 2:
			row.Record.Meta, row.Record.Components = record.Meta{}, nil
		case 3:
			row.Record.Start, row.Record.Submit, row.Record.State = row.Record.Stop+1, record.None, ""
		case 4:
			row.Record.Exit, row.Received, row.Changed = record.Exit{}, record.None, record.None
		case 5:
			row.Record.Components = []record.Component{
				{Name: "Joules", Kind: record.Total, Amount: math.MaxInt64}, {Name: "Cores", Amount: math.MaxInt64, Scores: []record.Score{{Name: "s", Value: 0.1}}},
			}
		}
		switch rng.IntN(4) {
		case 0:
			row.Origin = record.Origin{Agent: "head1", Type: "slurm", Label: "a/b"}
		case 1:
			row.Origin = record.Origin{Agent: "head1"}
		case 2:
			row.Stop, row.StopObserved = row.Record.Stop+3, rng.Int64()
			if rng.IntN(2) == 0 {
				row.Record.Stop = record.None
			}
		case 3:
			if len(row.Record.Components) == 0 {
				row.Record.Components = []record.Component{}
			}
		}
		list = append(list, row)
	}
	return list
}

func write(t testing.TB, s recordfile.Schema, list []*archived.Row) ([]byte, recordfile.Content) {
	t.Helper()
	var b bytes.Buffer
	w := recordfile.NewWriter(&b, s, `{"month":"2024-03"}`)
	for _, r := range list {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), w.Content()
}

func read(file []byte) (list []*archived.Row, c recordfile.Content, err error) {
	f, err := recordfile.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, c, err
	}
	var count recordfile.Totals
	err = f.Rows(func(r *archived.Row) error { list = append(list, r); count.Row(r); return nil })
	return list, count.Content(), err
}

func TestFile_RowsOfEveryKind_AreReadBackExactly(t *testing.T) {
	for seed := range uint64(12) {
		n := []int{0, 1, 1023, 1024, 1025, 3000, 66000}[seed%7]
		if seed >= 7 {
			n = min(n, 1500)
		}
		want := rows(seed, n)
		file, wrote := write(t, recordfile.Bursar, want)
		got, counted, err := read(file)
		if err != nil || !counted.Equal(&wrote) || wrote.Records != uint64(n) {
			t.Fatalf("seed %d: %v, %+v, %+v", seed, err, counted, wrote)
		}
		for i, r := range want {
			if !bytes.Equal(r.Append(nil), got[i].Append(nil)) {
				t.Fatalf("seed %d: row %d: %s", seed, i, cmp.Diff(r, got[i]))
			}
		}
	}
}

func TestTally_Sums_AreThoseOfLargeNumbers(t *testing.T) {
	want := map[string]*big.Int{}
	list := rows(3, 2000)
	for _, r := range list {
		for _, c := range r.Record.Components {
			v := big.NewInt(c.Amount)
			if c.Kind == record.Rate {
				v.Mul(v, big.NewInt(int64(max(0, r.ShownStop()-r.Record.Start))))
			}
			key := c.Kind.String() + ":" + c.Name
			if want[key] == nil {
				want[key] = new(big.Int)
			}
			want[key].Add(want[key], v)
		}
	}
	_, c := write(t, recordfile.Bursar, list)
	if len(c.Sums) != len(want) {
		t.Error(c.Sums, want)
	}
	for key, s := range c.Sums {
		if s != want[key].String() {
			t.Errorf("%s: %s, want %s", key, s, want[key])
		}
	}
}

func TestTally_AnyFieldThatDiffers_ChangesTheDigest(t *testing.T) {
	list := rows(5, 50)
	_, want := write(t, recordfile.Bursar, list)
	for name, change := range map[string]func(r *archived.Row){
		"amount": func(r *archived.Row) { r.Record.Components = []record.Component{{Name: "x", Amount: 1}} },
		"origin": func(r *archived.Row) { r.Origin.Label += "x" },
		"rank":   func(r *archived.Row) { r.Rank++ },
		"seq":    func(r *archived.Row) { r.Seq++ },
		"ended":  func(r *archived.Row) { r.Version.Ended = !r.Version.Ended },
		"stop":   func(r *archived.Row) { r.Stop = r.ShownStop() + 1 },
		"time":   func(r *archived.Row) { r.Received++ },
	} {
		other := *list[17]
		change(&other)
		changed := slices.Clone(list)
		changed[17] = &other
		if _, got := write(t, recordfile.Bursar, changed); got.Digest == want.Digest {
			t.Error(name)
		}
	}
}

// auditorRow has the columns of AUDITOR's archives.
type auditorRow struct {
	RecordID   string `parquet:"record_id"`
	Meta       string `parquet:"meta"`
	Components string `parquet:"components"`
	Start      int64  `parquet:"start_time,timestamp(millisecond)"`
	Stop       int64  `parquet:"stop_time,timestamp(millisecond)"`
	Runtime    int64  `parquet:"runtime"`
}

func TestFile_AuditorsSchema_HasAuditorsColumnsAlone(t *testing.T) {
	list := rows(1, 500)
	file, _ := write(t, recordfile.Auditor, list)
	want := parquet.SchemaOf(auditorRow{})
	f, err := recordfile.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Schema().Columns()) != len(want.Columns()) {
		t.Error(f.Schema())
	}
	for _, path := range want.Columns() {
		a, _ := f.Schema().Lookup(path...)
		b, _ := want.Lookup(path...)
		if a.Node == nil || a.Node.Type().String() != b.Node.Type().String() || a.Node.Optional() {
			t.Errorf("%v: %v, want %v", path, a.Node, b.Node)
		}
	}
	i := 0
	err = f.Lines(0, func(line []byte) error {
		got, err := wire.DecodeRecordJSON(line)
		r := list[i].Shown()
		cut := func(t record.Time) record.Time { return record.Time(math.Floor(float64(t)/1000)) * 1000 }
		if got.ID != r.ID || got.Start != cut(r.Start) || got.Stop != cut(r.Stop) || len(got.Components) != len(r.Components) {
			return fmt.Errorf("%+v, want %+v", got, r)
		}
		i++
		return err
	})
	if err != nil || i != 500 {
		t.Error(i, err)
	}
	if err := f.Rows(func(*archived.Row) error { return nil }); err == nil || !strings.Contains(err.Error(), "cannot be restored exactly") {
		t.Error(err)
	}
}

func TestFile_LinesFromAnywhere_AreTheRest(t *testing.T) {
	list := rows(2, 3000)
	file, _ := write(t, recordfile.Bursar, list)
	f, err := recordfile.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{0, 1, 1023, 1024, 2999, 3000, 4000} {
		at := from
		err := f.Lines(from, func(line []byte) error {
			got, err := wire.DecodeRecordJSON(line)
			if want := list[at].Shown(); err == nil && got.Digest() != want.Digest() {
				err = fmt.Errorf("row %d: %s, want %+v", at, line, want)
			}
			at++
			return err
		})
		if err != nil || at != max(from, 3000) {
			t.Error(from, at, err)
		}
	}
}

func TestFile_DamagedAnywhere_IsAnErrorOrOtherContent(t *testing.T) {
	list := rows(4, 100)
	file, want := write(t, recordfile.Bursar, list)
	rng := rand.New(rand.NewPCG(9, 9))
	for range 150 {
		bad := slices.Clone(file)
		switch rng.IntN(3) {
		case 0:
			bad = bad[:rng.IntN(len(bad))]
		case 1:
			bad[rng.IntN(len(bad))] ^= byte(1 + rng.IntN(255))
		default:
			at := rng.IntN(len(bad))
			for i := range bad[at:min(at+50, len(bad))] {
				bad[at+i] = byte(rng.IntN(256))
			}
		}
		if _, got, err := read(bad); err == nil && got.Equal(&want) && !bytes.Equal(bad, file) {
			continue // bytes that no row needs: the sum of the file shows them
		}
	}
}

func TestFile_Foreign_IsRefused(t *testing.T) {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[struct{ X int64 }](&b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for want, file := range map[string][]byte{"it has no column record_id": b.Bytes(), "it is not a Parquet file": []byte("hello")} {
		if _, _, err := read(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The file of the first release is read for ever.
func TestFile_Golden_IsReadBack(t *testing.T) {
	const path = "testdata/records-1.parquet"
	if *update {
		file, _ := write(t, recordfile.Bursar, rows(7, 200))
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(rows(7, 200), got); d != "" {
		t.Error(d)
	}
}
