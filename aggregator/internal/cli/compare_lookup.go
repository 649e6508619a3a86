package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// mostLookups is how many records that are missing here are looked up by id.
const mostLookups = 10_000

// settleMissing settles records of the other side that bursar did not list: it asks what
// bursar has under their ids.
func (c *comparison) settleMissing(ctx context.Context, missing []*comparand, jobs map[string][]*comparand) error {
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
		cause, detail := c.held(known[e.ID])
		if q, is := c.quarantine[e.ID]; cause == "" && is {
			cause, detail = causeQuarantined, cmp.Or(q.Message, q.Reason)
		}
		cause = cmp.Or(cause, c.cause(e, jobs[jobID(e.ID)]))
		if cause == "" && i >= len(ids) {
			cause = causeNotLooked
		}
		c.count(kindMissingHere, e, nil)
		c.note(kindMissingHere, cause, e, detail)
	}
	return nil
}

// held is why bursar does not list what it has under an id.
func (c *comparison) held(e v1.Entry) (cause, detail string) {
	switch at := slices.IndexFunc(e.Holdings, func(h v1.Holding) bool { return h.Withdrawn }); {
	case e.Deleted:
		return causeDeleted, ""
	case e.Record != nil && e.Record.Archived:
		return causeArchived, ""
	case e.Record != nil:
		stop := record.FromStd(e.Record.StopTime.Time)
		if c.opt.window == "" {
			return causeArrived, ""
		}
		return causeElsewhere, "start " + timeText(record.FromStd(e.Record.StartTime.Time)) + "; stop " + timeText(stop)
	case at >= 0:
		return causeWithdrawn, "by " + e.Holdings[at].Origin
	case slices.ContainsFunc(e.Holdings, func(h v1.Holding) bool { return !h.WaitingStop.IsZero() }):
		return causeStopOnly, ""
	}
	return "", ""
}
