package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// mixed has records with few values each, in blocks of which some rows are superseded or
// tombstones, waiting and open.
func mixed(t *testing.T, rng *rand.Rand) *box {
	b := newBox(t)
	var ids []string
	for k := range racetest.Few(6) {
		n := []int{1100, 30}[k%2]
		list := make([]record.Record, n)
		for i := range list {
			r := sample(fmt.Sprintf("x%d", rng.IntN(1_000_000)*100+k), rng.IntN(5000))
			r.Start = t0 + record.Day*record.Time(k) + record.Time(rng.IntN(500))*record.Second
			r.Stop = r.Start + record.Time(rng.IntN(40)-2)*record.Second/2
			for range rng.IntN(3) { // several of a name, and none
				r.Components = append(r.Components, record.Component{Name: []string{"GPUs", "Cores"}[rng.IntN(2)], Amount: int64(rng.IntN(4))})
			}
			if rng.IntN(9) == 0 {
				r.Components, r.Meta = nil, nil
			}
			if rng.IntN(40) == 0 {
				r.Stop = record.None
			}
			list[i] = r
			ids = append(ids, r.ID)
		}
		b.post(t0, list...)
		var writes []record.Write
		for range n / 20 {
			r := sample(ids[rng.IntN(len(ids))], rng.IntN(200))
			writes = append(writes, put(r, int64(k+2)))
		}
		b.ingest("head1", t0, writes...)
		b.apply(&DeleteCommand{IDs: []string{ids[rng.IntN(len(ids))], ids[rng.IntN(len(ids))]}, By: "ann", Now: t0})
	}
	return b
}

// randomQuery is of any order, direction and conditions.
func randomQuery(rng *rand.Rand) Query {
	q := Query{Order: Order(rng.IntN(int(ByUsed) + 1)), Desc: rng.IntN(2) == 0, Superseded: rng.IntN(4) == 0, Tombstones: rng.IntN(4) == 0}
	switch q.Order {
	case ByMeta:
		q.By = []string{"group_id", "user_id", "state"}[rng.IntN(3)]
	case ByAmount, ByUsed:
		q.By = []string{"Cores", "GPUs", "nothing"}[rng.IntN(3)]
	case ByStop, ByStart, ByRuntime, ByID, BySeq:
	}
	if rng.IntN(3) == 0 {
		q.Start.GTE(int64(t0 + record.Time(rng.IntN(3))*record.Day))
	}
	if rng.IntN(3) == 0 {
		q.Runtime.LTE(int64(rng.IntN(20)))
	}
	if rng.IntN(4) == 0 {
		q.Allowed = allow("g1", "g4")
	}
	if rng.IntN(4) == 0 {
		q.Meta = []MetaTest{{Key: "user_id", Any: []string{"u1", "u5", "u30"}}}
	}
	q.Open = OpenTest(max(0, rng.IntN(6)-3))
	return q
}

// sortedRows has the rows of q in its order, found in another way: each is read, and all are
// sorted by what they say.
func sortedRows(t *rapid.T, v *View, q Query) (rows []columns.Row) {
	all := q
	all.Order, all.By, all.Desc = BySeq, "", false
	if err := v.Query(t.Context(), all, func(row *columns.Row) error {
		rows = append(rows, *row)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(rows, func(a, b columns.Row) int { return q.compareKeys(q.keyOf(&a), q.keyOf(&b)) })
	return rows
}

func TestQuery_FirstRowsByAnyNumberOfGoroutines_AreThoseOfASort(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		mixed(t, rng).view(func(v *View) {
			for range 40 {
				q := randomQuery(rng)
				want := sortedRows(rt, v, q)
				for {
					q.Limit = []int{1, 7, 100, 900, 5000}[rng.IntN(5)]
					p, err := v.planQuery(&q)
					if err != nil {
						rt.Fatal(err)
					}
					var got []columns.Row
					r := &run{ctx: rt.Context(), view: v, plan: p, left: q.Limit + 1, scanners: 1 + rng.IntN(5), yield: func(row *columns.Row) error {
						got = append(got, *row)
						return nil
					}}
					if err := r.emitBest(); err != nil {
						rt.Fatal(err)
					}
					page := want[:min(q.Limit, len(want))]
					if diff := cmp.Diff(page, got, cmpopts.EquateEmpty()); diff != "" {
						rt.Fatalf("%+v, %d goroutines: %s", q, r.scanners, diff)
					}
					if want = want[len(page):]; len(page) < q.Limit || rng.IntN(6) == 0 {
						break
					}
					at := q.PositionOf(&page[len(page)-1])
					q.Resume = &at
				}
			}
		})
	})
}
