package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// moving are projects of groups that change at random days of February.
func moving(t *rapid.T) *usage.Derivation {
	days := rapid.SliceOfNDistinct(rapid.IntRange(2, 27), 1, 4, rapid.ID).Draw(t, "changes")
	slices.Sort(days)
	var cuts []record.Time
	for _, day := range days {
		cuts = append(cuts, apitest.At(fmt.Sprintf("2026-02-%02d", day)))
	}
	// A group that has left a project does not come back.
	phases := rapid.SliceOfN(rapid.IntRange(0, 1), 4, 4).Draw(t, "groups that change")
	return &usage.Derivation{Keys: []usage.Key{{Name: "project", From: []string{"group_id"}, Cuts: cuts, Of: func(v []string, lacks []bool, at record.Time) (string, bool) {
		phase := 0
		for _, cut := range cuts {
			if at >= cut {
				phase++
			}
		}
		n := int(v[0][len(v[0])-1] - '0')
		if lacks[0] || n == 3 && phase == 0 {
			return "", false // not yet in one
		}
		return fmt.Sprintf("p%d", phase*phases[n]), true
	}}}}
}

func TestUsage_RunsWhoseGroupChanges_CountOnceInTheTotal(t *testing.T) {
	w := apitest.New(t)
	for i := range 24 {
		w.Post(apitest.Job{
			ID: fmt.Sprintf("r%d", i), Group: fmt.Sprintf("g%d", i%4), User: "alice", Cores: 2,
			Start: fmt.Sprintf("2026-02-%02d", 1+i), Stop: fmt.Sprintf("2026-02-%02d", min(2+i+i*7%13, 28)),
		}.Record())
	}
	var book *usage.Derivation
	w.Options.Derivation = func() *usage.Derivation { return book }
	s := at(w.Serve())
	ways := [][]string{nil, {"-bucket", "day"}, {"-bucket", "week"}, {"-credit", "stop"}, {"-where", "project=p0,p1"}, {"-top", "1"}}
	for seed := range 5 * len(ways) {
		book = rapid.Custom(moving).Example(seed)
		more := ways[seed%len(ways)]
		ask := append([]string{"usage", "-window", "2026-02", "-measure", "records,Cores"}, more...)
		var whole, by v1.Usage
		s.json(t, &whole, ask...)
		s.json(t, &by, append(ask, "-by", "project")...)
		for i, m := range by.Measures {
			if *m.Total != *whole.Measures[i].Total {
				t.Errorf("%q: the total of %s is %s by project, and %s without", ask, m.Name, *m.Total, *whole.Measures[i].Total)
			}
		}
		if len(by.Groups) > 1 {
			_, table, _ := s.bursar(t.Context(), append(ask, "-by", "project")...)
			total := strings.Fields(table[strings.Index(table, "TOTAL"):])
			if total[1] != string(*whole.Measures[0].Total) {
				t.Errorf("%q: the table says %q, want %s records", ask, total, *whole.Measures[0].Total)
			}
		}
		s.json(t, &whole, "usage", "-window", "2026-02", "-measure", "records")
		var d v1.Document
		s.json(t, &d, "report", "usage", "-period", "2026-02", "-by", "project", "-measure", "records,Cores")
		if got := d.Tables[0].Totals; len(got) > 1 && got[1].String() != string(*whole.Measures[0].Total) {
			t.Errorf("the report says %s records, want %s", got[1], *whole.Measures[0].Total)
		}
	}
}
