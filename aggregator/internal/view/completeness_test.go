package view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestDays_WithDifferences_SayWhatToDo(t *testing.T) {
	const recollect = "bursar-agent recollect -source slurm/a -from 2026-02-03 -to 2026-02-05"
	a := v1.Completeness{
		Days: []v1.Day{
			{Source: "head/slurm/a", Day: "2026-02-02", State: "ok", Runs: new(int64(8)), Stored: 8, Filtered: new(int64(0))},
			{Source: "head/slurm/a", Day: "2026-02-03", State: "missing", Runs: new(int64(1200)), Stored: 1100, Filtered: new(int64(7)), Quarantined: new(int64(1)), Deleted: 2, Missing: 90},
			{Source: "head/slurm/a", Day: "2026-02-04", State: "surplus", Runs: new(int64(7)), Stored: 8, Surplus: 1},
			{Source: "head/slurm/a", Day: "2026-02-05", State: "open"},
			{Source: "head/slurm/b", Day: "2026-02-03", State: "unchecked", Stored: 4},
		},
		Stretches: []v1.Stretch{
			{Agent: "head", Source: "head/slurm/a", From: day(2, 3), To: day(2, 5), Missing: 90, Lost: 80, Unread: 7, Shared: 3, Do: recollect},
			{Agent: "head", Source: "head/slurm/b", From: day(2, 3), To: day(2, 4), Missing: 4, Unread: 4, Do: recollect},
		},
	}
	l := view.Days(a, false)
	if d := cmp.Diff([]string{"head/slurm/a|2026-02-03|missing runs|1200|1100|7|1|2|90|0", "head/slurm/a|2026-02-04|surplus records|7|8|||0|0|1"}, joinedRows(l.Rows)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if l.RowTone(l.Rows[0]) != view.Bad || l.RowTone(l.Rows[1]) != view.Warn {
		t.Errorf("tones of %v", l.Rows)
	}
	first := "80 can be collected again on head, first with -plan; 7 counted but not collected: see the log of the agent on head; 3 with record ids of other runs: correct the id in the mapping, then collect again on head"
	if d := cmp.Diff([]string{
		"Runs missing of head/slurm/a, 2026-02-03 to 2026-02-04: " + first + ".", "Command: " + recollect,
		"Runs missing of head/slurm/b, 2026-02-03: 4 counted but not collected: see the log of the agent on head.",
	}, l.Notes); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := cmp.Diff([]string{
		"head/slurm/a|2026-02-03 to 2026-02-04|90|" + first + "|" + recollect, "head/slurm/b|2026-02-03|4|4 counted but not collected: see the log of the agent on head|",
	}, joinedRows(view.Stretches(a.Stretches).Rows)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if all := joinedRows(view.Days(a, true).Rows); len(all) != 5 || all[3] != "head/slurm/a|2026-02-05|not counted yet||0|||0|0|0" || all[4] != "head/slurm/b|2026-02-03|not counted||4|||0|0|0" {
		t.Errorf("all: %q", all)
	}
	for want, days := range map[string][]v1.Day{
		"No source is known yet, or none matches.": nil, "No differences in 1 counted day of 1 source.": a.Days[:1],
		"No day was counted: an agent counts a past day two hours after its end, if its source supports it.": a.Days[3:],
	} {
		if l := view.Days(v1.Completeness{Days: days}, false); l.Empty != want || len(l.Rows)+len(l.Notes) > 0 {
			t.Errorf("%q, %d rows, want %q", l.Empty, len(l.Rows), want)
		}
	}
}
