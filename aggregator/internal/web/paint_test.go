package web

import (
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
)

func TestPaints_OfFewNames_AreTheSameInEachChart(t *testing.T) {
	p := &Pages{Now: func() time.Time { return time.Unix(0, 0) }}
	all := []string{"astro", "atlas", "bio", "chem", "climate", "cms", "fluids", "neuro", "robotics"}
	p.painted.keys = map[string]paintedKey{"group_id": {all, time.Unix(0, 0)}}
	whole := p.paints(t.Context(), []string{"group_id"}, all)
	for i, a := range whole {
		if slices.Contains(whole[:i], a) {
			t.Errorf("%s is drawn as another name", all[i])
		}
	}
	for i, name := range all {
		got := p.paints(t.Context(), []string{"group_id"}, []string{"2 others", name, "new"})
		if got[1] != whole[i] || slices.Contains(whole, got[2]) || got[0] == got[2] {
			t.Errorf("%s is %v beside others and %v among all", name, got, whole[i])
		}
	}
	p.painted.keys["user_id"] = paintedKey{nil, time.Unix(0, 0)} // too many
	if got := p.paints(t.Context(), []string{"user_id"}, all); !slices.Equal(got, report.Paints(all)) {
		t.Error(got)
	}
}
