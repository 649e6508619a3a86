package view_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestRetentionPlan_WithAndWithoutABlock_SaysWhatIsDueAndNotReached(t *testing.T) {
	at := march(12)
	wantExactList(t, view.RetentionPlan(v1.RetentionPlan{}, "UTC"), "what|value\nnames|kept for ever, never removed\nnot reached|backups and snapshots, logs, what actions have sent")
	wantExactList(t, view.RetentionPlan(v1.RetentionPlan{
		Retention: v1.Retention{NamesMonths: new(18), Drop: []string{"job_name", "queue"}, Last: at, Records: 1, Total: 1200, Archived: 2},
		Due:       &v1.RetentionDue{Until: at, Records: 3, People: 1, Quarantined: 1, Archived: 1, Archives: []string{"2024-01", "2024-02"}},
	}, "Europe/Berlin"), `what|value
names|kept at most 18 months, last removed 2026-03-01 13:00:00 Europe/Berlin from 1 record (1 200 in all); 2 archived records still have them
keys that go with them|job_name, queue
not removed|2 archived records
due now|3 records of 1 user that stopped before 2026-03-01 13:00:00 Europe/Berlin, 1 quarantined job
keys that stay|
not reached|1 archived record
files with names|archives 2024-01, 2024-02
not reached|backups and snapshots, logs, what actions have sent`)
}
