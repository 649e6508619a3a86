package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/record"
)

// KnownRecord is what the cluster has under an id.
type KnownRecord struct {
	Deleted bool
	Runs    []ImportRun
}

// ImportRun is what an origin says of a run.
type ImportRun struct {
	Origin string // as [record.Origin.String] writes it
	Start  record.Time
}

// sameStart is by how much two sources may differ in the start of one run: the event
// of a start is a little before the state that follows it.
const sameStart = record.Second

// hasRun reports whether some origin that is wanted has a run that began then, and
// whether any has one that began at another time.
func (k *KnownRecord) hasRun(start record.Time, wanted func(origin string) bool) (same, other bool) {
	for _, r := range k.Runs {
		near := max(r.Start, start)-min(r.Start, start) <= sameStart
		same = same || near && wanted(r.Origin)
		other = other || !near
	}
	return same, other
}

// chooseID returns which of the ids a run has that began then, and those under which
// own, the import itself, has brought it. The first id is the source's own choice.
//
// Where another source has the run under one of the ids, it is that one. An id under
// which another run is known is the last resort. One that was deleted stands for the
// run: what was erased does not come back by another name.
func chooseID(ids []string, known map[string]KnownRecord, start record.Time, own string) (id string, brought []string) {
	best := -1
	for _, candidate := range ids {
		k := known[candidate]
		theirs, other := k.hasRun(start, func(o string) bool { return o != own })
		if mine, _ := k.hasRun(start, func(o string) bool { return o == own }); mine {
			brought = append(brought, candidate)
		}
		if rank := rankOf(&k, theirs, other); rank > best {
			best, id = rank, candidate
		}
	}
	return id, brought
}

func rankOf(k *KnownRecord, theirs, other bool) int {
	switch {
	case k.Deleted:
		return 3
	case theirs:
		return 2
	case other:
		return 0
	}
	return 1
}

// possibleIDs are the valid ids that a job's run may have, each once, the source's choice
// first.
func (r *reader) possibleIDs(job *bursarv1.Job, first string) []string {
	out := []string{first}
	seen := map[string]bool{first: true}
	for _, other := range job.GetFormerly() {
		id, err := r.src.session.Mapper.ID(other)
		if err == nil && isValidID(id) && !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// lookUpIDs asks the sink about the ids of all jobs of a batch whose runs may have several.
func (r *reader) lookUpIDs(ctx context.Context, jobs []*bursarv1.Job) error {
	var ids []string
	for _, job := range jobs {
		if len(job.GetFormerly()) == 0 {
			continue
		}
		if first, err := r.src.session.Mapper.ID(job); err == nil {
			ids = append(ids, r.possibleIDs(job, first)...)
		}
	}
	var err error
	r.known, err = r.sink.Look(ctx, ids)
	return err
}

// Look implements Sink.
func (Nowhere) Look(context.Context, []string) (map[string]KnownRecord, error) { return nil, nil }

// lookers is how many questions to the cluster are on their way at a time.
const lookers = 8

// Look implements Sink. An id of which the cluster knows nothing is not in the answer.
func (c *ImportCluster) Look(ctx context.Context, ids []string) (map[string]KnownRecord, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out := make(map[string]KnownRecord, len(ids))
	var mu sync.Mutex
	err := eachID(ctx, ids, func(ctx context.Context, id string) error {
		k, err := c.lookUpEntry(ctx, id)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && (k.Deleted || len(k.Runs) > 0) {
			out[id] = k
		}
		return err
	})
	return out, err
}

// eachID calls do for each id, some at a time, until one fails.
func eachID(ctx context.Context, ids []string, do func(ctx context.Context, id string) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var asking sync.WaitGroup
	next := make(chan string)
	for range lookers {
		asking.Go(func() {
			for id := range next {
				if ctx.Err() != nil {
					continue
				}
				if err := do(ctx, id); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, id := range ids {
		next <- id
	}
	close(next)
	asking.Wait()
	return context.Cause(ctx)
}

// lookUpEntry asks what the cluster has under an id, again while it cannot answer.
func (c *ImportCluster) lookUpEntry(ctx context.Context, id string) (k KnownRecord, err error) {
	ctx, cancel := context.WithTimeout(ctx, importPatience)
	defer cancel()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		k, err = c.fetchEntry(ctx, id)
		if err == nil || !isTransient(err) || ctx.Err() != nil {
			return k, err
		}
		select {
		case <-ctx.Done():
			return k, err
		case <-time.After(pause):
		}
	}
}

func (c *ImportCluster) fetchEntry(ctx context.Context, id string) (KnownRecord, error) {
	answer, err := c.client.GetEntry(ctx, id, nil)
	if errors.Is(err, client.ErrNotFound) {
		return KnownRecord{}, nil
	}
	k := KnownRecord{Deleted: answer.Deleted}
	for _, h := range answer.Holdings {
		if h.Record != nil {
			k.Runs = append(k.Runs, ImportRun{h.Origin, record.FromStd(h.Record.StartTime.Time)})
		}
	}
	return k, err
}
