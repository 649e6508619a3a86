package access_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// box is a store with records of sites: a1 and a2 of site a, b1 of b, ab of both,
// no of none; a2 and b1 have a group each.
type box struct {
	t     *testing.T
	store *store.Store
	index uint64
}

func newBox(t *testing.T) *box {
	t.Helper()
	s, err := store.Open(store.Options{Dir: "/store", FS: vfs.NewMem(), MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &box{t: t, store: s}
	b.post("a1", record.Meta{{Key: "site", Values: []string{"a"}}})
	b.post("a2", record.Meta{{Key: "group", Values: []string{"g"}}, {Key: "site", Values: []string{"a"}}})
	b.post("b1", record.Meta{{Key: "group", Values: []string{"h"}}, {Key: "site", Values: []string{"b"}}})
	b.post("ab", record.Meta{{Key: "site", Values: []string{"a", "b"}}})
	b.post("no", nil)
	return b
}

func (b *box) apply(c store.Command) {
	b.t.Helper()
	b.index++
	if _, err := b.store.Apply(b.index, 1, store.Encode(c)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) post(id string, meta record.Meta) {
	b.t.Helper()
	w := columns.NewBuilder()
	w.Add(&columns.Row{Record: record.Record{ID: id, Start: 1e15, Stop: 2e15, Submit: record.None, Meta: meta}, Rank: record.RankPush, Stop: record.None})
	b.apply(&store.PostCommand{Rows: w.Bytes(), Now: 3e15})
}

// view is what a reader with these rows sees.
func (b *box) view(rows access.Rows) *access.View {
	b.t.Helper()
	return b.as(access.Principal{Name: "reader", Rights: identity.Read, Rows: rows})
}

func (b *box) as(p access.Principal) *access.View {
	b.t.Helper()
	v, err := b.store.View()
	if err != nil {
		b.t.Fatal(err)
	}
	out := access.NewView(v, p)
	b.t.Cleanup(func() {
		if err := out.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return out
}

func (b *box) ids(v *access.View, q store.Query) []string {
	b.t.Helper()
	ids := []string{}
	err := v.Query(context.Background(), q, func(row *columns.Row) error {
		id := row.Record.ID
		if row.Tombstone {
			id = "-" + id
		}
		ids = append(ids, id)
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return ids
}

func site(values ...string) access.Grant { return access.Grant{"site": values} }

func filters() []struct {
	name string
	rows access.Rows
	want []string
} {
	return []struct {
		name string
		rows access.Rows
		want []string
	}{
		{"all", access.AllRows(), []string{"a1", "a2", "b1", "ab", "no"}},
		{"the zero value is none", access.Rows{}, []string{}},
		{"no grant is none", access.SomeRows(), []string{}},
		{"a grant without keys gives none", access.SomeRows(access.Grant{}), []string{}},
		{"a key without values gives none", access.SomeRows(access.Grant{"site": nil}), []string{}},
		{"one value", access.SomeRows(site("b")), []string{"b1", "ab"}},
		{"one of the values of a key", access.SomeRows(site("a", "b")), []string{"a1", "a2", "b1", "ab"}},
		{"all keys of a grant", access.SomeRows(access.Grant{"site": {"a", "b"}, "group": {"g", "x"}}), []string{"a2"}},
		{"one of the grants", access.SomeRows(access.Grant{"group": {"g"}}, site("b")), []string{"a2", "b1", "ab"}},
		{"an unknown value", access.SomeRows(site("z")), []string{}},
	}
}

func TestAReaderSeesItsRowsInEveryOrderPageAndLookup(t *testing.T) {
	b := newBox(t)
	for _, c := range filters() {
		v := b.view(c.rows)
		for _, order := range []store.Order{store.ByStop, store.ByStart, store.ByRuntime, store.BySeq} {
			if got := b.ids(v, store.Query{Order: order}); !slices.Equal(got, c.want) {
				t.Errorf("%s, order %d: %v, want %v", c.name, order, got, c.want)
			}
		}
		for _, id := range []string{"a1", "a2", "b1", "ab", "no"} {
			seen := slices.Contains(c.want, id)
			if _, ok, err := v.Get(id); err != nil || ok != seen {
				t.Errorf("%s: get %s: %v, %v", c.name, id, ok, err)
			}
			if e, err := v.Entry(id); err != nil || (len(e.Holdings) > 0) != seen {
				t.Errorf("%s: entry %s: %v, %v", c.name, id, e, err)
			}
			if got := b.ids(v, store.Query{ID: id}); (len(got) == 1) != seen {
				t.Errorf("%s: query by id %s: %v", c.name, id, got)
			}
		}
		scanned := []string{}
		if err := v.Scan(context.Background(), store.Query{Tombstones: true}, func() store.Scanner {
			return store.Scanner{Loose: func(row *columns.Row) error {
				scanned = append(scanned, row.Record.ID)
				return nil
			}}
		}); err != nil || !slices.Equal(scanned, c.want) {
			t.Errorf("%s: a scan has %v, %v", c.name, scanned, err)
		}
		if n, err := v.Count(); c.rows.All() && (err != nil || int(n) != len(c.want)) || !c.rows.All() && !errors.Is(err, access.ErrRows) {
			t.Errorf("%s: count %d, %v", c.name, n, err)
		}
		pages := []string{}
		q := store.Query{Limit: 1}
		for range 6 {
			err := v.Query(context.Background(), q, func(row *columns.Row) error {
				pages = append(pages, row.Record.ID)
				at := q.PositionOf(row)
				q.Resume = &at
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(pages, c.want) {
			t.Errorf("%s: page by page %v, want %v", c.name, pages, c.want)
		}
	}
}

func TestAFilterOfAReaderNarrowsWhatItAsksForAndCannotBeLifted(t *testing.T) {
	b := newBox(t)
	v := b.view(access.SomeRows(site("a")))
	for _, c := range []struct {
		name string
		q    store.Query
		want []string
	}{
		{"another's site", store.Query{Meta: []store.MetaTest{{Key: "site", Contains: []string{"b"}}}}, []string{"ab"}},
		{"its own filter is replaced", store.Query{Allowed: [][]store.MetaTest{{{Key: "site", Any: []string{"b"}}}}}, []string{"a1", "a2", "ab"}},
		{"superseded rows", store.Query{Superseded: true, Order: store.BySeq}, []string{"a1", "a2", "ab"}},
	} {
		if got := b.ids(v, c.q); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTheFeedOfAReaderTellsWhatWentAndNothingOfOthers(t *testing.T) {
	b := newBox(t)
	v := b.view(access.SomeRows(site("a")))
	all := store.Query{Order: store.BySeq, Tombstones: true}
	if got := b.ids(v, all); !slices.Equal(got, []string{"a1", "a2", "ab"}) {
		t.Errorf("at first: %v", got)
	}
	after := v.Seq()
	b.apply(&store.DeleteCommand{IDs: []string{"a1"}, By: "x", Now: 4e15})
	b.apply(&store.DeleteCommand{IDs: []string{"b1"}, By: "x", Now: 4e15})
	later := b.view(access.SomeRows(site("a")))
	all.After = after
	if got := b.ids(later, all); !slices.Equal(got, []string{"-a1"}) {
		t.Errorf("after the deletions: %v, want a1 gone and nothing of b1", got)
	}
	if e, err := later.Entry("b1"); err != nil || e.Deleted {
		t.Errorf("another's deletion shows: %+v, %v", e, err)
	}
}

func TestWhatIsAboutAllRecordsIsNotShownInPart(t *testing.T) {
	b := newBox(t)
	v := b.view(access.SomeRows(site("a")))
	_, figures := v.Figures()
	_, agents := v.Agents()
	_, counters := v.Counters()
	_, counts := v.MetaCounts(context.Background(), "site")
	_, _, one := v.Quarantined(record.Origin{}, "x")
	for name, err := range map[string]error{
		"figures": figures, "agents": agents, "counters": counters, "counts": counts, "quarantined": one,
		"quarantine": v.Quarantine(func(*store.Quarantined) error { return nil }), "waiting": v.WaitingStops(func(*record.Entry) error { return nil }),
	} {
		if !errors.Is(err, access.ErrRows) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhoHasNoRoleToReadSeesNoRecordEvenWithAView(t *testing.T) {
	b := newBox(t)
	for _, p := range []access.Principal{{}, {Rights: identity.Write, Rows: access.AllRows()}, {Rights: identity.Monitor, Rows: access.AllRows()}} {
		v := b.as(p)
		_, _, get := v.Get("a1")
		_, entry := v.Entry("a1")
		for name, err := range map[string]error{
			"get": get, "entry": entry,
			"query":     v.Query(context.Background(), store.Query{}, func(*columns.Row) error { return nil }),
			"scan":      v.Scan(context.Background(), store.Query{}, func() store.Scanner { return store.Scanner{} }),
			"open":      v.OpenRecords(context.Background(), func(*columns.Row) error { return nil }),
			"conflicts": v.Conflicts(func(*record.Entry) error { return nil }),
		} {
			if !errors.Is(err, access.ErrDenied) {
				t.Errorf("%s by %s: %v", name, p.Rights, err)
			}
		}
	}
}

func TestWhoMaySeeFiguresIsKnownWithoutThem(t *testing.T) {
	b := newBox(t)
	for _, rights := range []identity.Rights{0, identity.Write, identity.Read, identity.Monitor, identity.Read | identity.Monitor} {
		for _, rows := range []access.Rows{access.AllRows(), access.SomeRows(site("a"))} {
			v := b.as(access.Principal{Name: "somebody", Rights: rights, Rows: rows})
			_, figures := v.Figures()
			if may := v.MayFigures(); !errors.Is(may, figures) {
				t.Errorf("%s, all %t: %v, and the figures come with %v", rights, rows.All(), may, figures)
			}
		}
	}
}
