package view_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// someEntry is a run of which each origin reports something else.
func someEntry() v1.Entry {
	return v1.Entry{RecordID: "nemo-1", Holdings: []v1.Holding{
		{Origin: "head1/slurm/nemo", Rank: "scheduler", Observed: march(9), Record: &v1.Record{StartTime: march(1), StopTime: march(2)}},
		{Origin: "pushed", Rank: "pushed", Record: &v1.Record{StartTime: march(3)}},
		{Origin: "head2", Rank: "pushed", Withdrawn: true},
		{Origin: "head3", Rank: "pushed", Observed: march(8), WaitingStop: march(4)},
	}}
}

func TestConflicts_EachOrigin_HasARowWithItsState(t *testing.T) {
	e := someEntry()
	wantExactList(t, view.Conflicts(v1.Conflicts{Conflicts: []v1.Entry{e}}), `record|origin|rank|start|stop|observed|state
nemo-1|head1/slurm/nemo|scheduler|2026-03-01T01:00:00Z|2026-03-01T02:00:00Z|2026-03-01T09:00:00Z|ended
nemo-1|pushed|pushed|2026-03-01T03:00:00Z|||running
nemo-1|head2|pushed||||withdrawn
nemo-1|head3|pushed||2026-03-01T04:00:00Z|2026-03-01T08:00:00Z|waiting for its record`)
	e.Holdings = e.Holdings[:1]
	wantExactList(t, view.Holdings(e), `origin|rank|start|stop|observed|state
head1/slurm/nemo|scheduler|2026-03-01T01:00:00Z|2026-03-01T02:00:00Z|2026-03-01T09:00:00Z|ended`)
	wantExactList(t, view.Conflicts(v1.Conflicts{}), "record|origin|rank|start|stop|observed|state\nNo conflicts.")
}

func TestWaiting_StopOfAnOrigin_IsThatOfTheRow(t *testing.T) {
	e := someEntry()
	wantExactList(t, view.Waiting(v1.Waiting{Waiting: []v1.Entry{e, {RecordID: "x"}}, More: true}), `record|stop|origin|observed
nemo-1|2026-03-01T04:00:00Z|head3|2026-03-01T08:00:00Z
x|||`)
	if view.WaitingStop(&e) != march(4) || !view.WaitingStop(&v1.Entry{}).IsZero() {
		t.Error(view.WaitingStop(&e))
	}
	wantExactList(t, view.Waiting(v1.Waiting{}), "record|stop|origin|observed\nNo job end is without a record.")
}
