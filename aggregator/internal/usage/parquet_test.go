package usage

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"

	"github.com/bursar-accounting/bursar/proto/record"
)

// parquetRows reads a file: the names of its columns, and its rows.
func parquetRows(t interface{ Fatal(...any) }, text []byte) (names []string, rows []parquet.Row, about string) {
	f, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Schema().Fields() {
		names = append(names, c.Name())
	}
	about, _ = f.Lookup("bursar")
	for _, g := range f.RowGroups() {
		r := g.Rows()
		list := make([]parquet.Row, g.NumRows())
		if n, err := r.ReadRows(list); int64(n) != g.NumRows() {
			t.Fatal(n, err)
		}
		for _, row := range list {
			rows = append(rows, row.Clone())
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return names, rows, about
}

// text is a value as JSON has it.
func text(v parquet.Value) string {
	switch {
	case v.IsNull():
		return ""
	case v.Kind() == parquet.FixedLenByteArray:
		n := new(big.Int).SetBytes(v.ByteArray())
		if v.ByteArray()[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 128))
		}
		f, _ := new(big.Rat).SetFrac(n, big.NewInt(1e6)).Float64()
		return strconv.FormatFloat(f, 'g', -1, 64)
	case v.Kind() == parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10)
	case v.Kind() == parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	}
	return string(v.ByteArray())
}

func TestParquetHasTheTableOfJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.IntRange(0, 5).Draw(t, "groups")
		r := Request{Window: testWindow(t, "2026-Q1"), Bucket: calendar.Month, By: []string{"k"}, Measures: everything(),
			Hours: rapid.Bool().Draw(t, "hours"), Top: rapid.IntRange(0, 4).Draw(t, "top")}
		s, err := MakeTable(context.Background(), plain(func(_ context.Context, q sums.Query) (*sums.Answer, error) { return answerOf(t, q, groups), nil }), r)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := s.Parquet([]byte(`{"a":1}`), func(b []byte) error { file.Write(b); return nil }); err != nil {
			t.Fatal(err)
		}
		whole := read(t, s)
		names, rows, about := parquetRows(t, file.Bytes())
		if len(rows) != 3*len(whole.Groups) || len(names) != 4+len(whole.Measures) || names[0] != "k" || names[3] != "to" || names[4] != "records" {
			t.Fatal(len(rows), names)
		}
		if !bytes.Contains([]byte(about), []byte(`"complete":{"a":1}}`)) {
			t.Fatal(about)
		}
		for at, row := range rows {
			if got := record.Time(row[2].Int64()); got != s.Edges[at%3] || row[3].Int64() != int64(s.Edges[at%3+1]) || text(row[1]) != s.Labels[at%3] {
				t.Fatal(row)
			}
			for i, m := range whole.Measures {
				want := ""
				if v := m.Values[at]; v != nil {
					f, err := v.Float64()
					if err != nil {
						t.Fatal(err)
					}
					want = strconv.FormatFloat(f, 'g', -1, 64)
				}
				got := text(row[4+i])
				if n, err := strconv.ParseFloat(got, 64); err == nil {
					got = strconv.FormatFloat(n, 'g', -1, 64)
				}
				if m.Name == "wait" && got != "" { // a mean is rounded in JSON
					continue
				}
				if got != want {
					t.Fatalf("%s in row %d: %s in Parquet, %s in JSON", m.Name, at, got, want)
				}
			}
		}
	})
}

func TestAClientThatIsGoneEndsAParquetFile(t *testing.T) {
	s, err := MakeTable(t.Context(), plain(yearOfUsers), Request{Window: testWindow(t, "2025"), Bucket: calendar.Day, By: []string{"k"}})
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	if err := s.Parquet([]byte(`{}`), func([]byte) error { return gone }); !errors.Is(err, gone) {
		t.Error(err)
	}
}
