package sums

import (
	"errors"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
)

func TestMoreCellsThanAreAllowedAreRefused(t *testing.T) {
	b := newBox(t, 1)
	x := newIndex(t, Options{Views: b, Life: life}, []string{"group", "site", "user"})
	for range 20 {
		b.step()
	}
	edges := []record.Time{t0 - 30*record.Day}
	for range 60 {
		edges = append(edges, edges[len(edges)-1]+record.Day)
	}
	for name, by := range map[string]string{"index": "user", "scan": "note"} {
		q := Query{Edges: edges, By: []string{by}, Now: t0, MaxCells: 60}
		if _, err := x.Answer(t.Context(), q); !errors.Is(err, ErrTooMany) || !errors.Is(err, ErrQuery) {
			t.Errorf("%s: %v", name, err)
		}
		q.MaxCells = 1_000_000
		if _, err := x.Answer(t.Context(), q); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
