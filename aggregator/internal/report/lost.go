package report

import (
	"context"
	"math/big"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// isLost reports whether the work of a run that ended in a state is lost or has to be
// repeated. States are the words of the sources: of batch systems in capitals, of Nomad and
// Kubernetes, where killed and deleted are also how a service ends, in small letters.
func isLost(state string) bool {
	switch state {
	case "BOOT_FAIL", "CANCELLED", "DEADLINE", "EVICTED", "FAILED", "HELD", "KILLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REQUEUED", "REVOKED", "TIMEOUT",
		"evicted", "failed", "lost", "oom", "preempted", "timeout":
		return true
	}
	return false
}

// lostByState makes the table of core-hours by the state in which jobs ended; nil where no
// record has a state or cores.
func (b *board) lostByState(ctx context.Context) (*Table, error) {
	a, err := b.optionalUsage(ctx, v1.UsageQuery{By: "state", Measure: "jobs,Cores", Order: "Cores"}, 0)
	if err != nil || a == nil {
		return nil, err
	}
	t := &Table{
		Name: "states", Title: "Core-hours by state",
		Columns: []Column{
			{Name: "state", Title: "State", Kind: Text}, {Name: "jobs", Title: "Jobs", Kind: Number}, {Name: "used", Title: "Used", Kind: Number, Unit: "core-hours"},
			{Name: "share", Title: "Share", Kind: Share}, {Name: "lost", Title: "Lost", Kind: Number, Unit: "core-hours"},
		},
		Chart: &Chart{Kind: Bars, Label: "state", Values: []string{"used", "lost"}},
	}
	whole, lost := totalOf(a, "Cores", nil), new(big.Rat)
	known := false
	for g := range a.Groups {
		values := a.Groups[g].Values
		used := groupTotal(a, "Cores", g, nil)
		row := []Cell{v1.Words(view.GroupName(&a.Groups[g])), v1.Rat(groupTotal(a, "jobs", g, nil)), v1.Rat(used), Quotient(used, whole), {}}
		if len(values) == 1 && values[0] != nil {
			known = true
			if used != nil && isLost(*values[0]) {
				lost.Add(lost, used)
				row[4] = v1.Rat(used)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	if !known {
		return nil, nil
	}
	if len(t.Rows) > 1 {
		t.Totals = []Cell{v1.Words("Total"), v1.Rat(totalOf(a, "jobs", nil)), v1.Rat(whole), {}, v1.Rat(lost)}
	}
	b.addNote("Lost are the core-hours of runs that failed, were ended by a limit, by the system or by hand, or have to run again; what a checkpoint saved of them is not known.")
	return t, nil
}
