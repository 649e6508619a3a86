package sdk_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// randomText is a text of at most n bytes. Some of its characters are escaped in JSON.
func randomText(chance *rand.Rand, n int) string {
	b := make([]byte, 1+chance.IntN(n))
	for i := range b {
		b[i] = `abcdefghijklmnopqrstuvwxyz/=:,."\ ABCDEF0123456789`[chance.IntN(50)]
	}
	b[0] = 'x' // never blank
	return string(b)
}

// randomRecords have texts of random number and length.
func randomRecords(chance *rand.Rand, n int) []record.Record {
	list := make([]record.Record, n)
	for i := range list {
		r := record.Record{ID: fmt.Sprintf("%s-%d", randomText(chance, 60), i), Meta: record.Meta{}, Start: record.Time(i), Stop: record.None, Submit: record.None}
		for k := range chance.IntN(8) {
			e := record.MetaEntry{Key: fmt.Sprint(k, randomText(chance, 20))}
			for range 1 + chance.IntN(3) {
				e.Values = append(e.Values, randomText(chance, 200))
			}
			r.Meta = append(r.Meta, e)
		}
		slices.SortFunc(r.Meta, func(a, b record.MetaEntry) int { return bytes.Compare([]byte(a.Key), []byte(b.Key)) })
		for k := range chance.IntN(4) {
			r.Components = append(r.Components, record.Component{Name: fmt.Sprint(k, randomText(chance, 20)), Amount: chance.Int64N(1e6)})
		}
		list[i] = r
	}
	return list
}

func TestData_KeptRecordsAndLines_DoNotChange(t *testing.T) {
	for seed := range uint64(4) {
		chance := rand.New(rand.NewPCG(seed, 1))
		want := randomRecords(chance, 3000)
		var body []byte
		var lines [][]byte
		for i := range want {
			line := wire.AppendV1JSON(nil, &want[i], wire.V1Extra{})
			lines = append(lines, line)
			body = append(append(body, line...), '\n')
		}
		data := sdk.NewData(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
		var got []record.Record
		for r, err := range data.Records(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: records differ after the iteration:\n%.2000s", seed, diff)
		}
		var kept [][]byte
		for line, err := range data.Lines(t.Context(), "/v1/records") {
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, line)
		}
		if !slices.EqualFunc(lines, kept, bytes.Equal) {
			t.Fatalf("seed %d: lines differ after the iteration", seed)
		}
	}
}
