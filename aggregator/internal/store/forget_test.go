package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns/columnstest"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// sweepOut proposes what the leader does when nothing changes any more.
func sweepOut(b *box) { sweepBefore(b, math.MaxInt64) }

// sweepBefore proposes what the leader does, but for what was superseded after a time.
func sweepBefore(b *box, before record.Time) {
	var blocks []uint64
	b.view(func(v *View) {
		old, err := v.Droppable(context.Background(), before)
		if err != nil {
			b.t.Fatal(err)
		}
		list, err := old.Candidates(0)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, k := range list {
			blocks = append(blocks, k.First)
		}
		blocks = append(blocks, v.Small()...)
	})
	c, f := drops(b, before, blocks...)
	b.apply(c)
	b.view(func(v *View) {
		var err error
		if f.Pairs, err = v.Unposted(1 << 20); err != nil {
			b.t.Fatal(err)
		}
	})
	b.apply(f)
}

// drops are the commands that drop what was superseded up to a time, of blocks and of the rows that wait.
func drops(b *box, before record.Time, blocks ...uint64) (*CompactBlockCommand, *ForgetCommand) {
	c, f := &CompactBlockCommand{Blocks: blocks}, &ForgetCommand{}
	b.view(func(v *View) {
		old, err := v.Droppable(context.Background(), before)
		if err == nil {
			c.Of, err = old.Of(blocks)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		f.UpTo, f.Of = v.Seq(), old.Waiting()
	})
	return c, f
}

// everything is each key and value of the database, with blocks row by row.
func everything(b *box) string {
	var out strings.Builder
	b.view(func(v *View) {
		if err := scanRange(v.snap, []byte{1}, []byte{0xff}, func(key, value []byte) error {
			fmt.Fprintf(&out, "%q %q\n", key, value)
			return nil
		}); err != nil {
			b.t.Fatal(err)
		}
		if err := v.Query(context.Background(), Query{Superseded: true, Tombstones: true}, func(r *columns.Row) error {
			fmt.Fprintf(&out, "%q\n", fmt.Sprint(*r))
			return nil
		}); err != nil {
			b.t.Fatal(err)
		}
	})
	return out.String()
}

func whoHas(b *box, name string, list map[string][]byte) (files []string) {
	b.t.Helper()
	clear(list)
	filesBelow(b.t.(*testing.T), b.o.FS, b.o.Dir, list)
	for _, f := range sortedKeys(list) {
		if bytes.Contains(list[f], []byte(name)) {
			files = append(files, f)
		}
	}
	return files
}

func TestTheNameOfADeletedPersonIsInNoFile(t *testing.T) {
	const name = "erika.mustermann"
	for _, n := range []int{3, 300, 3000, racetest.Few(9000)} { // rows that wait, rows in blocks, both
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := newBox(t)
			person := func(r record.Record, i int) record.Record {
				if i%3 == 0 {
					r.Meta = record.Meta{{Key: "comment", Values: []string{fmt.Sprint(name, " ", i)}}, {Key: "group_id", Values: []string{"g1"}}, {Key: "user_id", Values: []string{name}}}
				}
				return r
			}
			var ids []string
			var ws []record.Write
			for i := range n {
				r := person(sample(fmt.Sprint("j", i), i), i)
				if i%6 == 0 {
					r.Stop = record.None
				}
				if ws = append(ws, put(r, 1)); i%3 == 0 {
					ids = append(ids, r.ID)
				}
			}
			for part := range slices.Chunk(ws, 2500) {
				b.ingest("head1", t0, part...)
			}
			b.post(t0, person(sample("p", 0), 0))
			b.apply(&DeleteCommand{IDs: append(ids, "p"), By: "admin", Now: t0})
			files := map[string][]byte{}
			if err := b.s.Flush(); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(everything(b), name) {
				t.Fatal("the name was never there: the test proves nothing")
			}
			old, err := b.s.View()
			if err != nil {
				t.Fatal(err)
			}
			sweepOut(b)
			if strings.Contains(everything(b), name) {
				t.Error("the name is in the database")
			}
			if err := b.s.Compact(); !errors.Is(err, ErrHeld) {
				t.Errorf("while a view of before is open: %v", err)
			}
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			if err := b.s.Compact(); err != nil {
				t.Fatal(err)
			}
			b.restart()
			if in := whoHas(b, name, files); len(in) > 0 {
				t.Error("the name is in", in)
			}
			sound(t, b.s)
			// A value that was forgotten may come back, under another number.
			b.ingest("head1", t0, put(person(sample("again", 0), 0), 1))
			for range 2 {
				if row, ok := b.get("again"); !ok || row.Record.Meta[2].Values[0] != name {
					t.Error(row, ok)
				}
				sweepOut(b)
				sound(t, b.s)
				b.restart()
			}
		})
	}
}

// What is in use is never dropped, whoever asks for it.
func TestForgettingTakesNothingThatIsShown(t *testing.T) {
	b := some(t)
	before := everything(b)
	var all []uint32
	var every []uint64
	for i := range uint32(5000) {
		all, every = append(all, i), append(every, uint64(i))
	}
	shown := func() (list []string) {
		b.view(func(v *View) {
			if err := v.Query(context.Background(), Query{}, func(r *columns.Row) error {
				list = append(list, fmt.Sprint(r.Seq, r.Record))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
		return list
	}
	rows := shown()
	b.apply(&ForgetCommand{UpTo: 1 << 40, Pairs: all, Of: Superseded{UpTo: 1 << 40, Rows: every}})
	if got := shown(); !slices.Equal(got, rows) {
		t.Errorf("%d rows of %d, or others\n%s", len(got), len(rows), before)
	}
	sound(t, b.s)
	b.restart()
	if got := shown(); !slices.Equal(got, rows) {
		t.Errorf("after a restart %d rows of %d, or others", len(got), len(rows))
	}
}

// diskOf is what the store takes once Pebble has thrown out what it can.
func diskOf(b *box) float64 {
	b.t.Helper()
	if err := b.s.Compact(); err != nil {
		b.t.Fatal(err)
	}
	b.restart()
	list := map[string][]byte{}
	filesBelow(b.t.(*testing.T), b.o.FS, b.o.Dir, list)
	total := 0
	for _, data := range list {
		total += len(data)
	}
	return float64(total)
}

// afresh is what a store takes that gets the records of b once, in the order in
// which they lie there.
func afresh(b *box) float64 {
	var ws []record.Write
	b.view(func(v *View) {
		if err := v.Query(context.Background(), Query{Order: BySeq}, func(r *columns.Row) error {
			ws = append(ws, put(r.Record, 1))
			return nil
		}); err != nil {
			b.t.Fatal(err)
		}
	})
	fresh := newBox(b.t)
	for part := range slices.Chunk(ws, 2000) {
		fresh.ingest("head1", t0, part...)
	}
	return diskOf(fresh)
}

// changing is a store whose records change again and again.
type changing struct {
	*box
	rs    []record.Record
	round int
}

func newChanging(t *testing.T, n int) *changing {
	c := &changing{box: newBox(t)}
	c.apply(&SetVersionCommand{Version: 3})
	gen := columnstest.Generator(1, n, columnstest.Slurm)
	for r, ok := gen.Next(); ok; r, ok = gen.Next() {
		c.rs = append(c.rs, r)
	}
	return c
}

func (c *changing) now() record.Time { return t0 + record.Time(c.round)*record.Hour }

// write says that the records of these numbers are otherwise now, or go on.
func (c *changing) write(which []int, open bool) {
	var ws []record.Write
	for _, i := range which {
		r := c.rs[i]
		if r.Stop += record.Time(c.round) * record.Second; open {
			r.Stop = record.None
		}
		ws = append(ws, put(r, int64(c.round+1)))
	}
	for part := range slices.Chunk(ws, 2000) {
		c.ingest("head1", c.now(), part...)
	}
}

func (c *changing) ids(which []int) (ids []string) {
	for _, i := range which {
		ids = append(ids, c.rs[i].ID)
	}
	return ids
}

func (c *changing) delete(which []int) {
	c.apply(&DeleteCommand{IDs: c.ids(which), By: "me", Now: c.now()})
}

func (c *changing) undelete(which []int) {
	c.apply(&UndeleteCommand{IDs: c.ids(which), By: "me", Now: c.now()})
}

// near fails when the store takes much more than one that gets its records once.
func (c *changing) near(t *testing.T) {
	t.Helper()
	sound(t, c.s)
	c.restart()
	sound(t, c.s)
	fresh := afresh(c.box)
	share := diskOf(c.box) / fresh
	if share > 1.3 {
		t.Errorf("%.2f times the bytes of a fresh store", share)
	}
	t.Logf("%.2f times the bytes of a fresh store", share)
}

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

func TestDiskStaysNearThatOfAFreshStoreHoweverOftenAllChanges(t *testing.T) {
	t.Parallel()
	n, rounds := max(3000, racetest.Few(6000)), racetest.Few(8)
	all := upTo(n)
	for name, change := range map[string]func(round int) []int{
		"all":      func(int) []int { return all },
		"in parts": func(round int) []int { return all[round%3*n/3 : (round%3+1)*n/3] },
		"any":      func(round int) []int { return rand.New(rand.NewPCG(1, uint64(round))).Perm(n)[:n/3] },
	} {
		t.Run(name, func(t *testing.T) {
			c := newChanging(t, n)
			c.write(all, false)
			for c.round = 1; c.round <= rounds; c.round++ {
				c.write(change(c.round), false)
				sweepOut(c.box)
			}
			c.near(t)
		})
	}
}

// Records that were deleted and come back leave nothing behind, in whatever order,
// whether they come back closed or while they go on, and whether their values were
// forgotten meanwhile or not.
func TestDiskStaysNearThatOfAFreshStoreHoweverOftenAllIsDeletedAndComesBack(t *testing.T) {
	t.Parallel()
	n, rounds := racetest.Few(2500), racetest.Few(3)
	all := upTo(n)
	for name, round := range map[string]func(c *changing, rng *rand.Rand){
		"all": func(c *changing, _ *rand.Rand) {
			c.delete(all)
			c.undelete(all)
			c.write(all, false)
		},
		"all, and is forgotten meanwhile": func(c *changing, _ *rand.Rand) {
			c.delete(all)
			sweepOut(c.box)
			c.undelete(all)
			c.write(all, false)
		},
		"all, and goes on first": func(c *changing, _ *rand.Rand) {
			c.delete(all)
			c.undelete(all)
			c.write(all, true)
			c.round++
			c.write(all, true)
			c.round++
			c.write(all, false)
		},
		"any": func(c *changing, rng *rand.Rand) {
			for range 6 {
				which := rng.Perm(n)[:rng.IntN(n/2)]
				switch rng.IntN(5) {
				case 0:
					c.delete(which)
				case 1:
					c.undelete(which)
				case 2:
					c.write(which, true)
				default:
					c.write(which, false)
				}
				if c.round++; rng.IntN(3) == 0 {
					sweepOut(c.box)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			c := newChanging(t, n)
			c.write(all, false)
			for i := range rounds {
				c.round = 10 * (i + 1)
				round(c, rng)
				sweepOut(c.box)
			}
			// In the end all are there.
			c.round = 1000
			c.undelete(all)
			c.write(all, false)
			sweepOut(c.box)
			c.near(t)
		})
	}
}

// A record that stays deleted keeps its id, with who deleted it and when, and a
// tombstone for those who follow the feed.
func TestWhatADeletedRecordCosts(t *testing.T) {
	const n = 6000
	all := upTo(n)
	c := newChanging(t, n)
	c.write(all, false)
	whole := diskOf(c.box)
	c.delete(all)
	sweepOut(c.box)
	sound(t, c.s)
	gone := diskOf(c.box)
	t.Logf("a record takes %.1f bytes, a deleted one %.1f", whole/n, gone/n)
	if gone/n > 20 {
		t.Errorf("a deleted record takes %.1f bytes", gone/n)
	}
}
