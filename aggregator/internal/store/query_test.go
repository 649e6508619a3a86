package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// ids runs a query and returns the ids in its order.
func ids(t *testing.T, b *box, q Query) (list []string) {
	t.Helper()
	b.view(func(v *View) {
		err := v.Query(context.Background(), q, func(row *columns.Row) error {
			list = append(list, row.Record.ID)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	return list
}

// few is a handful of records: c is open, d stops before it starts.
func few(t *testing.T) *box {
	b := newBox(t)
	at := func(id string, start, stop record.Time, meta record.Meta, components ...record.Component) record.Record {
		return record.Record{ID: id, Start: t0 + start*record.Second, Stop: t0 + stop*record.Second, Submit: record.None, Meta: meta, Components: components}
	}
	group := func(vs ...string) record.Meta { return record.Meta{{Key: "group_id", Values: vs}} }
	a := at("a", 10, 40, group("g1"), record.Component{Name: "Cores", Amount: 4})
	bb := at("b", 20, 30, group("g1", "g2"), record.Component{Name: "Cores", Amount: 8}, record.Component{Name: "Memory", Amount: 4})
	c := at("c", 5, 0, group("g2"))
	c.Stop = record.None
	d := at("d", 30, 25, nil, record.Component{Name: "Memory", Amount: 4})
	e := at("e", 1, 30, record.Meta{}, record.Component{Name: "Cores", Amount: 1})
	b.post(t0, a, bb, c, d, e)
	return b
}

func bound(set func(*Range)) (r Range) {
	set(&r)
	return r
}

// allow keeps records with one of the groups, each in a list of its own.
func allow(groups ...string) (lists [][]MetaTest) {
	for _, g := range groups {
		lists = append(lists, []MetaTest{{Key: "group_id", Any: []string{g}}})
	}
	return lists
}

// A new condition of a query is one of these: on a row, on its meta or its time; or of the answer.
func TestQuery_ConditionOnARow_IsKnown(t *testing.T) {
	others := []string{"Running", "Meta", "Allowed", "Reads", "After", "Tombstones", "Superseded", "Details", "ReuseRows", "Order", "By", "Desc", "Resume", "Limit"}
	for field := range reflect.TypeFor[Query]().Fields() {
		if slices.Contains(others, field.Name) {
			continue
		}
		q := Query{}
		switch v := reflect.ValueOf(&q).Elem().FieldByIndex(field.Index).Addr().Interface().(type) {
		case *string:
			*v = "a"
		case *Range:
			v.GTE(1)
		case *[]AmountTest:
			*v = make([]AmountTest, 1)
		case *OpenTest:
			*v = OnlyOpen
		case **record.Origin:
			*v = &record.Origin{}
		default:
			t.Fatalf("%s is a %T", field.Name, v)
		}
		if !q.TestsRows() {
			t.Errorf("%s is not known", field.Name)
		}
	}
}

func TestQuerySelectsAndOrdersAsAuditorDoes(t *testing.T) {
	b := few(t)
	sec := func(s int64) int64 { return int64(t0) + s*int64(record.Second) }
	meta := func(m ...MetaTest) Query { return Query{Meta: m} }
	for _, c := range []struct {
		name string
		q    Query
		want string
	}{
		{"default: by stop, open last, equals in the order of arrival", Query{}, "d b e a c"},
		{"by stop descending: open first", Query{Desc: true}, "c a b e d"},
		{"by start", Query{Order: ByStart}, "e c a b d"},
		{"by start descending", Query{Order: ByStart, Desc: true}, "d b a c e"},
		{"by runtime", Query{Order: ByRuntime}, "d b e a c"},
		{"by runtime descending", Query{Order: ByRuntime, Desc: true}, "c a e b d"},
		{"by id descending", Query{Order: ByID, Desc: true}, "e d c b a"},
		{"by a meta key: without it last", Query{Order: ByMeta, By: "group_id"}, "a b c d e"},
		{"by a meta key descending: without it last", Query{Order: ByMeta, By: "group_id", Desc: true}, "c a b d e"},
		{"by an amount: without it last", Query{Order: ByAmount, By: "Cores"}, "e a b d c"},
		{"by an amount descending: without it last", Query{Order: ByAmount, By: "Cores", Desc: true}, "b a e d c"},
		{"by an amount with a limit", Query{Order: ByAmount, By: "Cores", Desc: true, Limit: 2}, "b a"},
		{"by an amount × time descending: without it or an end last", Query{Order: ByUsed, By: "Cores", Desc: true}, "a b e d c"},
		{"limit", Query{Limit: 2}, "d b"},
		{"limit of an order that must be sorted", Query{Order: ByID, Limit: 2}, "a b"},
		{"by id alone", Query{ID: "c"}, "c"},
		{"by unknown id", Query{ID: "nope"}, ""},
		{"by id and something else", Query{ID: "a", Start: bound(func(r *Range) { r.GT(sec(10)) })}, ""},
		{"start gte", Query{Start: bound(func(r *Range) { r.GTE(sec(10)) })}, "d b a"},
		{"start gt and lt", Query{Start: bound(func(r *Range) { r.GT(sec(5)); r.LT(sec(30)) })}, "b a"},
		{"stop drops open records", Query{Stop: bound(func(r *Range) { r.GTE(sec(0)) })}, "d b e a"},
		{"stop lte", Query{Stop: bound(func(r *Range) { r.LTE(sec(30)) })}, "d b e"},
		{"runtime equals", Query{Runtime: bound(func(r *Range) { r.Equals(10) })}, "b"},
		{"runtime below zero", Query{Runtime: bound(func(r *Range) { r.LT(0) })}, "d"},
		{"nothing is above everything", Query{Start: bound(func(r *Range) { r.GT(math.MaxInt64) })}, ""},
		{"gt and gte: both hold", Query{Start: bound(func(r *Range) { r.GT(sec(10)); r.GTE(sec(1)) })}, "d b"},
		{"contains", meta(MetaTest{Key: "group_id", Contains: []string{"g1"}}), "b a"},
		{"contains all", meta(MetaTest{Key: "group_id", Contains: []string{"g1", "g2"}}), "b"},
		{"contains any", meta(MetaTest{Key: "group_id", Any: []string{"g1", "g2"}}), "b a c"},
		{"lacks leaves out who has no key", meta(MetaTest{Key: "group_id", Lacks: []string{"g2"}}), "a"},
		{"contains and lacks", meta(MetaTest{Key: "group_id", Contains: []string{"g2"}, Lacks: []string{"g1"}}), "c"},
		{"unknown key", meta(MetaTest{Key: "x", Lacks: []string{"g2"}}), ""},
		{"unknown value", meta(MetaTest{Key: "group_id", Contains: []string{"g9"}}), ""},
		{"allowed: none", Query{Allowed: [][]MetaTest{}}, ""},
		{"allowed: one list", Query{Allowed: allow("g1")}, "b a"},
		{"allowed: one of two lists", Query{Allowed: allow("g1", "g2")}, "b a c"},
		{"allowed: an unknown value", Query{Allowed: allow("g9")}, ""},
		{"allowed and asked for", Query{Allowed: allow("g2"), Meta: []MetaTest{{Key: "group_id", Contains: []string{"g1"}}}}, "b"},
		{"allowed and by id", Query{ID: "a", Allowed: allow("g2")}, ""},
		{"allowed and sorted", Query{Order: ByID, Desc: true, Allowed: allow("g2")}, "c b"},
		{"allowed and a limit of an order that must be sorted", Query{Order: ByID, Limit: 1, Allowed: allow("g2")}, "b"},
		{"amount of any component", Query{Amounts: []AmountTest{{"Memory", bound(func(r *Range) { r.Equals(4) })}}}, "d b"},
		{"two amounts", Query{Amounts: []AmountTest{{"Memory", Range{}}, {"Cores", bound(func(r *Range) { r.GT(4) })}}}, "b"},
		{"only open", Query{Open: OnlyOpen}, "c"},
		{"only closed", Query{Open: OnlyClosed}, "d b e a"},
		{"running in a window", Query{Running: &Window{t0 + 30*record.Second, t0 + 40*record.Second}}, "a c"},
		{"running before all", Query{Running: &Window{t0, t0 + record.Second}}, ""},
		{"resumed among the open", Query{Resume: &Position{Null: true, Key: math.MaxInt64, Seq: 2}}, "c"},
		{"of an origin", Query{Origin: &slurm}, ""},
		{"after", Query{Order: BySeq, After: 3}, "e c"},
	} {
		if got := strings.Join(ids(t, b, c.q), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestRowsInBlocksAreSelectedLikeLooseOnes(t *testing.T) {
	loose, blocks := few(t), few(t)
	var rs []record.Record
	for i := range 1500 {
		r := sample(fmt.Sprintf("x%d", i), i)
		r.Meta = record.Meta{{Key: "filler", Values: []string{fmt.Sprint(i % 3)}}}
		r.Start, r.Stop = t0+record.Day, t0+2*record.Day
		rs = append(rs, r)
	}
	blocks.post(t0, rs...)
	if len(blocks.s.memory.zones) == 0 || len(blocks.s.memory.waiting) != 0 {
		t.Fatal("the rows are not in blocks")
	}
	for _, q := range []Query{{}, {Order: ByRuntime}, {Desc: true}, {Order: ByID}, {Order: ByMeta, By: "group_id", Desc: true}, {Order: ByAmount, By: "Memory"}, {Order: ByAmount, By: "Cores", Desc: true, Limit: 3}, {Order: ByUsed, By: "Cores", Desc: true},
		{Allowed: allow("g1")}, {Allowed: allow("g2", "g9", "g1")}, {Allowed: [][]MetaTest{}}, {Allowed: allow("g1"), Meta: []MetaTest{{Key: "group_id", Contains: []string{"g2"}}}},
		{Meta: []MetaTest{{Key: "group_id", Contains: []string{"g1"}}}}, {Amounts: []AmountTest{{"Memory", bound(func(r *Range) { r.LTE(4) })}}}} {
		q.Start.LT(int64(t0 + record.Hour))
		if diff := cmp.Diff(ids(t, loose, q), ids(t, blocks, q)); diff != "" {
			t.Errorf("%+v: %s", q, diff)
		}
	}
}

func TestSortBeyondItsMemorySpillsAndCleansUp(t *testing.T) {
	b := newBox(t)
	b.o.SortBytes, b.o.SpillDir = 10_000, t.TempDir()
	b.restart()
	var rs []record.Record
	for i := range 2500 {
		r := sample(fmt.Sprintf("x%04d", i), i)
		r.Stop = r.Start + record.Time((i*7919)%2500)*record.Second
		rs = append(rs, r)
	}
	b.post(t0, rs...)
	got := ids(t, b, Query{Order: ByRuntime, Desc: true})
	if len(got) != 2500 || got[0] != rs[indexOfRuntime(rs, 2499)].ID {
		t.Fatal(len(got), got[0])
	}
	limited := ids(t, b, Query{Order: ByRuntime, Desc: true, Limit: maxHeap + 1})
	if diff := cmp.Diff(got, limited); diff != "" {
		t.Error("with a limit it is another order")
	}
	if names, err := os.ReadDir(b.o.SpillDir); err != nil || len(names) != 0 {
		t.Error("left over:", names, err)
	}
}

// A limit beyond the heap sorts only the rows that can be among the first.
func TestSort_LimitBeyondTheHeap_SortsWhatCanBeFirst(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.o.SortBytes, b.o.SpillDir = 64<<20, t.TempDir()
	b.restart()
	const n = 3 * maxHeap
	var rs []record.Record
	for i := range n {
		r := sample(fmt.Sprintf("x%05d", i), i)
		r.Stop = r.Start + record.Time((i*7919)%n)*record.Second
		rs = append(rs, r)
	}
	for part := range slices.Chunk(rs, 4000) {
		b.post(t0, part...)
	}
	for _, desc := range []bool{true, false} {
		for _, limit := range []int{maxHeap + 1, 2 * maxHeap, n - 1, n, n + 1} {
			got := ids(t, b, Query{Order: ByRuntime, Desc: desc, Limit: limit})
			if len(got) != min(limit, n) {
				t.Fatalf("limit %d: %d rows", limit, len(got))
			}
			for place, id := range got {
				want := place
				if desc {
					want = n - 1 - place
				}
				i, _ := strconv.Atoi(id[1:])
				if (i*7919)%n != want {
					t.Fatalf("limit %d: %s in place %d", limit, id, place)
				}
			}
		}
	}
	b.o.SortBytes = 2 << 20 // for 4 000 rows or so: what is sorted spills, and less than all does
	b.restart()
	if got := ids(t, b, Query{Order: ByRuntime, Desc: true, Limit: maxHeap + 1}); len(got) != maxHeap+1 {
		t.Error(len(got))
	}
}

// pages reads all rows of a query page by page, and counts the pages that a walk may find.
func pages(t *testing.T, b *box, q Query) (list []string, walked int) {
	t.Helper()
	b.view(func(v *View) {
		for more := true; more; {
			p, err := v.planQuery(&q)
			if err != nil {
				t.Fatal(err)
			}
			if (&run{view: v, plan: p}).mayWalkIndex() {
				walked++
			}
			more = false
			err = v.Query(t.Context(), q, func(row *columns.Row) error {
				list = append(list, row.Record.ID)
				at := q.PositionOf(row)
				q.Resume, more = &at, true
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	return list, walked
}

func TestQuery_PagesInTheOrderOfIDs_AreThoseOfAllRows(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	n := max(1600, racetest.Few(6000))
	var rs []record.Record
	for k := range n {
		i := k * 7919 % n
		r := sample(fmt.Sprintf("x%d", i), i)
		if i%50 == 0 {
			r.Stop = record.None
		}
		rs = append(rs, r)
	}
	for part := range slices.Chunk(rs, 1500) {
		b.post(t0, part...)
	}
	for i := range 40 {
		b.apply(&DeleteCommand{IDs: []string{fmt.Sprintf("x%d", i*97)}, By: "ann", Now: t0})
	}
	for _, q := range []Query{{}, {Meta: []MetaTest{{Key: "group_id", Contains: []string{"g3"}}}}, {Meta: []MetaTest{{Key: "user_id", Contains: []string{"u30"}}}}, {Open: OnlyOpen}, {Open: OnlyClosed}} {
		for _, desc := range []bool{false, true} {
			q.Order, q.Desc, q.Limit, q.Resume = ByID, desc, 0, nil
			want := ids(t, b, q)
			for _, limit := range []int{3, 8, 700} {
				q.Limit = limit
				got, walked := pages(t, b, q)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%+v: %s", q, diff)
				}
				if limit == 3 && walked == 0 || limit == 700 && walked > 0 {
					t.Errorf("%+v: %d pages may be found by a walk", q, walked)
				}
			}
		}
	}
}

func TestQuery_PagesOfAnyOrder_AreThoseOfAllRows(t *testing.T) {
	b := newBox(t)
	var rs []record.Record
	for i := range 3000 {
		r := sample(fmt.Sprintf("x%d", i*7919%3000), i)
		if i%7 == 0 {
			r.Meta, r.Components = nil, nil
		}
		if i%50 == 0 {
			r.Stop = record.None
		}
		rs = append(rs, r)
	}
	for part := range slices.Chunk(rs, 700) {
		b.post(t0, part...)
	}
	for _, q := range []Query{{Order: ByMeta, By: "group_id"}, {Order: ByMeta, By: "user_id"}, {Order: ByAmount, By: "Cores"}, {Order: ByAmount, By: "nothing"}, {Order: ByUsed, By: "Cores"}, {Order: ByRuntime}} {
		for _, q.Desc = range []bool{false, true} {
			q.Limit, q.Resume = 0, nil
			want := ids(t, b, q)
			if q.Limit = 170; len(want) != 3000 {
				t.Fatalf("%+v: %d rows", q, len(want))
			}
			if got, _ := pages(t, b, q); !slices.Equal(got, want) {
				t.Errorf("%+v: pages have other rows than the whole: %d of %d", q, len(got), len(want))
			}
		}
	}
}

func indexOfRuntime(rs []record.Record, seconds int64) int {
	for i := range rs {
		if s, _ := rs[i].Runtime(); s == seconds {
			return i
		}
	}
	return -1
}

func TestBadQueryIsAnError(t *testing.T) {
	b := few(t)
	b.view(func(v *View) {
		for _, q := range []Query{{Order: 9}, {Order: ByMeta}, {By: "user_id"}, {Order: ByAmount, By: "Cores", Resume: &Position{Order: ByAmount, By: "GPUs"}}, {Limit: -1}, {Resume: &Position{Order: ByID}}, {Resume: &Position{Desc: true}}} {
			if err := v.Query(context.Background(), q, func(*columns.Row) error { return nil }); !errors.Is(err, ErrQuery) {
				t.Errorf("%+v: %v", q, err)
			}
		}
	})
}

func TestQueryEndsWithItsContext(t *testing.T) {
	b := newBox(t)
	var rs []record.Record
	for i := range 3000 {
		rs = append(rs, sample(fmt.Sprint("x", i), i))
	}
	b.post(t0, rs...)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b.view(func(v *View) {
		for _, q := range []Query{{}, {Order: ByRuntime}, {Order: ByRuntime, Limit: 3}} {
			if err := v.Query(ctx, q, func(*columns.Row) error { return nil }); !errors.Is(err, context.Canceled) {
				t.Errorf("%+v: %v", q, err)
			}
		}
	})
}

func TestDiskErrorIsAnErrorAndNeverAShortList(t *testing.T) {
	b := newBox(t)
	var broken atomic.Bool
	bad := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return errors.New("the disk is gone")
		}
		return nil
	})
	b.o.FS = errorfs.Wrap(vfs.NewMem(), bad)
	b.o.MemTableBytes, b.o.CacheBytes = 16<<10, 64<<10 // a block does not stay in memory when Open has looked at it
	b.s.Close()
	b.open()
	var rs []record.Record
	for i := range 12_000 { // too many to be read along with what Open reads
		r := sample(fmt.Sprintf("x%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)})), i)
		rs = append(rs, r)
	}
	for part := range slices.Chunk(rs, 4000) {
		b.post(t0, part...)
	}
	if err := b.s.Compact(); err != nil {
		t.Fatal(err)
	}
	b.restart()
	broken.Store(true)
	defer broken.Store(false)
	b.view(func(v *View) {
		for _, q := range []Query{{}, {Order: ByRuntime}, {Order: ByID, Limit: 3}, {Meta: []MetaTest{{Key: "group_id", Contains: []string{"g1"}}}}} {
			n := 0
			if err := v.Query(context.Background(), q, func(*columns.Row) error { n++; return nil }); err == nil {
				t.Errorf("%+v: %d rows and no error", q, n)
			}
		}
		if _, ok, err := v.Get(rs[7].ID); err == nil {
			t.Error("found:", ok)
		}
	})
}

func TestMetaCountsCountEveryValueOfShownRecords(t *testing.T) {
	b := few(t)
	want := map[string]uint64{"g1": 2, "g2": 2}
	count := func() (got map[string]uint64) {
		b.view(func(v *View) {
			var err error
			if got, err = v.MetaCounts(context.Background(), "group_id"); err != nil {
				t.Fatal(err)
			}
		})
		return got
	}
	if diff := cmp.Diff(want, count()); diff != "" {
		t.Error(diff)
	}
	var rs []record.Record
	for i := range 3000 {
		r := sample(fmt.Sprint("x", i), i)
		r.Meta = record.Meta{{Key: "comment", Values: []string{fmt.Sprint("only ", i)}}, {Key: "group_id", Values: []string{"g1", "h" + fmt.Sprint(i%2)}}}
		rs = append(rs, r)
	}
	b.post(t0, rs...)
	b.apply(&DeleteCommand{IDs: []string{"x0", "a"}, Now: t0})
	want = map[string]uint64{"g1": 3000, "g2": 2, "h0": 1499, "h1": 1500}
	if diff := cmp.Diff(want, count()); diff != "" {
		t.Error(diff)
	}
	b.view(func(v *View) {
		got, err := v.MetaCounts(context.Background(), "comment")
		if err != nil || len(got) != 2999 {
			t.Error(len(got), err)
		}
	})
}

func TestViewStaysWhatItWasWhileCommandsAreApplied(t *testing.T) {
	b := newBox(t)
	var ws []record.Write
	for i := range 2000 {
		ws = append(ws, put(sample(fmt.Sprint("x", i), i), 1))
	}
	b.ingest("head1", t0, ws...)
	b.post(t0, sample("loose", 1))
	v, err := b.s.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	done := make(chan error)
	go func() {
		for range 20 {
			n := 0
			if err := v.Query(context.Background(), Query{}, func(*columns.Row) error { n++; return nil }); err != nil || n != 2001 {
				done <- fmt.Errorf("%d rows, %w", n, err)
				return
			}
		}
		done <- nil
	}()
	for i := range 100 {
		b.apply(&DeleteCommand{IDs: []string{fmt.Sprint("x", i*3), "loose"}, Now: t0})
		b.post(t0, sample(fmt.Sprint("new", i), i))
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if v.Count() != 2001 {
		t.Error(v.Count())
	}
}

func TestClosedStoreSaysSo(t *testing.T) {
	b := newBox(t)
	b.s.Close()
	if _, err := b.s.View(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := b.s.Apply(1, 1, Encode(&HashCheckCommand{})); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := b.s.Close(); err != nil {
		t.Error(err)
	}
}

func TestMetricsShowWhatIsHeldAndWhatBecameOfWrites(t *testing.T) {
	reg := prometheus.NewRegistry()
	b := newBox(t)
	b.o.Registerer = reg
	b.restart()
	b.restart()
	b.ingest("head1", t0, put(sample("a", 1), 1), put(sample("a", 1), 1))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range families {
		got[f.GetName()] = len(f.GetMetric())
		if f.GetName() == "bursar_store_records" && f.GetMetric()[0].GetGauge().GetValue() != 1 {
			t.Error(f)
		}
	}
	if got["bursar_store_records"] != 1 || got["bursar_store_writes_total"] != 9 || got["bursar_store_disk_bytes"] != 1 {
		t.Error(got)
	}
}
