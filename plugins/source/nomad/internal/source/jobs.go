package source

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// jobs remembers versions of jobs, as events and allocations told them.
type jobs struct {
	mu       sync.Mutex
	versions map[jobKey][]*nomad.Job // by when they were registered
	current  map[jobKey]uint64       // when the job of that name was first registered
	count    int
}

type jobKey struct{ namespace, id string }

const maxJobs = 20_000 // versions that are remembered

func newJobs() *jobs {
	return &jobs{versions: map[jobKey][]*nomad.Job{}, current: map[jobKey]uint64{}}
}

// add remembers a version.
func (k *jobs) add(j *nomad.Job) {
	k.mu.Lock()
	defer k.mu.Unlock()
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

// exists notes the jobs that there are now. A name that was purged and registered
// again has versions from 0 on once more.
func (k *jobs) exists(stubs []*nomad.JobStub) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range stubs {
		k.current[jobKey{s.Namespace, s.ID}] = s.CreateIndex
	}
}

// version returns the version that an allocation names; nil when it is not known
// for sure.
func (k *jobs) version(a *nomad.Allocation) *nomad.Job {
	if a.JobVersion == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := jobKey{a.Namespace, a.JobID}
	for _, j := range slices.Backward(k.versions[key]) {
		if j.Version == *a.JobVersion && j.CreateIndex <= a.CreateIndex {
			if now := k.current[key]; now > j.CreateIndex && now <= a.CreateIndex {
				return nil // the name was given again in between
			}
			return j
		}
	}
	return nil
}

// at returns the version that was the newest when an allocation was made.
func (k *jobs) at(a *nomad.Allocation) *nomad.Job {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, j := range slices.Backward(k.versions[jobKey{a.Namespace, a.JobID}]) {
		if j.JobModifyIndex <= a.CreateIndex {
			return j
		}
	}
	return nil
}

const lookups = 8 // at the same time

// resolve finds the jobs of entries that lack theirs. Nomad is asked at once, since
// a purged job stays only with its allocations. What cannot be found now is tried
// again with the next listing.
func (s *Source) resolve(ctx context.Context, entries []*run.Entry) error {
	var group errgroup.Group
	group.SetLimit(lookups)
	found := make([]*nomad.Job, len(entries))
	for i, e := range entries {
		group.Go(func() (err error) {
			found[i], err = s.job(ctx, &e.Alloc)
			return err
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i, e := range entries {
		if found[i] != nil {
			e.SetJob(found[i])
		} else if e.Job == nil {
			e.NoJob = true
		}
	}
	if err != nil {
		s.log.Warn("the job of an allocation could not be looked up; it is tried again with the next listing", "error", err)
	}
	return nil
}

// job finds the job of an allocation. An error with a job is a guess.
func (s *Source) job(ctx context.Context, a *nomad.Allocation) (*nomad.Job, error) {
	if j := s.jobs.version(a); j != nil {
		return j, nil
	}
	whole, err := s.nomad.Allocation(ctx, a.Namespace, a.ID)
	if err == nil && whole.Job != nil {
		s.jobs.add(whole.Job)
		return whole.Job, nil
	}
	if j := s.jobs.at(a); j != nil || err != nil && !errors.Is(err, nomad.ErrGone) {
		return j, err
	}
	j, err := s.nomad.Job(ctx, a.Namespace, a.JobID)
	switch {
	case errors.Is(err, nomad.ErrGone) || err == nil && j.CreateIndex > a.CreateIndex:
		return nobody(a), nil
	case err != nil:
		return nil, err
	}
	return j, nil
}

// nobody stands for a job that Nomad has forgotten.
func nobody(a *nomad.Allocation) *nomad.Job {
	return &nomad.Job{ID: a.JobID, Name: a.JobID, Namespace: a.Namespace, SubmitTime: a.CreateTime}
}
