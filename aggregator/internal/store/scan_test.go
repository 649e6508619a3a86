package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// scattered has records in some blocks, and some in none.
func scattered(t *testing.T) *box {
	b := newBox(t)
	for k := range 5 {
		list := make([]record.Record, 2000)
		for i := range list {
			list[i] = record.Record{ID: fmt.Sprintf("%d-%d", k, i), Start: t0, Stop: t0 + record.Time(i)*record.Second, Submit: record.None,
				Meta: record.Meta{{Key: "site", Values: []string{fmt.Sprint(i % 7)}}}}
		}
		b.post(t0, list...)
	}
	b.post(t0, record.Record{ID: "open", Start: t0, Stop: record.None, Submit: record.None, Meta: record.Meta{{Key: "site", Values: []string{"3"}}}})
	return b
}

func TestSeveralScannersTogetherGetWhatOneGets(t *testing.T) {
	b := scattered(t)
	q := Query{Running: &Window{From: t0 + 100*record.Second, To: t0 + 200*record.Second}, Meta: []MetaTest{{Key: "site", Any: []string{"3"}}},
		Allowed: [][]MetaTest{{{Key: "site", Any: []string{"3", "4"}}}}}
	want := ids(t, b, q)
	slices.Sort(want)
	for n := 1; n < 5; n++ {
		var mu sync.Mutex
		var got []string
		note := func(id string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, id)
		}
		scanners := make([]Scanner, n)
		for i := range scanners {
			scanners[i] = Scanner{Block: func(b *columns.Block, m columns.Mask) error {
				for k := range m.Rows() {
					id, err := b.ID(k)
					if err != nil {
						return err
					}
					note(id)
				}
				return nil
			}, Loose: func(row *columns.Row) error {
				if i > 0 {
					t.Error("a loose row came to another than the first")
				}
				note(row.Record.ID)
				return nil
			}}
		}
		b.view(func(v *View) {
			if err := v.ScanBy(context.Background(), q, scanners); err != nil {
				t.Fatal(err)
			}
		})
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" || len(want) < 100 {
			t.Errorf("%d scanners: %d rows: %s", n, len(want), d)
		}
	}
}

func TestAnErrorOfOneScannerEndsAll(t *testing.T) {
	b := scattered(t)
	broken := errors.New("broken")
	fail := Scanner{Block: func(*columns.Block, columns.Mask) error { return broken }, Loose: func(*columns.Row) error { return nil }}
	b.view(func(v *View) {
		if err := v.ScanBy(context.Background(), Query{}, []Scanner{fail, fail, fail}); !errors.Is(err, broken) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := v.ScanBy(ctx, Query{}, []Scanner{fail, fail}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestScan_OfAnID_FindsItsRowAlone(t *testing.T) {
	b := scattered(t)
	b.post(t0, record.Record{ID: "waits", Start: t0, Stop: t0 + record.Second, Submit: record.None})
	for _, id := range []string{"0-1", "1-1999", "4-7", "waits", "open", "none"} {
		var got []string
		b.view(func(v *View) {
			q := Query{ID: id, Running: &Window{From: t0, To: t0 + record.Hour}}
			err := v.Scan(context.Background(), q, func(b *columns.Block, m columns.Mask) error {
				for i := range m.Rows() {
					found, err := b.ID(i)
					if err != nil {
						return err
					}
					got = append(got, found)
				}
				return nil
			}, func(row *columns.Row) error {
				got = append(got, row.Record.ID)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
		want := []string{id}
		if id == "none" {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", id, got)
		}
	}
}
