// Package history tells the first run of a job from later ones, on which the id of
// a run depends.
package history

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
)

// Asker is what a History needs of sacct.
type Asker interface {
	Rows(ctx context.Context, q sacct.Query, yield func(sacct.Row) error) error
}

// History knows the first submission of jobs, by which a job's first run is told
// from later ones whatever window they are met in. It remembers what it asked. The
// zero value is ready.
type History struct {
	first map[jobKey]int64
}

type jobKey struct {
	cluster string
	raw     int64
}

const (
	maxHistory = 200_000 // jobs that are remembered
	maxAsk     = 4000    // jobs in one question: a command line has a limit
)

// Settle sets Later of all runs, and asks sacct once for every few thousand jobs
// that it does not know yet.
func (h *History) Settle(ctx context.Context, ask Asker, runs []*job.Run) error {
	for batch := range slices.Chunk(h.unknownIDs(runs), maxAsk) {
		if err := h.learnFirst(ctx, ask, batch); err != nil {
			return fmt.Errorf("look for earlier runs: %w", err)
		}
	}
	for _, r := range runs {
		key := jobKey{r.Cluster, r.Raw}
		first, known := h.first[key]
		if !known || r.Submit < first {
			first = r.Submit
			h.first[key] = first
		}
		r.Later = r.Restarts > 0 || first < r.Submit
	}
	return nil
}

// unknownIDs are the ids of the jobs that must be asked for.
func (h *History) unknownIDs(runs []*job.Run) []string {
	if h.first == nil || len(h.first) > maxHistory {
		h.first = map[jobKey]int64{}
	}
	var ids []string
	seen := map[int64]bool{}
	for _, r := range runs {
		if _, known := h.first[jobKey{r.Cluster, r.Raw}]; !known && !seen[r.Raw] {
			seen[r.Raw] = true
			ids = append(ids, strconv.FormatInt(r.Raw, 10))
		}
	}
	return ids
}

// learnFirst learns the first submissions of jobs. Other tasks of an array, which sacct
// gives too, are learned only where all of their rows are in the answer: each
// row names its own job, and sacct gives all rows of a job.
func (h *History) learnFirst(ctx context.Context, ask Asker, ids []string) error {
	q := sacct.Query{Columns: []string{"JobIDRaw", "Submit", "Cluster"}, Jobs: ids}
	return ask.Rows(ctx, q, func(row sacct.Row) error {
		raw, badID := strconv.ParseInt(row.Fields[0], 10, 64)
		submit, badTime := field.Time(row.Fields[1])
		if badID != nil || badTime != nil || submit.IsZero() {
			return nil //nolint:nilerr // the job itself will be refused
		}
		key := jobKey{row.Fields[2], raw}
		if first, known := h.first[key]; !known || submit.Unix() < first {
			h.first[key] = submit.Unix()
		}
		return nil
	})
}
