package sums

import (
	"strings"
	"testing"
)

func TestACheckFindsWhatAnIndexHasWrong(t *testing.T) {
	b := newBox(t, 8)
	x := newIndex(t, Options{Views: b, Life: life}, []string{"group", "site"})
	for range 15 {
		b.step()
		b.follow(x)
	}
	found, err := x.Check(t.Context())
	if err != nil || len(found) > 0 {
		t.Fatalf("a good index: %v %v", found, err)
	}
	c, runs, i := someDay(x)
	if c == nil {
		t.Fatal("there is nothing to make wrong")
	}
	c[i]++
	runs.started[i]--
	found, err = x.Check(t.Context())
	if err != nil || len(found) != 2 || !strings.Contains(found[1], "the number of runs is [") {
		t.Fatalf("two figures are wrong: %v %v", found, err)
	}
}

// someDay is a day on which runs started.
func someDay(x *Index) (*lineChunk, *ledgerChunk, int) {
	for _, s := range x.series {
		if s == nil || len(s.lines) == 0 {
			continue
		}
		for n := s.ledger.base; n < s.ledger.endNumber(); n++ {
			c, l := s.ledger.findChunk(n), s.lines[0].findChunk(n)
			for i := range chunkDays {
				if c != nil && l != nil && c.started[i] > 0 {
					return l, c, i
				}
			}
		}
	}
	return nil, nil, 0
}
