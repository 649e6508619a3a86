package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
)

// slowOdd counts as asking once did: by reading everything.
func slowOdd(t *testing.T, v *View) Anomalies {
	t.Helper()
	odd := Anomalies{OldestQuarantined: record.None, NewestGap: record.None}
	err := v.Quarantine(func(q *Quarantined) error {
		odd.Quarantined++
		if at := q.First / record.Minute * record.Minute; odd.OldestQuarantined == record.None || at < odd.OldestQuarantined {
			odd.OldestQuarantined = at
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for into, each := range map[*uint64]func(func(*record.Entry) error) error{&odd.Conflicts: v.Conflicts, &odd.Waiting: v.WaitingStops} {
		if err := each(func(*record.Entry) error { *into++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	gaps, err := v.Gaps()
	if err != nil {
		t.Fatal(err)
	}
	for i := range gaps {
		odd.Gaps++
		odd.NewestGap = max(odd.NewestGap, gaps[i].Noticed)
	}
	return odd
}

// TestWhatIsOddIsCountedAsItComesAndGoes lets quarantined jobs, conflicts, waiting
// stops and gaps come and go at random, through commands that are refused, restarts
// and restores.
func TestWhatIsOddIsCountedAsItComesAndGoes(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	b := newBox(t)
	now := t0
	key := func() QuarantineKey {
		return QuarantineKey{record.Origin{Agent: "head1", Type: "slurm", Label: fmt.Sprint("l", rnd.IntN(2))}, fmt.Sprint("j", rnd.IntN(12))}
	}
	epilog := record.Origin{Agent: "head1", Type: "epilog", Label: "e"}
	steps := []func(){
		func() {
			c := &IngestCommand{Agent: fmt.Sprint("q", len(b.log)), Now: now, Epoch: Epoch{9}, Begin: &Begin{}, From: 1, To: 5}
			if rnd.IntN(5) == 0 {
				c.From, c.Begin = 77, nil // refused: it does not continue the cursor
			}
			for range rnd.IntN(4) {
				k := key()
				c.Quarantine = append(c.Quarantine, Quarantined{Source: k.Source, ID: k.ID, Reason: "mapping", Raw: []byte("{}")})
			}
			for range rnd.IntN(3) {
				c.Resolved = append(c.Resolved, key())
			}
			if rnd.IntN(3) == 0 {
				from := t0 + record.Time(rnd.IntN(5))*record.Hour
				c.Gaps = append(c.Gaps, Gap{Source: slurm, From: from, To: from + record.Hour, Reason: "lost"})
			}
			b.apply(c)
		},
		func() { b.apply(&QuarantineDropCommand{Keys: []QuarantineKey{key(), key()}}) },
		func() { // two origins say different starts, or one takes it back
			id := fmt.Sprint("c", rnd.IntN(6))
			w := put(sample(id, 20+rnd.IntN(3)), int64(len(b.log)+1))
			if w.Origin = epilog; rnd.IntN(3) == 0 {
				w.Op, w.Record = record.OpWithdraw, nil
			}
			b.ingest("head1", now, put(sample(id, 1), int64(len(b.log)+1)), w)
		},
		func() {
			b.ingest("head1", now, record.Write{ID: fmt.Sprint("w", rnd.IntN(6)), Op: record.OpStop, Origin: record.Pushed, Rank: record.RankPush,
				Version: record.Version{Ended: true, Observed: int64(len(b.log) + 1)}, Stop: t0 + record.Hour})
		},
		func() { b.ingest("head1", now, put(sample(fmt.Sprint("w", rnd.IntN(6)), 1), int64(len(b.log)+1))) },
		func() { b.restart() },
		func() {
			dir := fmt.Sprint("/image-", len(b.log))
			if err := b.s.Checkpoint(dir); err != nil {
				t.Fatal(err)
			}
			b.apply(&QuarantineDropCommand{Keys: []QuarantineKey{key(), key(), key()}})
			if err := b.s.RestoreAt(dir, uint64(len(b.log)), 1); err != nil {
				t.Fatal(err)
			}
		},
	}
	for range 300 {
		now += record.Time(rnd.IntN(200)) * record.Second
		steps[min(rnd.IntN(3*len(steps)), rnd.IntN(len(steps)))]()
		b.view(func(v *View) {
			if got, want := v.Anomalies(), slowOdd(t, v); got != want {
				t.Fatalf("seed %d, after %d commands: %+v, want %+v", seed, len(b.log), got, want)
			}
			bySource := map[record.Origin]uint64{}
			if err := v.Quarantine(func(q *Quarantined) error { bySource[q.Source]++; return nil }); err != nil {
				t.Fatal(err)
			}
			for _, source := range []record.Origin{{Agent: "head1", Type: "slurm", Label: "l0"}, {Agent: "head1", Type: "slurm", Label: "l1"}, epilog} {
				if got := v.QuarantinedOf(source); got != bySource[source] {
					t.Fatalf("seed %d, after %d commands: %d jobs of %s are quarantined, want %d", seed, len(b.log), got, source, bySource[source])
				}
			}
		})
	}
	sound(t, b.s)
}

// TestAskingWhatIsOddAllocatesNothing shows that no job is read for it.
func TestAskingWhatIsOddAllocatesNothing(t *testing.T) {
	b := newBox(t)
	for i := range 200 {
		b.apply(&IngestCommand{Agent: fmt.Sprint("q", i), Epoch: Epoch{1}, From: 1, To: 1, Begin: &Begin{}, Now: t0 + record.Time(i)*record.Minute,
			Quarantine: []Quarantined{{Source: slurm, ID: fmt.Sprint(i), Reason: "mapping", Raw: make([]byte, 10_000)}}})
	}
	b.view(func(v *View) {
		if n := testing.AllocsPerRun(10, func() { v.Anomalies() }); n > 0 || v.Anomalies().Quarantined != 200 || v.Anomalies().OldestQuarantined != t0/record.Minute*record.Minute {
			t.Errorf("%v allocations, %+v", n, v.Anomalies())
		}
	})
}
