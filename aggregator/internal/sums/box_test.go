package sums

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// t0 is 2026-03-27T00:00:00Z.
const t0 = record.Time(1774569600) * record.Second

// box is a store that a site writes to.
type box struct {
	t      testing.TB
	fs     vfs.FS
	store  *store.Store
	index  uint64
	cursor *store.Cursor
	rng    *rand.Rand
	ids    int
	seen   int64
	span   record.Time // in which records start
	ends   *rand.Rand  // of how runs end; nil: that is not known
	parts  *rand.Rand  // of which records are parts of runs; nil: none
}

func newBox(t testing.TB, seed uint64) *box {
	b := &box{t: t, fs: vfs.NewMem(), rng: rand.New(rand.NewPCG(seed, 7)), parts: rand.New(rand.NewPCG(seed, 9)), span: 20 * record.Day}
	if seed%2 == 1 {
		b.ends = rand.New(rand.NewPCG(seed, 8))
	}
	b.open()
	t.Cleanup(func() {
		if err := b.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *box) open() {
	s, err := store.Open(store.Options{Dir: "/store", FS: b.fs, MemTableBytes: 1 << 20})
	if err != nil {
		b.t.Fatal(err)
	}
	b.store = s
}

func (b *box) View() (*store.View, error) { return b.store.View() }

func (b *box) apply(c store.Command) any {
	b.t.Helper()
	b.index++
	r, err := b.store.Apply(b.index, 1, store.Encode(c))
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func source() record.Origin { return record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"} }

// ingest sends writes as the next frames of an agent.
func (b *box) ingest(complete record.Time, writes ...record.Write) {
	b.t.Helper()
	c := &store.IngestCommand{Agent: "head1", Now: t0, Epoch: store.Epoch{1}}
	if b.cursor == nil {
		c.Begin, b.cursor = &store.Begin{}, &store.Cursor{}
	}
	c.Before = b.cursor.Digest
	c.From, c.To = b.cursor.Seq+1, b.cursor.Seq+uint64(len(writes))
	c.After = store.Chain{byte(c.To), byte(c.To >> 8), byte(c.To >> 16)}
	rows := columns.NewBuilder()
	for _, w := range writes {
		if w.Op != record.OpPut {
			c.Writes = append(c.Writes, w)
			continue
		}
		rows.Add(&columns.Row{Record: *w.Record, Origin: w.Origin, Rank: w.Rank, Version: w.Version, Stop: record.None})
	}
	if rows.Len() > 0 {
		c.Rows = rows.Bytes()
	}
	if complete != record.None {
		c.Watermarks = []store.Watermark{{Source: source(), CompleteTo: complete}}
	}
	r, ok := b.apply(c).(store.IngestResult)
	if !ok || !r.Accepted {
		b.t.Fatalf("not accepted: %+v", r)
	}
	*b.cursor = r.Cursor
}

func (b *box) post(rs ...record.Record) {
	rows := columns.NewBuilder()
	for _, r := range rs {
		rows.Add(&columns.Row{Record: r, Rank: record.RankPush, Stop: record.None})
	}
	b.apply(&store.PostCommand{Rows: rows.Bytes(), Now: t0})
}

func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// record makes one up; odd ones are not rare.
func (b *box) record(id string) record.Record {
	rng := b.rng
	start := t0 + record.Time(rng.Int64N(int64(b.span)))
	if rng.IntN(6) == 0 {
		start -= start % record.Day
	}
	stop := start + record.Time(rng.Int64N(int64(pick(rng, record.Hour, record.Day, 9*record.Day))))
	switch rng.IntN(12) {
	case 0:
		stop -= stop % record.Day // may be before the start
	case 1:
		stop = start
	case 2:
		stop = record.None
	case 3:
		stop = start + 3000*record.Day
	}
	r := record.Record{ID: id, Start: start, Stop: stop, Submit: record.None, Meta: b.meta(), Components: b.components()}
	if rng.IntN(2) == 0 {
		r.Submit = start - record.Time(rng.Int64N(int64(pick(rng, record.Hour, 3*record.Day)))) + record.Minute
	}
	if b.ends != nil {
		b.end(&r)
	}
	return r
}

// end makes up how a run ended; some records have meta keys of these names.
func (b *box) end(r *record.Record) {
	r.State = pick(b.ends, "", "COMPLETED", "FAILED")
	if b.ends.IntN(3) > 0 {
		r.Exit = record.Exit{Known: true, Code: b.ends.Int32N(2), Signal: 9 * b.ends.Int32N(2)}
	}
	for _, key := range record.EndKeys() {
		if b.parts != nil && b.ends.IntN(9) == 0 {
			r.Meta = append(r.Meta, record.MetaEntry{Key: key, Values: pick(b.ends, nil, []string{"FAILED"}, []string{"1", "2"})})
		}
	}
	r.Meta.Sorted()
}

func (b *box) meta() record.Meta {
	var m record.Meta
	for key, n := range map[string]int{"site": 2, "group": 3, "user": 8, "note": 3} {
		switch b.rng.IntN(9) {
		case 0:
		default:
			m = append(m, record.MetaEntry{Key: key, Values: []string{fmt.Sprint(key, b.rng.IntN(n))}})
		}
	}
	if b.parts != nil && b.parts.IntN(4) == 0 {
		m = append(m, record.MetaEntry{Key: record.PartKey, Values: []string{"slave"}})
	}
	return m.Sorted()
}

func (b *box) components() []record.Component {
	rng := b.rng
	cs := []record.Component{{Name: "Cores", Amount: rng.Int64N(64), Scores: []record.Score{{Name: "HEPScore23", Value: pick(rng, 10, 21.5)}}}}
	if rng.IntN(3) > 0 {
		cs = append(cs, record.Component{Name: "TotalCPU", Amount: rng.Int64N(1 << 40), Kind: record.Total})
	}
	if rng.IntN(3) == 0 {
		cs = append(cs, record.Component{Name: "Memory", Amount: rng.Int64N(1 << 50)})
	}
	if rng.IntN(9) == 0 {
		cs = cs[1:]
	}
	return cs
}

func (b *box) put(id string) record.Write {
	r := b.record(id)
	b.seen++
	return record.Write{
		Op: record.OpPut, ID: id, Origin: source(), Rank: record.RankScheduler, Record: &r,
		Version: record.Version{Ended: r.Stop != record.None, Observed: b.seen},
	}
}

func (b *box) some() string { return fmt.Sprint("job-", b.rng.IntN(b.ids+1)) }

func (b *box) next() string {
	b.ids++
	return fmt.Sprint("job-", b.ids)
}

// step does something that happens at a site.
func (b *box) step() {
	switch b.rng.IntN(9) {
	case 0:
		var ws []record.Write
		for range 1100 {
			ws = append(ws, b.put(b.next()))
		}
		b.ingest(record.None, ws...)
	case 1:
		b.apply(&store.DeleteCommand{IDs: []string{b.some(), b.some()}, Now: t0})
	case 2:
		b.apply(&store.PutStopCommand{ID: b.some(), Stop: t0 + 5*record.Day, Now: t0})
	case 3:
		b.post(b.record(b.next()), b.record(b.next()))
	case 4:
		b.seen++
		b.ingest(record.None, record.Write{Op: record.OpWithdraw, ID: b.some(), Origin: source(), Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: b.seen}})
	case 5:
		b.ingest(t0+record.Time(b.rng.Int64N(int64(20*record.Day))), b.put(b.some()))
	default:
		b.ingest(record.None, b.put(b.some()), b.put(b.next()))
	}
}

func (b *box) follow(x *Index) {
	b.t.Helper()
	if err := x.Follow(context.Background()); err != nil {
		b.t.Fatal(err)
	}
}

func newIndex(t testing.TB, o Options, dimensions []string) *Index {
	t.Helper()
	x, err := NewIndex(o, dimensions)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
