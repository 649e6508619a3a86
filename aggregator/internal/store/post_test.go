package store

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// TestPost_RowsFromBatch_SameAsOneByOne posts the same to a store whose cluster has agreed
// to take rows out of a batch, and to one that takes each as a whole.
func TestPost_RowsFromBatch_SameAsOneByOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b, one := newBox(t), newBox(t)
		defer func() { b.s.Close(); one.s.Close() }()
		b.apply(&SetVersionCommand{Version: CommandFormat})
		one.apply(&SetVersionCommand{Version: CommandFormat - 1})
		for k := range rapid.IntRange(1, 3).Draw(rt, "posts") {
			rows := rapid.SampledFrom([]int{1, 10, 999, 1000, 1100}).Draw(rt, "rows")
			bl := columns.NewBuilder()
			for i := range rows {
				bl.Add(postedRow(rt, k*500+i))
			}
			c := &PostCommand{Rows: bl.Bytes(), IgnoreExisting: rapid.Bool().Draw(rt, "ignore"), Now: t0 + record.Time(k)*record.Hour}
			got, want := b.apply(c), one.apply(c)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				rt.Fatalf("result %v, one by one %v", got, want)
			}
		}
		if rapid.Bool().Draw(rt, "restart") {
			b.restart()
		}
		_, got := b.s.Hash()
		if _, want := one.s.Hash(); got != want {
			rt.Fatalf("hash %v, one by one %v", got, want)
		}
		for _, s := range []*box{b, one} {
			s.view(func(v *View) {
				if problems, err := v.Check(t.Context()); err != nil || len(problems) > 0 {
					rt.Fatal(problems, err)
				}
			})
		}
	})
}

// postedRow is row i of a post; a few are not as the interface makes them, and a few are not
// valid.
func postedRow(t *rapid.T, i int) *columns.Row {
	r := sample(fmt.Sprintf("job-%d", i), i)
	if i%70 == 0 {
		r.Stop = record.None
	}
	row := &columns.Row{Record: r, Rank: record.RankPush, Version: record.Version{Ended: !r.Open()}, Stop: record.None}
	if i%200 != 0 {
		return row
	}
	switch rapid.IntRange(0, 20).Draw(t, "odd") {
	case 0:
		row.Version = record.Version{Observed: 7}
	case 1:
		row.Origin = slurm
	case 2:
		row.Stop = t0
	case 3:
		row.Record.ID = "job-0"
	case 4:
		row.Record.Components[0].Amount = -1
	case 5:
		row.Supersedes = 3
	case 6:
		row.Tombstone = true
	}
	return row
}
