package sums

import (
	"fmt"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// drop does what the leader does with what is superseded.
func (b *box) drop() {
	b.t.Helper()
	v, err := b.View()
	if err != nil {
		b.t.Fatal(err)
	}
	c := &store.CompactBlockCommand{Blocks: v.Small()}
	for _, k := range v.Candidates(0) {
		c.Blocks = append(c.Blocks, k.First)
	}
	f := &store.ForgetCommand{UpTo: v.Seq()}
	if f.Pairs, err = v.Unposted(1 << 20); err != nil {
		b.t.Fatal(err)
	}
	old, err := v.Droppable(b.t.Context(), record.MaxTime)
	if err == nil {
		c.Of, err = old.Of(c.Blocks)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	f.Of = old.Waiting()
	if err := v.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.apply(c)
	b.apply(f)
}

// A node that was away meets a record's next versions and the compaction that drops
// the ones between at once.
func TestAnIndexThatIsBehindWhatWasCompactedAwayIsStillRight(t *testing.T) {
	t.Parallel()
	for seed := range uint64(racetest.Few(12)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := newBox(t, seed)
			x := newIndex(t, Options{Views: b, Life: life}, []string{"group", "site"})
			for range 6 {
				for range 1 + b.rng.IntN(8) {
					b.step()
				}
				if b.rng.IntN(2) == 0 {
					b.drop()
				}
				ids := []string{b.some(), b.some(), b.some(), b.some()}
				for range 1 + b.rng.IntN(4) { // versions that the index never sees
					for _, id := range ids {
						b.ingest(record.None, b.put(id))
					}
				}
				b.drop()
				b.follow(x)
				if found, err := x.Check(t.Context()); err != nil || len(found) > 0 {
					t.Fatal(found, err)
				}
			}
		})
	}
}
