package source

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// jobs remembers the versions of jobs that the event stream told, for allocations
// that are gone before they could be asked for.
type jobs struct {
	versions map[jobKey][]*nomad.Job // by when they were registered
	count    int
}

type jobKey struct{ namespace, id string }

const maxJobs = 20_000 // versions that are remembered

func newJobs() *jobs { return &jobs{versions: map[jobKey][]*nomad.Job{}} }

// addVersion remembers a version.
func (k *jobs) addVersion(j *nomad.Job) {
	if k.count >= maxJobs {
		clear(k.versions)
		k.count = 0
	}
	key := jobKey{j.Namespace, j.ID}
	list := k.versions[key]
	at, known := slices.BinarySearchFunc(list, j, func(a, b *nomad.Job) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.Version, b.Version))
	})
	if known {
		list[at] = j // a newer state of the same version
		return
	}
	k.versions[key] = slices.Insert(list, at, j)
	k.count++
}

// versionAt returns the version that was the newest when an allocation was made.
func (k *jobs) versionAt(a *nomad.Allocation) *nomad.Job {
	for _, j := range slices.Backward(k.versions[jobKey{a.Namespace, a.JobID}]) {
		if j.JobModifyIndex <= a.CreateIndex {
			return j
		}
	}
	return nil
}

const lookups = 8 // at the same time

// resolveJobs finds the jobs of entries that lack theirs, and calls observe with each
// allocation that it asked for. Nomad is asked at once, since a purged job stays only
// with its allocations. What cannot be found now is tried again with the next listing.
func (s *Source) resolveJobs(ctx context.Context, entries []*run.Entry, observe func(*run.Entry, *nomad.Allocation)) error {
	var group errgroup.Group
	group.SetLimit(lookups)
	found := make([]*nomad.Allocation, len(entries))
	for i, e := range entries {
		group.Go(func() (err error) {
			found[i], err = s.nomad.Allocation(ctx, e.Alloc.Namespace, e.Alloc.ID)
			if errors.Is(err, nomad.ErrGone) {
				return nil
			}
			return err
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i, e := range entries {
		if a := found[i]; a != nil && a.Job != nil {
			e.SetJob(a.Job)
			observe(e, a)
			continue
		}
		job, problem := s.findJob(ctx, e)
		if job != nil {
			e.SetJob(job)
		}
		if err == nil {
			err = problem
		}
		e.NoJob = job == nil || problem != nil
	}
	if err != nil {
		s.log.Warn("the job of an allocation could not be looked up; it is tried again with the next listing", "error", err)
	}
	return ctx.Err()
}

// findJob finds the job of an allocation that Nomad does not know, or cannot be asked
// for now.
func (s *Source) findJob(ctx context.Context, e *run.Entry) (*nomad.Job, error) {
	a := &e.Alloc
	if j := s.jobs.versionAt(a); j != nil {
		return j, nil
	}
	j, err := s.nomad.Job(ctx, a.Namespace, a.JobID)
	switch {
	case errors.Is(err, nomad.ErrGone) || err == nil && j.CreateIndex > a.CreateIndex:
		return forgottenJob(a), nil
	case err != nil:
		return nil, err
	}
	return j, nil
}

// forgottenJob stands for a job that Nomad has forgotten.
func forgottenJob(a *nomad.Allocation) *nomad.Job {
	return &nomad.Job{ID: a.JobID, Name: a.JobID, Namespace: a.Namespace, SubmitTime: a.CreateTime}
}
