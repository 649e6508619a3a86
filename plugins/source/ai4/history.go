package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// history is what all snapshots together tell, in the order of their times.
type history struct {
	runs   map[runKey]*run
	allocs map[string]bool // those that have a run
	// waiting are jobs and allocations that no snapshot has seen running, with when they
	// were seen first.
	waiting map[place]time.Time
	jobs    map[place]time.Time // without their allocations: when each was seen last
	times   []time.Time         // of the snapshots
}

// place names a job, or its allocation, that waits.
type place struct{ namespace, job, alloc string }

// runKey names a run: a restart of the task in place begins another one.
type runKey struct {
	alloc string
	start time.Time // in UTC
}

// run is one run of an allocation's main task.
type run struct {
	sighting // the last one

	first, last time.Time // when it was seen first, and when last while it ran; zero: never
	seen        int
	next        time.Time // when the task began again in the same allocation; zero: it did not
	later       bool      // an earlier start of the task in its allocation was seen
	// placed is when its allocation was seen before it ran; zero: never.
	placed time.Time
	// unseen: between its submission and its first sighting no snapshot saw the job.
	unseen bool
	// undated is why unseen cannot be told: the first sighting has an unreadable submission.
	undated string
}

func newHistory() *history {
	return &history{runs: map[runKey]*run{}, allocs: map[string]bool{}, waiting: map[place]time.Time{}, jobs: map[place]time.Time{}}
}

// addSighting takes what the snapshot of a time saw. Calls come in the order of time.
func (h *history) addSighting(at time.Time, s *sighting) {
	job, alloc := place{s.namespace, s.job, ""}, place{s.namespace, s.job, s.alloc}
	before := h.jobs[job]
	h.jobs[job] = at
	if s.alloc == "" || s.start.IsZero() {
		if h.waiting[alloc].IsZero() && !h.allocs[s.alloc] {
			h.waiting[alloc] = at
		}
		return
	}
	placed := h.waiting[alloc]
	h.allocs[s.alloc] = true
	delete(h.waiting, alloc)
	delete(h.waiting, job)
	key := runKey{s.alloc, s.start}
	r := h.runs[key]
	if r == nil {
		r = &run{first: at, placed: placed, unseen: before.Before(s.submit)}
		if i := slices.IndexFunc(s.unread, func(u sdk.Unread) bool { return u.Attribute == "submit" }); i >= 0 {
			r.undated = s.unread[i].Problem
		}
		h.runs[key] = r
	}
	if r.stop.IsZero() || !s.stop.IsZero() {
		r.setLast(at, s)
	}
	r.seen++
}

// setLast makes a sighting the run's last one.
func (r *run) setLast(at time.Time, s *sighting) {
	before := r.sighting
	r.sighting = *s
	r.fillUnread(&before)
	if before.alloc != "" && !before.submit.IsZero() && before.submit.Before(s.submit) {
		r.submit = before.submit
	}
	if s.status == "running" {
		r.last = at
	}
}

// sortedRuns returns the runs by when they began. Those of one allocation follow each
// other, so that each ends when the next begins at the latest.
func (h *history) sortedRuns() []*run {
	byAlloc := map[string][]*run{}
	all := make([]*run, 0, len(h.runs))
	for k, r := range h.runs {
		byAlloc[k.alloc] = append(byAlloc[k.alloc], r)
		all = append(all, r)
	}
	for _, runs := range byAlloc {
		slices.SortFunc(runs, func(a, b *run) int { return a.start.Compare(b.start) })
		for i := range runs[1:] {
			runs[i].next, runs[i+1].later = runs[i+1].start, true
		}
	}
	slices.SortFunc(all, func(a, b *run) int { return cmp.Or(a.start.Compare(b.start), strings.Compare(a.alloc, b.alloc)) })
	return all
}

// possibleIDs are the ids that the source nomad may have given the run, the most likely one
// first. The first start of a task has the plain id, and later ones have their time.
// The earliest start that a snapshot saw is most likely the first one; but the task may
// have been restarted before. The source nomad has the time of the start's event, which
// is some microseconds before alloc_start, and so may be in the millisecond before.
func (r *run) possibleIDs() []string {
	plain := r.alloc + "-main"
	timed := func(t time.Time) string { return fmt.Sprintf("%s@%d", plain, t.UnixMilli()) }
	names := []string{plain, timed(r.start), timed(r.start.Add(-time.Millisecond))}
	if r.later {
		names[0], names[1] = names[1], names[0]
	}
	return names
}

// isEstimated reports whether no snapshot saw the run's end.
func (r *run) isEstimated() bool { return r.stop.IsZero() || !r.next.IsZero() && r.stop.After(r.next) }

// endAndState is when the run ended, and its state then. A task that began again in its
// allocation had that all the time, so the run before went on up to there. Any
// other end that was not seen was at the last sighting or later.
func (r *run) endAndState() (time.Time, string) {
	switch {
	case !r.isEstimated():
		return r.stop, r.status
	case !r.next.IsZero():
		return r.next, "restarted"
	case r.last.Before(r.start):
		return r.start, r.status
	}
	return r.last, r.status
}

// createTime is when the run's allocation was made, as far as snapshots tell: when the first
// one saw it. A job that none saw, though some were taken between its submission and its
// start, did not wait for a place: they show jobs that do. Zero: nothing tells.
func (h *history) createTime(r *run) time.Time {
	switch at, _ := slices.BinarySearchFunc(h.times, r.submit, time.Time.Compare); {
	case !r.placed.IsZero():
		return r.placed
	case r.unseen && !r.submit.IsZero() && at < len(h.times) && h.times[at].Before(r.start):
		return r.submit
	}
	return time.Time{}
}

// snapshotGaps are where snapshots are missing: two that follow each other are further
// apart than one and a half times what is usual.
func (h *history) snapshotGaps() (gaps [][2]time.Time) {
	var apart []time.Duration
	for i := 1; i < len(h.times); i++ {
		apart = append(apart, h.times[i].Sub(h.times[i-1]))
	}
	if len(apart) < 3 {
		return nil
	}
	slices.Sort(apart)
	usual := apart[len(apart)/2]
	for i := 1; i < len(h.times); i++ {
		if h.times[i].Sub(h.times[i-1]) > usual+usual/2 {
			gaps = append(gaps, [2]time.Time{h.times[i-1], h.times[i]})
		}
	}
	return gaps
}
