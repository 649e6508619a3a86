package usage

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
	c, i := someDay(x)
	if c == nil {
		t.Fatal("there is nothing to make wrong")
	}
	c.used[i] = c.used[i].Add(SumOf(1))
	c.started[i]--
	found, err = x.Check(t.Context())
	if err != nil || len(found) != 2 || !strings.Contains(found[1], "the number of runs is [") {
		t.Fatalf("two figures are wrong: %v %v", found, err)
	}
}

// someDay is a day on which runs started.
func someDay(x *Index) (*chunk, int) {
	for _, s := range x.series {
		for _, c := range s.chunks {
			for i := range chunkDays {
				if c != nil && c.started[i] > 0 && len(s.shape.parts) > 0 {
					return c, i
				}
			}
		}
	}
	return nil, 0
}
