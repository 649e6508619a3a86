package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
	"pgregory.net/rapid"
)

// model is the obvious store: a map of entries.
type model struct {
	entries map[string]*record.Entry
	clock   int64
}

func newModel() *model { return &model{entries: map[string]*record.Entry{}} }

func (m *model) entry(id string) *record.Entry {
	if m.entries[id] == nil {
		m.entries[id] = &record.Entry{ID: id}
	}
	return m.entries[id]
}

// take merges a write where it belongs.
func (m *model) take(w record.Write) {
	w.ID = record.Locate(&w, func(id string) *record.Entry { return m.entries[id] })
	if w.Op == record.OpPut {
		r := *w.Record
		r.ID, w.Record = w.ID, &r
	}
	m.entry(w.ID).Merge(w)
}

func (m *model) shown() (list []record.Record) {
	for _, e := range m.entries {
		if r := e.Shown(); r != nil {
			list = append(list, *r)
		}
	}
	return list
}

// machine drives a store and the model with random commands.
type machine struct {
	*box
	m     *model
	now   record.Time
	bulks int
}

func (m *machine) id(t *rapid.T) string {
	return fmt.Sprintf("job-%d", rapid.IntRange(0, 40).Draw(t, "id"))
}

func (m *machine) record(t *rapid.T) record.Record {
	r := sample(m.id(t), rapid.IntRange(0, 8).Draw(t, "k"))
	if rapid.IntRange(0, 3).Draw(t, "open") == 0 {
		r.Stop = record.None
	}
	if r.Submit = record.None; rapid.Bool().Draw(t, "submitted") {
		r.Submit = r.Start - record.Time(rapid.IntRange(0, 2).Draw(t, "wait"))*record.Minute
	}
	r.State = rapid.SampledFrom([]string{"", "COMPLETED", "FAILED"}).Draw(t, "state")
	if rapid.Bool().Draw(t, "exited") {
		r.Exit = record.Exit{Known: true, Code: int32(rapid.IntRange(0, 2).Draw(t, "exit"))}
	}
	if rapid.IntRange(0, 5).Draw(t, "own") == 0 {
		r.Meta = append(r.Meta, record.MetaEntry{Key: "state", Values: []string{"FAILED", "x"}}).Sorted()
	}
	return r
}

func (m *machine) write(t *rapid.T) record.Write {
	o := rapid.SampledFrom([]record.Origin{slurm, {Agent: "head1", Type: "epilog", Label: "nemo"}, record.Pushed}).Draw(t, "origin")
	rank := map[string]record.Rank{"slurm": record.RankScheduler, "epilog": record.RankEpilog, "": record.RankPush}[o.Type]
	obs := int64(rapid.IntRange(1, 30).Draw(t, "observed"))
	switch rapid.IntRange(0, 9).Draw(t, "op") {
	case 0:
		r := m.record(t)
		return record.Write{ID: r.ID, Op: record.OpWithdraw, Origin: o, Rank: rank, Version: record.Version{Ended: true, Observed: obs},
			Record: &record.Record{ID: r.ID, Start: r.Start, Stop: record.None, Submit: r.Submit}}
	case 1:
		stop := t0 + record.Time(rapid.IntRange(0, 9).Draw(t, "stop"))*record.Minute
		return record.Write{ID: m.id(t), Op: record.OpStop, Origin: record.Pushed, Rank: record.RankPush,
			Version: record.Version{Ended: true, Observed: obs}, Stop: stop}
	}
	r := m.record(t)
	return record.Write{ID: r.ID, Op: record.OpPut, Origin: o, Rank: rank, Version: record.Version{Ended: !r.Open(), Observed: obs}, Record: &r}
}

func (m *machine) Ingest(t *rapid.T) {
	writes := rapid.SliceOfN(rapid.Custom(m.write), 1, 8).Draw(t, "writes")
	reused := rapid.Bool().Draw(t, "reused")
	for i := range writes {
		writes[i].IDReused = reused && !writes[i].Origin.IsPushed()
	}
	got := m.ingest("head1", m.tick(), writes...)
	for _, puts := range []bool{true, false} { // the store takes the puts first
		for _, w := range writes {
			if (w.Op == record.OpPut) == puts {
				m.m.take(w)
			}
		}
	}
	if got.Counts.Pulled != int64(len(writes)) || !got.Counts.Conserved() {
		t.Fatalf("%d writes, counts %+v", len(writes), got.Counts)
	}
}

// Bulk sends many records that are new and some that are not.
// maxBulks bounds the rows that are looked at after each step.
const maxBulks = 4

func (m *machine) Bulk(t *rapid.T) {
	if m.bulks == maxBulks {
		t.Skip("there are enough rows")
	}
	m.bulks++
	n := rapid.IntRange(1000, 1100).Draw(t, "rows")
	base := len(m.m.entries) + 1000
	var writes []record.Write
	for i := range n {
		r := sample(fmt.Sprintf("job-%d", base+i), i)
		if i%50 == 0 {
			r.ID = m.id(t)
		}
		if i%70 == 0 {
			r.Stop = record.None
		}
		writes = append(writes, put(r, int64(1+i%30)))
	}
	m.ingest("head1", m.tick(), writes...)
	for _, w := range writes {
		m.m.entry(w.ID).Merge(w)
	}
}

func (m *machine) tick() record.Time {
	m.now += record.Second
	return m.now
}

func (m *machine) observed() int64 {
	m.m.clock = max(m.m.clock+1, int64(m.now))
	return m.m.clock
}

func (m *machine) Post(t *rapid.T) {
	rs := rapid.SliceOfN(rapid.Custom(m.record), 1, 4).Draw(t, "records")
	ignore := rapid.Bool().Draw(t, "ignore")
	got := m.apply(&PostCommand{Rows: postRows(rs...), IgnoreExisting: ignore, Now: m.tick()}).(PostResult)
	m.posted(t, rs, ignore, got)
}

// BulkPost posts what goes into blocks at once, with some ids that are known or come twice.
func (m *machine) BulkPost(t *rapid.T) {
	if m.bulks == maxBulks {
		t.Skip("there are enough rows")
	}
	m.bulks++
	base := len(m.m.entries) + 1000
	var rs []record.Record
	for i := range rapid.IntRange(900, 1100).Draw(t, "rows") {
		r := sample(fmt.Sprintf("job-%d", base+i), i)
		if i%150 == 0 {
			r.ID = m.id(t)
		}
		if i%70 == 0 {
			r.Stop = record.None
		}
		rs = append(rs, r)
	}
	ignore := rapid.Bool().Draw(t, "ignore")
	got := m.apply(&PostCommand{Rows: postRows(rs...), IgnoreExisting: ignore, Now: m.tick()}).(PostResult)
	m.posted(t, rs, ignore, got)
}

func (m *machine) Staged(t *rapid.T) {
	rs := rapid.SliceOfN(rapid.Custom(m.record), 2, 6).Draw(t, "records")
	ignore := rapid.Bool().Draw(t, "ignore")
	u := Upload{byte(len(m.log)), byte(len(m.log) >> 8)}
	m.apply(&StageCommand{Upload: u, Part: 1, Rows: postRows(rs[1:]...), Now: m.tick()})
	m.apply(&StageCommand{Upload: u, Part: 0, Rows: postRows(rs[:1]...), Now: m.tick()})
	got := m.apply(&CommitStageCommand{Upload: u, Parts: 2, IgnoreExisting: ignore, Now: m.tick()}).(PostResult)
	m.posted(t, rs, ignore, got)
	again := m.apply(&CommitStageCommand{Upload: u, Parts: 2, Now: m.tick()}).(PostResult)
	if !again.Unknown {
		t.Fatal("an upload was committed twice")
	}
}

func (m *machine) posted(t *rapid.T, rs []record.Record, ignore bool, got PostResult) {
	var existing []string
	var added []*record.Record
	ids := map[string]bool{}
	for i := range rs {
		e := m.m.entry(rs[i].ID)
		if ids[rs[i].ID] || e.Deleted || e.HasBody() {
			existing = append(existing, rs[i].ID)
			continue
		}
		ids[rs[i].ID] = true
		added = append(added, &rs[i])
	}
	if len(existing) > 0 && !ignore {
		added = nil
	}
	for _, r := range added {
		m.m.entry(r.ID).Post(r, m.observed())
	}
	if !slices.Equal(got.Existing, existing) || got.Added != len(added) {
		t.Fatalf("got %+v, want existing %v and %d added", got, existing, len(added))
	}
}

// PutStops puts several stops in one command, and those one by one into the model.
func (m *machine) PutStops(t *rapid.T) {
	c := &PutStopsCommand{Now: m.tick()}
	for range rapid.IntRange(0, 6).Draw(t, "stops") {
		c.Puts = append(c.Puts, PutStop{m.id(t), t0 + record.Time(rapid.IntRange(0, 99).Draw(t, "stop"))*record.Second})
	}
	got := m.apply(c).([]any)
	if len(got) != len(c.Puts) {
		t.Fatalf("%d results of %d stops", len(got), len(c.Puts))
	}
	for i, p := range c.Puts {
		want := m.m.entry(p.ID).PutStop(p.Stop, max(m.m.clock+1, int64(m.now)))
		if want {
			m.observed()
		}
		if got[i] != (PutResult{Found: want}) {
			t.Fatalf("stop of %s: %+v, want %t", p.ID, got[i], want)
		}
	}
}

func (m *machine) PutStop(t *rapid.T) {
	id, stop := m.id(t), t0+record.Time(rapid.IntRange(0, 99).Draw(t, "stop"))*record.Second
	got := m.apply(&PutStopCommand{ID: id, Stop: stop, Now: m.tick()}).(PutResult)
	want := m.m.entry(id).PutStop(stop, max(m.m.clock+1, int64(m.now)))
	if want {
		m.observed()
	}
	if got.Found != want {
		t.Fatalf("found %v, want %v", got.Found, want)
	}
}

func (m *machine) Correct(t *rapid.T) {
	var writes []record.Write
	want := 0
	for range rapid.IntRange(1, 8).Draw(t, "ids") {
		e := m.m.entry(m.id(t))
		h := e.Holding(record.Pushed)
		if h == nil || h.Record == nil {
			writes = append(writes, m.write(t)) // of a body that is not there; mostly of another kind
			continue
		}
		r, _ := record.Kinds{"Cores": record.Kind(rapid.IntRange(0, 1).Draw(t, "kind"))}.Apply(h.Record)
		if w, ok := e.Correction(&r); ok {
			writes = append(writes, w)
		}
	}
	for i := range writes {
		e := m.m.entry(writes[i].ID)
		if h := e.Holding(record.Pushed); writes[i].Op != record.OpPut || !writes[i].Origin.IsPushed() || h == nil || h.Record == nil {
			continue
		}
		if o := e.Merge(writes[i]); o == record.Merged || o == record.Conflicting {
			want++
		}
	}
	if got := m.apply(&CorrectCommand{Writes: writes, Now: m.tick()}).(DeleteResult); got.Changed != want {
		t.Fatalf("%d were corrected, want %d", got.Changed, want)
	}
}

func (m *machine) Dismiss(t *rapid.T) {
	ids := rapid.SliceOfN(rapid.Custom(m.id), 1, 20).Draw(t, "ids")
	until, want := int64(rapid.IntRange(0, 40).Draw(t, "until")), 0
	for _, id := range ids {
		if m.m.entry(id).DismissStop(until) {
			want++
		}
	}
	if got := m.apply(&DismissStopsCommand{IDs: ids, Until: until}).(DeleteResult); got.Changed != want {
		t.Fatalf("%d were dismissed, want %d", got.Changed, want)
	}
}

func (m *machine) Delete(t *rapid.T) {
	id := m.id(t)
	m.apply(&DeleteCommand{IDs: []string{id}, By: "me", Now: m.tick()})
	if e := m.m.entry(id); !e.Deleted {
		e.Merge(record.Write{ID: id, Op: record.OpDelete})
		e.DeletedAt = m.now
	}
}

// Replace puts a record in the place of one. Where something else is shown by now, is open, or
// the new id is taken, nothing changes.
func (m *machine) Replace(t *rapid.T) {
	id, as := m.id(t), fmt.Sprintf("new-%d", rapid.IntRange(0, 20).Draw(t, "as"))
	by := sample(as, rapid.IntRange(0, 8).Draw(t, "k"))
	var seq uint64
	m.view(func(v *View) {
		if row, ok, err := v.Get(id); err != nil {
			t.Fatal(err)
		} else if ok {
			seq = row.Seq
		}
	})
	lags := rapid.IntRange(0, 3).Draw(t, "lags") == 0
	if lags {
		seq--
	}
	w := record.Write{ID: as, Op: record.OpPut, Origin: record.Origin{Agent: "erased", Type: "erased"}, Rank: record.RankImport, Version: record.Version{Ended: true, Observed: 1}, Record: &by, Stop: record.None}
	result := m.apply(&ReplaceCommand{Replacements: []Replacement{{ID: id, Seq: seq, Write: w}, {ID: id, Seq: seq, Write: w}}, By: "me", Now: m.tick()}).(DeleteResult)
	shown, known := m.m.entry(id).Shown(), m.m.entries[as]
	if lags || shown == nil || shown.Open() || known != nil {
		if result.Changed != 0 {
			t.Fatalf("%s was replaced by %s", id, as)
		}
		return
	}
	if result.Changed != 1 {
		t.Fatalf("%s was not replaced by %s", id, as)
	}
	m.m.entry(as).Merge(w)
	m.m.entry(id).Merge(record.Write{ID: id, Op: record.OpDelete})
	m.m.entry(id).DeletedAt = m.now
}

func (m *machine) Undelete(t *rapid.T) {
	id := m.id(t)
	m.apply(&UndeleteCommand{IDs: []string{id}, By: "me", Now: m.tick()})
	m.m.entry(id).Undelete()
}

func (m *machine) Compact(t *rapid.T) {
	var blocks []uint64
	m.view(func(v *View) {
		for _, k := range v.Candidates(0) {
			blocks = append(blocks, k.First)
		}
	})
	c, _ := drops(m.box, m.now-record.Time(rapid.IntRange(0, 20).Draw(t, "keep"))*record.Second, blocks...)
	m.apply(c)
}

func (m *machine) Restart(t *rapid.T) { m.restart() }

// Check compares the store with the model after every command.
func (m *machine) Check(t *rapid.T) {
	m.view(func(v *View) {
		m.sound(t, v)
		m.sameEntries(t, v)
		m.sameQuery(t, v)
	})
}

func (m *machine) sound(t *rapid.T, v *View) {
	found, err := v.Check(context.Background())
	if err != nil || len(found) > 0 {
		t.Fatalf("check: %v %v", strings.Join(found, "\n"), err)
	}
}

func (m *machine) sameEntries(t *rapid.T, v *View) {
	for i := range 41 {
		id := fmt.Sprintf("job-%d", i)
		want := m.m.entries[id]
		got, err := v.Entry(id)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = &record.Entry{}
		}
		if !sameEntry(&got, want) {
			t.Fatalf("%s\ngot  %+v\nwant %+v", id, got, *want)
		}
	}
}

// sameEntry ignores holdings that hold nothing: a refused write leaves one
// behind in memory.
func sameEntry(a, b *record.Entry) bool {
	full := func(e *record.Entry) []record.Holding {
		return slices.DeleteFunc(slices.Clone(e.Holdings), func(h record.Holding) bool {
			return h.Record == nil && h.Version == record.Version{} && h.Stop == record.None
		})
	}
	return a.Deleted == b.Deleted && slices.EqualFunc(full(a), full(b), func(x, y record.Holding) bool {
		if (x.Record == nil) != (y.Record == nil) || x.Record != nil && !record.Same(x.Record, y.Record) {
			return false
		}
		x.Record, y.Record = nil, nil
		return x == y
	})
}

func (m *machine) query(t *rapid.T) Query {
	q := Query{Order: Order(rapid.IntRange(0, 4).Draw(t, "order")), Desc: rapid.Bool().Draw(t, "desc")}
	if rapid.Bool().Draw(t, "meta") {
		q.Meta = []MetaTest{{Key: "group_id", Contains: []string{fmt.Sprint("g", rapid.IntRange(0, 7).Draw(t, "g"))}}}
	}
	if rapid.Bool().Draw(t, "lacks") {
		q.Meta = append(q.Meta, MetaTest{Key: "user_id", Lacks: []string{"u3"}})
	}
	switch rapid.IntRange(0, 5).Draw(t, "ended") {
	case 0:
		q.Meta = append(q.Meta, MetaTest{Key: "state", Contains: []string{"FAILED"}, OfMeta: rapid.Bool().Draw(t, "of meta")})
	case 1:
		q.Meta = append(q.Meta, MetaTest{Key: "exit_code", Any: []string{"0", "2"}, Lacks: []string{"2"}})
	case 2:
		q.Order, q.By = ByMeta, rapid.SampledFrom([]string{"state", "exit_code"}).Draw(t, "by")
	}
	if rapid.Bool().Draw(t, "allowed") {
		q.Allowed = allow(rapid.SliceOfN(rapid.SampledFrom([]string{"g0", "g1", "g2", "g3"}), 0, 3).Draw(t, "groups")...)
	}
	at := func() int64 { return int64(t0) + int64(rapid.IntRange(0, 1100).Draw(t, "at"))*int64(record.Minute) }
	switch rapid.IntRange(0, 6).Draw(t, "filter") {
	case 0:
		q.Start.GTE(at())
	case 1:
		q.Stop.LT(at())
	case 2:
		q.Runtime.GT(int64(rapid.IntRange(0, 100).Draw(t, "runtime")))
	case 3:
		q.Amounts = []AmountTest{{Name: "Memory"}}
		q.Amounts[0].Amount.Equals(2000)
	case 4:
		q.ID = m.id(t)
	case 5:
		q.Wait.GTE(int64(rapid.IntRange(-1, 60).Draw(t, "waited")))
		q.Wait.LT(int64(rapid.IntRange(60, 130).Draw(t, "waited less")))
	}
	return q
}

func (q *Query) naive(r *record.Record) bool {
	row := &columns.Row{Record: *r, Stop: record.None, Seq: 1}
	return (&plan{Query: q}).matchesRow(row, false)
}

func (m *machine) sameQuery(t *rapid.T, v *View) {
	q := m.query(t)
	m.s.overlap = rapid.SampledFrom([]int{maxOverlap, 0}).Draw(t, "overlap")
	var want []record.Record
	for _, r := range m.m.shown() {
		if q.naive(&r) {
			want = append(want, r)
		}
	}
	got := m.all(t, v, q)
	if len(got) != len(want) {
		t.Fatalf("%+v: got %d rows, want %d", q, len(got), len(want))
	}
	ids := map[string]*record.Record{}
	for i := range want {
		ids[want[i].ID] = &want[i]
	}
	for i := range got {
		shown := got[i].Shown()
		if w := ids[shown.ID]; w == nil || !record.Same(w, &shown) {
			t.Fatalf("%+v: got %+v, want %+v", q, shown, w)
		}
		delete(ids, shown.ID)
		if i > 0 && q.compareKeys(q.keyOf(&got[i-1]), q.keyOf(&got[i])) >= 0 {
			t.Fatalf("%+v: %v comes before %v", q, got[i-1], got[i])
		}
	}
	m.samePages(t, v, q, got)
}

func (m *machine) all(t *rapid.T, v *View, q Query) (rows []columns.Row) {
	err := v.Query(context.Background(), q, func(row *columns.Row) error {
		rows = append(rows, *row)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// samePages reads the same rows page by page.
func (m *machine) samePages(t *rapid.T, v *View, q Query, want []columns.Row) {
	q.Limit = max(1, len(want)/3)
	var got []columns.Row
	for {
		page := m.all(t, v, q)
		got = append(got, page...)
		if len(page) < q.Limit {
			break
		}
		p := q.PositionOf(&page[len(page)-1])
		q.Resume = &p
	}
	if !slices.EqualFunc(got, want, func(a, b columns.Row) bool { return a.Seq == b.Seq && a.Record.ID == b.Record.ID }) {
		t.Fatalf("%+v: pages give %d rows, want %d", q, len(got), len(want))
	}
}

func TestStoreShowsWhatTheModelShows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{box: newBox(t), m: newModel(), now: t0}
		defer m.s.Close()
		m.o.SortBytes = 4 << 10
		m.apply(&SetVersionCommand{Version: rapid.SampledFrom([]uint32{1, 3, CommandFormat}).Draw(rt, "version")})
		rt.Repeat(map[string]func(*rapid.T){"": m.Check, "ingest": m.Ingest, "bulk": m.Bulk, "post": m.Post, "bulk post": m.BulkPost, "staged": m.Staged,
			"stop": m.PutStop, "stops": m.PutStops, "delete": m.Delete, "undelete": m.Undelete, "replace": m.Replace, "compact": m.Compact, "restart": m.Restart})
		m.replay(rt)
	})
}

// replay applies the same log to another store, which must come to the same.
func (m *machine) replay(t *rapid.T) {
	other := newBox(m.t)
	defer other.s.Close()
	for i, data := range m.log {
		if _, err := other.s.Apply(uint64(i+1), 1, data); err != nil {
			t.Fatal(err)
		}
	}
	_, a := m.s.Hash()
	_, b := other.s.Hash()
	if a != b {
		t.Fatalf("hashes differ: %v %v", a, b)
	}
}

var errStop = errors.New("stop")

func TestQueryEndsWithTheErrorOfYield(t *testing.T) {
	b := newBox(t)
	b.post(t0, sample("a", 1), sample("b", 2))
	b.view(func(v *View) {
		n := 0
		err := v.Query(context.Background(), Query{}, func(*columns.Row) error { n++; return errStop })
		if n != 1 || !errors.Is(err, errStop) {
			t.Fatalf("%d rows, %v", n, err)
		}
	})
}
