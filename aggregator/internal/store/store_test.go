package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// box is a store with a log, as the cluster would drive it.
type box struct {
	t     testing.TB
	o     Options
	s     *Store
	log   [][]byte
	agent map[string]*Cursor
}

func newBox(t testing.TB) *box {
	b := &box{t: t, o: Options{Dir: "/store", FS: vfs.NewMem(), MemTableBytes: 1 << 20}, agent: map[string]*Cursor{}}
	b.open()
	t.Cleanup(func() { b.s.Close() })
	return b
}

func (b *box) open() {
	b.t.Helper()
	s, err := Open(b.o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.s = s
}

func (b *box) restart() {
	b.t.Helper()
	if err := b.s.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.open()
}

func (b *box) apply(c Command) any {
	b.t.Helper()
	data := Encode(c)
	b.log = append(b.log, data)
	r, err := b.s.Apply(uint64(len(b.log)), 1, data)
	if err != nil {
		b.t.Fatalf("apply %T: %v", c, err)
	}
	return r
}

// ingest sends writes of an agent as its next frames.
func (b *box) ingest(agent string, now record.Time, writes ...record.Write) IngestResult {
	b.t.Helper()
	cur := b.agent[agent]
	c := &IngestCommand{Agent: agent, Now: now}
	if cur == nil {
		c.Epoch = Epoch{1}
		c.Begin = &Begin{}
		cur = &Cursor{}
	} else {
		c.Epoch, c.Before = cur.Epoch, cur.Digest
	}
	c.From, c.To = cur.Seq+1, cur.Seq+uint64(len(writes))
	c.After = Chain{byte(c.To), byte(c.To >> 8), byte(c.To >> 16)}
	bl := columns.NewBuilder()
	for _, w := range writes {
		if w.IDReused && !slices.Contains(c.Reusing, w.Origin) {
			c.Reusing = append(c.Reusing, w.Origin)
		}
		if w.Op != record.OpPut {
			w.IDReused = false
			c.Writes = append(c.Writes, w)
			continue
		}
		row := columns.Row{Record: *w.Record, Origin: w.Origin, Rank: w.Rank, Version: w.Version, Stop: record.None}
		bl.Add(&row)
	}
	if bl.Len() > 0 {
		c.Rows = bl.Bytes()
	}
	r := b.apply(c).(IngestResult)
	if !r.Accepted {
		b.t.Fatalf("ingest of %s at %d was refused", agent, c.From)
	}
	b.agent[agent] = &r.Cursor
	return r
}

func (b *box) post(now record.Time, rs ...record.Record) PostResult {
	b.t.Helper()
	return b.apply(&PostCommand{Rows: postRows(rs...), Now: now}).(PostResult)
}

func postRows(rs ...record.Record) []byte {
	bl := columns.NewBuilder()
	for i := range rs {
		bl.Add(&columns.Row{Record: rs[i], Rank: record.RankPush, Version: record.Version{Ended: !rs[i].Open()}, Stop: record.None})
	}
	return bl.Bytes()
}

func (b *box) view(f func(v *View)) {
	b.t.Helper()
	v, err := b.s.View()
	if err != nil {
		b.t.Fatal(err)
	}
	defer v.Close()
	f(v)
}

func (b *box) get(id string) (row columns.Row, ok bool) {
	b.t.Helper()
	b.view(func(v *View) {
		var err error
		if row, ok, err = v.Get(id); err != nil {
			b.t.Fatal(err)
		}
	})
	return row, ok
}

const t0 = record.Time(1_700_000_000_000_000)

// sample is a plausible record; k varies it.
func sample(id string, k int) record.Record {
	r := record.Record{ID: id, Start: t0 + record.Time(k)*record.Minute, Submit: record.None,
		Meta: record.Meta{{Key: "group_id", Values: []string{fmt.Sprint("g", k%7)}}, {Key: "user_id", Values: []string{fmt.Sprint("u", k%31)}}},
		Components: []record.Component{{Name: "Cores", Amount: int64(1 + k%8), Scores: []record.Score{{Name: "HEPScore23", Value: 10}}},
			{Name: "Memory", Amount: int64(1000 * (1 + k%5))}}}
	r.Stop = r.Start + record.Time(1+k%100)*record.Second
	return r
}

var slurm = record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}

// put is a write of a source of agent head1.
func put(r record.Record, observed int64) record.Write {
	return record.Write{ID: r.ID, Op: record.OpPut, Origin: slurm, Rank: record.RankScheduler,
		Version: record.Version{Ended: !r.Open(), Observed: observed}, Record: &r}
}

func TestIngestedRecordIsShownAndSurvivesARestart(t *testing.T) {
	b := newBox(t)
	r := sample("nemo-1", 1)
	got := b.ingest("head1", t0, put(r, 5))
	if got.Counts.Added != 1 || !got.Counts.Conserved() {
		t.Fatalf("counts %+v", got.Counts)
	}
	for range 2 {
		row, ok := b.get("nemo-1")
		if shown := row.Shown(); !ok || !record.Same(&shown, &r) || row.Seq != 1 || row.Received != t0 {
			t.Fatalf("got %+v %v", row, ok)
		}
		b.restart()
	}
}

func TestBulkGoesToABlockAndComesBackWhole(t *testing.T) {
	b := newBox(t)
	var writes []record.Write
	for i := range 3000 {
		r := sample(fmt.Sprintf("nemo-%d", i), i)
		if i%100 == 0 {
			r.Stop = record.None
		}
		writes = append(writes, put(r, int64(i+1)))
	}
	b.ingest("head1", t0, writes...)
	for range 2 {
		for _, w := range writes {
			row, ok := b.get(w.ID)
			if shown := row.Shown(); !ok || !record.Same(&shown, w.Record) {
				t.Fatalf("%s: got %+v %v want %+v", w.ID, row, ok, w.Record)
			}
		}
		b.restart()
	}
	if n := len(b.s.memory.zones); n != 1 {
		t.Fatalf("%d blocks", n)
	}
}
