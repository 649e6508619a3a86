package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// mostLookups is how many records that are missing here are looked up by id.
const mostLookups = 10_000

// lookUpMissing finds out why bursar did not list records of the other side: it asks what
// bursar has under their ids.
func (c *comparison) lookUpMissing(ctx context.Context, missing []*comparand, jobs map[string][]*comparand) error {
	slices.SortFunc(missing, func(a, b *comparand) int { return cmp.Compare(a.ID, b.ID) })
	known := map[string]v1.Entry{}
	var mu sync.Mutex
	var ids []string
	for _, e := range missing[:min(len(missing), c.lookups)] {
		ids = append(ids, e.ID)
	}
	c.lookups -= len(ids)
	err := eachID(ctx, ids, func(ctx context.Context, id string) error {
		entry, err := c.client.GetEntry(ctx, id, nil)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			known[id] = entry
		} else if errors.Is(err, client.ErrNotFound) {
			err = nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for i, e := range missing {
		cause, detail := c.unlistedCause(known[e.ID])
		if q, is := c.quarantine[e.ID]; cause == "" && is {
			cause, detail = causeQuarantined, cmp.Or(q.Message, q.Reason)
		}
		cause = cmp.Or(cause, c.oneSidedCause(e, jobs[jobID(e.ID)]))
		if cause == "" && i >= len(ids) {
			cause = causeNotLooked
		}
		if cause == "" && e.Stop != record.None {
			c.unknownFrom, c.unknownTo = min(c.unknownFrom, e.Stop), max(c.unknownTo, e.Stop)
		}
		c.addToSums(kindMissingHere, e, nil)
		c.addDifference(kindMissingHere, cause, e, detail)
	}
	return nil
}

// mostFilterDays is how many days one answer of completeness has.
const mostFilterDays = 366

// askFilters asks how many jobs the configuration of sources here left out on the days of what
// is missing here for an unknown reason. Sources send no ids of these, so it is all that is
// known of them.
func (c *comparison) askFilters(ctx context.Context) {
	if c.unknownFrom > c.unknownTo {
		return
	}
	from, to := max(c.unknownFrom, c.unknownTo-(mostFilterDays-1)*record.Day).Std().UTC(), c.unknownTo.Std().UTC()
	answer, err := c.client.Completeness(ctx, &v1.CompletenessQuery{From: from.Format(time.DateOnly), To: to.AddDate(0, 0, 1).Format(time.DateOnly)})
	if err != nil {
		c.filters = fmt.Sprintf("Whether sources here leave out jobs by their configuration is unknown: %v.", err)
		return
	}
	left := map[string]int64{}
	for _, day := range answer.Days {
		if day.Filtered != nil && *day.Filtered > 0 {
			left[day.Source] += *day.Filtered
		}
	}
	var parts []string
	for _, source := range slices.Sorted(maps.Keys(left)) {
		parts = append(parts, fmt.Sprintf("%s %d", source, left[source]))
	}
	if len(parts) > 0 {
		c.filters = fmt.Sprintf("Jobs that the configuration of sources here left out from %s to %s, of which some may be missing here: %s.",
			from.Format(time.DateOnly), to.Format(time.DateOnly), strings.Join(parts, ", "))
	}
}

// unlistedCause is why bursar does not list what it has under an id.
func (c *comparison) unlistedCause(e v1.Entry) (cause, detail string) {
	switch view.EntryState(&e) {
	case view.StateDeleted:
		return causeDeleted, ""
	case view.StateArchived:
		return causeArchived, ""
	case view.StateCounted, view.StateRunning:
		stop := record.FromStd(e.Record.StopTime.Time)
		if c.opt.window == "" {
			return causeArrived, ""
		}
		return causeElsewhere, "start " + timeText(record.FromStd(e.Record.StartTime.Time)) + "; stop " + timeText(stop)
	case view.StateWithdrawn:
		at := slices.IndexFunc(e.Holdings, func(h v1.Holding) bool { return h.Withdrawn })
		return causeWithdrawn, "by " + e.Holdings[at].Origin
	case view.StateStopOnly:
		return causeStopOnly, ""
	}
	return "", ""
}
