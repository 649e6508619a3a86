package view

import (
	"slices"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// What may be known of a job, in words: the states of [EntryState], and those of jobs without
// an entry.
const (
	StateCounted     = "counted"
	StateRunning     = "running, counted up to now"
	StateDeleted     = "deleted, not counted"
	StateArchived    = "archived, counted"
	StateWithdrawn   = "withdrawn by its source, not counted"
	StateStopOnly    = "only its stop is known, not counted"
	StateQuarantined = "in quarantine, not counted"
	StateUnknown     = "unknown, not counted"
)

// EntryState is the state of what is held under the id of a record.
func EntryState(e *v1.Entry) string {
	switch {
	case e.Deleted:
		return StateDeleted
	case e.Record != nil && e.Record.Archived:
		return StateArchived
	case e.Record != nil && e.Record.StopTime.IsZero():
		return StateRunning
	case e.Record != nil:
		return StateCounted
	case slices.ContainsFunc(e.Holdings, func(h v1.Holding) bool { return h.Withdrawn }):
		return StateWithdrawn
	case slices.ContainsFunc(e.Holdings, func(h v1.Holding) bool { return !h.WaitingStop.IsZero() }):
		return StateStopOnly
	}
	return StateUnknown
}
