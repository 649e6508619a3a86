package sums

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/proto/record"
)

// drawAnswer makes up an answer with something in each column.
func drawAnswer(t *rapid.T) *Answer {
	groups, buckets := rapid.IntRange(0, 5).Draw(t, "groups"), rapid.IntRange(1, 5).Draw(t, "buckets")
	n := groups * buckets
	number := rapid.SliceOfN(rapid.Uint64Range(0, 9), n, n)
	sum := rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, 3), SumOf), n, n)
	a := &Answer{By: []string{"user"}, Groups: make([]Group, groups), Open: 3, Several: 4, Runs: 9, Credit: Credit(rapid.IntRange(0, 1).Draw(t, "credit"))}
	for b := range buckets + 1 {
		a.Edges = append(a.Edges, record.Time(b)*record.Hour)
	}
	for g := range a.Groups {
		a.Groups[g] = Group{Values: []string{string(rune('a' + g))}, Lacks: []bool{false}}
	}
	a.EachCount(func(column *[]uint64) { *column = number.Draw(t, "counts") })
	a.EachSum(func(column *[]Sum) { *column = sum.Draw(t, "sums") })
	a.Waited, a.People = sum.Draw(t, "waited"), number.Draw(t, "people")
	used := make([]float64, n)
	for i := range used {
		used[i] = float64(i)
	}
	a.Components = []Component{{Name: "Cores", Used: sum.Draw(t, "used"), Runs: 5, Scores: []Score{{Name: "HS", Used: used, Lacking: sum.Draw(t, "lacking"), Runs: 2}}}}
	a.Worths = []Worth{
		{Name: "cost", Sum: sum.Draw(t, "cost"), Lacking: []Unvalued{{Component: "GPUs", Used: sum.Draw(t, "unpriced")}}},
		{Name: "co2", Sum: sum.Draw(t, "co2"), Beside: sum.Draw(t, "beside"), Apart: sum.Draw(t, "apart")},
		{Name: "idle", Sum: sum.Draw(t, "idle"), Beside: sum.Draw(t, "beside"), Strict: true},
	}
	a.Bases = make([]EnergyBasis, n)
	for i := range a.Bases {
		a.Bases[i].Total = SumOf(int64(i))
	}
	return a
}

func TestRegroup_GroupsAndBucketsInEitherOrder_IsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAnswer(t)
		lines := rapid.IntRange(1, 4).Draw(t, "lines")
		place := rapid.SliceOfN(rapid.IntRange(-1, lines-1), len(a.Groups), len(a.Groups)).Draw(t, "place")
		to := make([]Group, lines)
		x, y := a.MoveGroups(place, to).SumBuckets(), a.SumBuckets().MoveGroups(place, to)
		if diff := cmp.Diff(x, y, cmp.AllowUnexported(Sum{})); diff != "" {
			t.Error(diff)
		}
		whole := a.SumBuckets()
		for g := range a.Groups {
			first, last := g*(len(a.Edges)-1), (g+1)*(len(a.Edges)-1)
			want := a.Records[first]
			for _, n := range a.Begun[first+1 : last] {
				want += n
			}
			if a.Credit == AtStop {
				want = 0
				for _, n := range a.Records[first:last] {
					want += n
				}
			}
			if whole.Records[g] != want {
				t.Errorf("group %d: %d records, want %d", g, whole.Records[g], want)
			}
			if unknown := slices.ContainsFunc(a.cellsOf(g), a.Worths[2].IsUnknown); whole.Worths[2].IsUnknown(g) != unknown && unknown {
				t.Errorf("group %d is known, and a part is not", g)
			}
		}
	})
}

// cellsOf are the cells of a group.
func (a *Answer) cellsOf(group int) (list []int) {
	buckets := len(a.Edges) - 1
	for b := range buckets {
		list = append(list, group*buckets+b)
	}
	return list
}

func TestRows_QueryOfWeights_IsRefused(t *testing.T) {
	for _, q := range []Query{{Weights: []string{"cost"}}, {Having: []Filter{{Key: "project"}}}} {
		q.Edges = []record.Time{0, 1}
		if _, err := Rows(t.Context(), nil, q); !errors.Is(err, ErrQuery) {
			t.Errorf("%v", err)
		}
	}
}
