package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// ledgerReader holds what a reader of the ledger has: the numbers of the closed rows by id.
type ledgerReader struct {
	part LedgerPart
	has  map[string]uint64
	want map[string]uint64 // what it has at the end of the part
}

// closedRows are the numbers of the closed rows that are shown, by id.
func closedRows(t testing.TB, v *View) map[string]uint64 {
	t.Helper()
	rows := map[string]uint64{}
	if err := v.Query(context.Background(), Query{Open: OnlyClosed}, func(row *columns.Row) error {
		rows[row.Record.ID] = row.Seq
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return rows
}

// read takes at most so many changes, and compares at the end of the part.
func (r *ledgerReader) read(t testing.TB, v *View, limit int) error {
	t.Helper()
	if r.part.After >= r.part.To {
		r.part = LedgerPart{From: r.part.To, To: v.Seq(), After: r.part.To}
		r.want = closedRows(t, v)
	}
	err := v.Ledger(context.Background(), r.part, func(now, former *columns.Row) error {
		id := now.Record.ID
		if now.Seq <= r.part.After || now.Seq > r.part.To {
			t.Fatalf("change %d is not of the part %+v", now.Seq, r.part)
		}
		r.part.After = now.Seq
		has, ok := r.has[id]
		if (former != nil) != ok || ok && (former.Seq != has || former.Record.ID != id) {
			t.Fatalf("part %+v: change %d of %q supersedes %+v, the reader has %d", r.part, now.Seq, id, former, has)
		}
		delete(r.has, id)
		if !now.Tombstone {
			r.has[id] = now.Seq
		}
		if limit--; limit == 0 {
			return errStop
		}
		return nil
	})
	switch {
	case errors.Is(err, errStop):
		return nil
	case err != nil:
		return err
	}
	r.part.After = r.part.To
	if !maps.Equal(r.has, r.want) {
		t.Fatalf("after %+v the reader has other rows than the store showed: %s", r.part, cmp.Diff(r.want, r.has))
	}
	return nil
}

func (r *ledgerReader) begin() { *r = ledgerReader{has: map[string]uint64{}} }

// ledgerMachine is a store that changes at random while readers follow.
type ledgerMachine struct {
	machine
	readers [3]ledgerReader
}

func (m *ledgerMachine) Read(t *rapid.T) {
	r := &m.readers[rapid.IntRange(0, len(m.readers)-1).Draw(t, "reader")]
	limit := rapid.SampledFrom([]int{1, 2, 3, 10, 100, 1 << 20}).Draw(t, "limit")
	m.view(func(v *View) {
		err := r.read(m.t, v, limit)
		if errors.Is(err, ErrCompacted) && v.FeedFloor() > 0 {
			r.begin()
			err = r.read(m.t, v, limit)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// Change changes one of few records, or takes it away.
func (m *ledgerMachine) Change(t *rapid.T) {
	r := sample(fmt.Sprint("few-", rapid.IntRange(0, 3).Draw(t, "few")), len(m.log))
	switch rapid.IntRange(0, 5).Draw(t, "how") {
	case 0:
		m.apply(&DeleteCommand{IDs: []string{r.ID}, By: "me", Now: m.tick()})
		m.apply(&UndeleteCommand{IDs: []string{r.ID}, By: "me", Now: m.tick()})
		return
	case 1:
		m.ingest("head1", m.tick(), record.Write{ID: r.ID, Op: record.OpWithdraw, Origin: slurm, Rank: record.RankScheduler,
			Version: record.Version{Ended: true, Observed: int64(len(m.log) + 100)}, Record: &record.Record{ID: r.ID, Start: r.Start, Stop: record.None, Submit: r.Submit}})
		return
	case 2:
		r.Stop = record.None
	}
	m.ingest("head1", m.tick(), put(r, int64(len(m.log)+100)))
}

func (m *ledgerMachine) Sweep(t *rapid.T) {
	sweepBefore(m.box, m.now-record.Time(rapid.IntRange(0, 20).Draw(t, "keep"))*record.Second)
}

func (m *ledgerMachine) Fold(*rapid.T) { // those that wait go into blocks
	var writes []record.Write
	for i := range bulkRows {
		writes = append(writes, put(sample(fmt.Sprintf("fold-%d-%d", len(m.log), i), i), 1))
	}
	if m.bulks++; m.bulks <= maxBulks {
		m.ingest("head1", m.tick(), writes...)
	}
}

func TestLedger_AnyChangesAndPages_GiveWhatIsShown(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &ledgerMachine{machine: machine{box: newBox(t), m: newModel(), now: t0}}
		defer func() { m.s.Close() }()
		for i := range m.readers {
			m.readers[i].begin()
		}
		m.apply(&SetVersionCommand{Version: rapid.SampledFrom([]uint32{3, CommandFormat}).Draw(rt, "version")})
		rt.Repeat(map[string]func(*rapid.T){"ingest": m.Ingest, "fold": m.Fold, "post": m.Post, "stop": m.PutStop, "delete": m.Delete, "undelete": m.Undelete,
			"compact": m.Compact, "sweep": m.Sweep, "restart": m.Restart, "change": m.Change, "change more": m.Change, "read": m.Read, "read more": m.Read, "read on": m.Read})
	})
}

func TestLedger_DroppedRows_EndOnlyReadersThatNeedThem(t *testing.T) {
	b := newBox(t)
	b.apply(&SetVersionCommand{Version: CommandFormat})
	var writes []record.Write
	for i := range 2 * bulkRows {
		writes = append(writes, put(sample(fmt.Sprint("j", i), i), 1))
	}
	b.ingest("head1", t0, writes...)
	read := func(r *ledgerReader) (err error) {
		b.view(func(v *View) { err = r.read(t, v, 1<<20) })
		return err
	}
	var before, after, never ledgerReader
	for _, r := range []*ledgerReader{&before, &after, &never} {
		r.begin()
	}
	if err := errors.Join(read(&before), read(&after)); err != nil {
		t.Fatal(err)
	}
	b.apply(&DeleteCommand{IDs: []string{"j7"}, By: "x", Now: t0})
	changed := sample("j9", 3)
	b.ingest("head1", t0, put(changed, 2))
	if err := read(&after); err != nil {
		t.Fatal(err)
	}
	sweepOut(b)
	b.restart()
	b.post(t0, sample("new", 1))
	if err := errors.Join(read(&after), read(&never)); err != nil || after.has["new"] == 0 {
		t.Errorf("who has read all that superseded a row, or begins: %v", err)
	}
	if err := read(&before); !errors.Is(err, ErrCompacted) {
		t.Errorf("who has the dropped rows: %v", err)
	}
	b.view(func(v *View) {
		if err := v.Ledger(context.Background(), LedgerPart{From: v.Seq(), To: v.Seq() + 1}, nil); !errors.Is(err, ErrCompacted) {
			t.Errorf("a part of another history: %v", err)
		}
	})
}

// Jobs are said by slurm and by the epilog, so a row is superseded for each of them; old ones
// are corrected, and a few records change every hour.
func TestLedger_RowsSupersededContinually_DailyFollowerMissesNothing(t *testing.T) {
	b := newBox(t)
	b.apply(&SetVersionCommand{Version: CommandFormat})
	rng := rand.New(rand.NewPCG(1, 2))
	var hourly, daily ledgerReader
	hourly.begin()
	daily.begin()
	read := func(name string, r *ledgerReader, hour int) {
		b.view(func(v *View) {
			for range 2 { // what is left of the part, and the next
				if err := r.read(t, v, 1<<20); err != nil {
					t.Fatalf("hour %d: the %s follower at change %d: %v", hour, name, r.part.To, err)
				}
			}
		})
	}
	old := func(hour int) (n int) { // superseded rows, and how many a day makes at most
		b.view(func(v *View) {
			if err := v.Query(context.Background(), Query{Superseded: true, Tombstones: true}, func(*columns.Row) error { n++; return nil }); err != nil {
				t.Fatal(err)
			}
			n -= int(v.memory.Rows)
		})
		return n
	}
	const jobs, corrected, often = 150, 20, 3
	for hour := range 80 {
		now := t0 + record.Time(hour)*record.Hour
		var writes []record.Write
		for i := range jobs {
			r := sample(fmt.Sprintf("h%d-%d", hour, i), i)
			open := r
			open.Stop = record.None
			writes = append(writes, put(open, 1))
		}
		b.ingest("head1", now, writes...)
		writes = writes[:0]
		for i := range jobs {
			writes = append(writes, put(sample(fmt.Sprintf("h%d-%d", hour, i), i), 2))
		}
		for i := range often {
			writes = append(writes, put(sample(fmt.Sprint("often-", i), hour), int64(hour+1)))
		}
		b.ingest("head1", now+record.Minute, writes...)
		writes = writes[:0]
		for i := range jobs {
			r := sample(fmt.Sprintf("h%d-%d", hour, i), i)
			r.State = "SAID AGAIN"
			writes = append(writes, put(r, 3))
		}
		for range corrected {
			r := sample(fmt.Sprintf("h%d-%d", rng.IntN(hour+1), rng.IntN(jobs)), rng.IntN(50))
			writes = append(writes, put(r, int64(hour+10)))
		}
		b.ingest("head1", now+2*record.Minute, writes...)
		if hour%8 == 7 {
			b.apply(&DeleteCommand{IDs: []string{fmt.Sprintf("h%d-%d", rng.IntN(hour+1), rng.IntN(jobs))}, By: "me", Now: now + 3*record.Minute})
		}
		read("hourly", &hourly, hour)
		if hour%24 == 23 {
			read("daily", &daily, hour)
		}
		sweepBefore(b, now+4*record.Minute-record.Day)
		if n, most := old(hour), 25*(jobs+corrected+often+1); n > most {
			t.Fatalf("hour %d: %d superseded rows are kept, want at most %d", hour, n, most)
		}
		if hour%20 == 19 {
			sound(t, b.s)
			b.restart()
		}
	}
	b.view(func(v *View) {
		if v.FeedFloor() == 0 {
			t.Error("nothing was dropped: the test proves nothing")
		}
	})
	sound(t, b.s)
}

// A part is read again by who lost the answer: it must be the same.
func TestLedger_PartReadAgainLater_IsTheSame(t *testing.T) {
	b := newBox(t)
	b.apply(&SetVersionCommand{Version: CommandFormat})
	rng := rand.New(rand.NewPCG(1, 2))
	change := func(n int) {
		for i := range n {
			r := sample(fmt.Sprint("j", rng.IntN(30)), rng.IntN(50))
			if rng.IntN(4) == 0 {
				r.Stop = record.None
			}
			b.ingest("head1", t0, put(r, int64(len(b.log)+i)))
		}
	}
	text := func(p LedgerPart) (out string) {
		b.view(func(v *View) {
			if err := v.Ledger(context.Background(), p, func(now, former *columns.Row) error {
				out += fmt.Sprintln(now, former)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
		return out
	}
	parts := map[LedgerPart]string{}
	last := uint64(0)
	for range 20 {
		change(10)
		b.view(func(v *View) {
			p := LedgerPart{From: last, To: v.Seq(), After: last + uint64(rng.IntN(4))}
			parts[p], last = "", p.To
		})
		for p := range parts {
			if parts[p] == "" {
				parts[p] = text(p)
			}
		}
	}
	for p, want := range parts {
		if got := text(p); got != want {
			t.Errorf("%+v: %s, was %s", p, got, want)
		}
	}
}

func TestLedger_SeveralChangesOfOneRecord_AreOneFromTheFormerState(t *testing.T) {
	b := newBox(t)
	b.apply(&SetVersionCommand{Version: CommandFormat})
	var r ledgerReader
	r.begin()
	read := func() {
		t.Helper()
		b.view(func(v *View) {
			if err := r.read(t, v, 1<<20); err != nil {
				t.Fatal(err)
			}
		})
	}
	open := sample("a", 5)
	open.Stop = record.None
	steps := []func(n int){
		func(n int) { b.ingest("head1", t0, put(sample("a", n), int64(n))) },
		func(n int) { open.Start++; b.ingest("head1", t0, put(open, int64(n))) },
		func(int) {
			b.apply(&DeleteCommand{IDs: []string{"a"}, By: "x", Now: t0})
			b.apply(&UndeleteCommand{IDs: []string{"a"}, By: "x", Now: t0})
		},
	}
	n := 0
	for i := range 27 * 3 { // all ways of three steps, from each former state
		for part, k := 0, i; part < 4; part, k = part+1, k/3 {
			n++
			steps[k%3](n)
			if part == 0 {
				read()
			}
		}
		read()
	}
}
