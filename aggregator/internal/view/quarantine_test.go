package view_test

import (
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestQuarantine_EmptyParts_AreDashesInTheKey(t *testing.T) {
	wantExactList(t, view.Quarantine(v1.Quarantine{Quarantine: []v1.Quarantined{
		{Agent: "head1", SourceType: "slurm", SourceLabel: "nemo", ID: "4711/a", Reason: "mapping", Message: "no attribute", Last: march(9), Count: 2}, {ID: "1"},
	}}), `key|reason|last|count|message
head1/slurm/nemo/4711/a|mapping|2026-03-01T09:00:00Z|2|no attribute
-/-/-/1|||0|`)
	wantExactList(t, view.Quarantine(v1.Quarantine{}), "key|reason|last|count|message\nNo quarantined jobs.")
}

func TestQuarantinedNotes_InputOfAFile_SayWhatToDoInstead(t *testing.T) {
	got := view.QuarantinedNotes(&v1.Quarantined{Instead: "import the file again", Truncated: true})
	if want := []string{"No agent can map it again: import the file again.", "The raw input was longer; this is its beginning."}; !slices.Equal(got, want) {
		t.Error(got)
	}
	if got := view.QuarantinedNotes(&v1.Quarantined{}); got != nil {
		t.Error(got)
	}
}
