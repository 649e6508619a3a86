package usage

import (
	"context"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"

	"github.com/bursar-accounting/bursar/proto/record"
)

// TestHowManyRanAtATimeIsAMeanOverTimeAndASumOverGroups asks for two buckets, one of
// them of 28 days and one of 31.
func TestHowManyRanAtATimeIsAMeanOverTimeAndASumOverGroups(t *testing.T) {
	days := func(n ...int64) (list []sums.Sum) {
		for _, v := range n {
			list = append(list, sums.SumOf(v*int64(record.Day)))
		}
		return list
	}
	ask := plain(func(_ context.Context, q sums.Query) (*sums.Answer, error) {
		if !q.Levels {
			t.Error("the times are not asked for")
		}
		n := len(q.Edges) - 1
		a := &sums.Answer{Edges: q.Edges, By: q.By, Running: days(28, 31, 56, 0, 28, 31)[:3*n], Queued: make([]sums.Sum, 3*n)}
		for _, name := range []string{"a", "b", "c"} {
			a.Groups = append(a.Groups, sums.Group{Values: []string{name}, Lacks: []bool{false}})
		}
		return a, nil
	})
	s, err := MakeTable(t.Context(), ask, Request{Window: calendar.Window{From: testWindow(t, "2026-02").From, To: testWindow(t, "2026-03").To}, Bucket: calendar.Month,
		By: []string{"group_id"}, Measures: []string{"running", "queued"}, Order: "running", Top: 1, Now: record.MaxTime})
	if err != nil {
		t.Fatal(err)
	}
	c := &s.Columns[0]
	var cells []string
	for g := range s.Groups {
		for b := range s.bucketCount() {
			cells = append(cells, string(s.appendCell(nil, c, g, b)))
		}
		cells = append(cells, string(s.appendWhole(nil, c, g)))
	}
	// The others have 1 and 2 runs at a time in February, and 1 and none in March.
	if want := []string{"1", "1", "1", "3", "1", "1.9491525423728813"}; !slices.Equal(cells, want) {
		t.Errorf("got %v, want %v", cells, want)
	}
	if got := string(s.appendAll(nil, c)); got != "2.9491525423728815" {
		t.Errorf("all groups: %s", got)
	}
	if got := string(s.appendCell(nil, &s.Columns[1], 0, 0)); got != "0" || c.Kind.String() != "level" {
		t.Error(got, c.Kind)
	}
}
