package store

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// supersededRows are the numbers of the superseded rows that are there, and the number of blocks.
func supersededRows(b *box) (seqs []uint64, blocks int) {
	b.t.Helper()
	b.view(func(v *View) {
		blocks = len(v.memory.zones)
		shown := map[uint64]bool{}
		for _, all := range []bool{false, true} {
			if err := v.Query(context.Background(), Query{Order: BySeq, Superseded: all, Tombstones: true}, func(r *columns.Row) error {
				if all && !shown[r.Seq] {
					seqs = append(seqs, r.Seq)
				}
				shown[r.Seq] = true
				return nil
			}); err != nil {
				b.t.Fatal(err)
			}
		}
	})
	return seqs, blocks
}

func putMany(b *box, now record.Time, observed int64, from, to int) {
	var writes []record.Write
	for i := from; i < to; i++ {
		writes = append(writes, put(sample(fmt.Sprint("j", i), i+int(observed)), observed))
	}
	b.ingest("head1", now, writes...)
}

// Blocks with few rows that are shown become one when that fits into a block.
func TestCompactBlock_KeptRows_StayUntilTheirTime(t *testing.T) {
	b := newBox(t)
	b.apply(&SetVersionCommand{Version: CommandFormat})
	putMany(b, t0, 1, 0, 3000)
	putMany(b, t0, 1, 3000, 6000)
	putMany(b, t0+record.Hour, 2, 0, 500)                     // superseded in the first hour
	putMany(b, t0+2*record.Hour, 2, 500, 2500)                // and in the second
	putMany(b, t0+2*record.Hour+record.Minute, 2, 3000, 5500) // and
	_, blocks := supersededRows(b)
	for _, c := range []struct {
		before       record.Time
		from, blocks int // the first superseded row; blocks
	}{{t0, 1, blocks}, {t0 + record.Hour, 501, blocks}, {t0 + 90*record.Minute, 501, blocks}, {t0 + 2*record.Hour, 3001, blocks}} {
		sweepBefore(b, c.before)
		seqs, got := supersededRows(b)
		var want []uint64
		for seq := c.from; seq <= 5500; seq++ {
			if seq <= 2500 || seq > 3000 {
				want = append(want, uint64(seq))
			}
		}
		if !slices.Equal(seqs, want) || got != c.blocks {
			t.Errorf("before %d: %d superseded rows in %d blocks, want %d in %d", c.before-t0, len(seqs), got, len(want), c.blocks)
		}
		sound(t, b.s)
		b.restart()
		sound(t, b.s)
	}
	sweepBefore(b, t0+record.Day)
	if seqs, got := supersededRows(b); len(seqs) > 0 || got >= blocks {
		t.Errorf("%d superseded rows, %d blocks, before %d", len(seqs), got, blocks)
	}
	sound(t, b.s)
}

// What has been superseded since the leader looked stays, and what waits for a block likewise.
func TestSuperseded_RowsSupersededLater_AreNotDropped(t *testing.T) {
	b := newBox(t)
	b.apply(&SetVersionCommand{Version: CommandFormat})
	putMany(b, t0, 1, 0, 1500)
	putMany(b, t0, 1, 1500, 1510) // they wait
	putMany(b, t0, 2, 0, 10)
	putMany(b, t0, 2, 1500, 1505)
	c, f := drops(b, t0, 1)
	putMany(b, t0, 3, 10, 20)
	putMany(b, t0, 3, 1505, 1510)
	b.apply(c)
	b.apply(f)
	seqs, _ := supersededRows(b)
	if want := []uint64{11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 1506, 1507, 1508, 1509, 1510}; !slices.Equal(seqs, want) {
		t.Errorf("%d are left, want %d", seqs, want)
	}
	sound(t, b.s)
}

// Where leaders' clocks differ, and where a row was made in the future, rows go all the same.
func TestDroppable_RowOfTheFuture_HoldsNothingForLong(t *testing.T) {
	b := newBox(t)
	b.apply(&SetVersionCommand{Version: CommandFormat})
	putMany(b, t0, 1, 0, 10)
	putMany(b, t0+1000*record.Day, 2, 0, 5)
	putMany(b, t0, 2, 5, 10)
	sweepBefore(b, t0)
	if seqs, _ := supersededRows(b); len(seqs) > 0 {
		t.Errorf("%d are left", seqs)
	}
}
