package columns_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// checkSelect compares a mask with the obvious slow way.
func checkSelect(t *rapid.T, name string, rows []columns.Row, m columns.Mask, err error, want func(r *columns.Row) bool) {
	if err != nil {
		t.Fatal(err)
	}
	var slow []int
	for i := range rows {
		if !rows[i].Tombstone && want(&rows[i]) {
			slow = append(slow, i)
		}
	}
	if fast := slices.Collect(m.Rows()); !slices.Equal(slow, fast) || m.Count() != len(slow) {
		t.Fatalf("%s: rows %v, want %v", name, fast, slow)
	}
}

func TestSelectingByColumnAgreesWithLookingAtEachRow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := columns.NewDict()
		rows := arbitraryRows(rt, 80)
		b := decode(t, encode(t, d, columns.Part{Rows: rows}).Data, d)
		from, to := arbitraryTime(rt, "from"), arbitraryTime(rt, "to")

		m := b.All()
		checkSelect(rt, "start", rows, m, b.SelectStart(m, from, to), func(r *columns.Row) bool {
			return from <= r.Record.Start && r.Record.Start <= to
		})
		m = b.All()
		checkSelect(rt, "stop", rows, m, b.SelectStop(m, from, to), func(r *columns.Row) bool {
			return r.ShownStop() != record.None && from <= r.ShownStop() && r.ShownStop() <= to
		})
		m = b.All()
		checkSelect(rt, "open", rows, m, b.SelectOpen(m, true), func(r *columns.Row) bool { return r.ShownStop() == record.None })
		m = b.All()
		checkSelect(rt, "runtime", rows, m, b.SelectRuntime(m, -100, 10_000_000), func(r *columns.Row) bool {
			s := r.Shown()
			seconds, ok := s.Runtime()
			return ok && -100 <= seconds && seconds <= 10_000_000
		})
		for _, key := range []string{"a", "comment", "none"} {
			m = b.All()
			checkSelect(rt, "meta", rows, m, b.SelectMeta(m, d.MetaFilter(key, contains("x"))), func(r *columns.Row) bool {
				return slices.Contains(valuesOf(r, key), "x")
			})
		}
		m = b.All()
		few := func(amount int64, present bool) bool { return present && amount < 32 }
		checkSelect(rt, "amount", rows, m, b.SelectAmount(m, "GPU", few), func(r *columns.Row) bool {
			c := r.Record.Component("GPU")
			return c != nil && few(c.Amount, true)
		})
	})
}

// valuesOf returns all values of key, which odd metas may have several times.
func valuesOf(r *columns.Row, key string) (values []string) {
	for _, e := range r.Record.Meta {
		if e.Key == key {
			values = append(values, e.Values...)
		}
	}
	return values
}

func TestFiltersSeeValuesThatAreInTheRows(t *testing.T) {
	d := columns.NewDict()
	rows := rare(1000, 0)
	b := decode(t, encode(t, d, columns.Part{Rows: rows}).Data, d)
	m := b.All()
	if err := b.SelectMeta(m, d.MetaFilter("job", contains("77"))); err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(m.Rows()); !slices.Equal(got, []int{77}) {
		t.Errorf("rows %v, want 77", got)
	}
	m = b.All()
	err := b.SelectMeta(m, d.MetaFilter("job", func(_ []string, present bool) bool { return !present }))
	if err != nil || !m.Empty() {
		t.Errorf("%d rows without the key, %v", m.Count(), err)
	}
}
