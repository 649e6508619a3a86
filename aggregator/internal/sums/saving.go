package sums

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// When sums are stored: at most every saveEvery, when saveChanges have come since or what
// is stored is of no use any more; at most every roomEvery when their memory is nearly
// full; and at the end, which may take saveWithin.
const (
	saveEvery   = 5 * time.Minute
	roomEvery   = 10 * time.Second
	saveChanges = 10_000
	saveWithin  = 5 * time.Second
)

// loadSums takes over the stored sums of an index, and reports whether it did.
func (k *Keeper) loadSums(ctx context.Context, x *Index) (loaded bool) {
	loaded, err := x.Load(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		k.log.Warn("the stored sums by day are not used; they are made anew from the records", "zone", x.zoneName(), "error", err)
	case loaded:
		k.log.Info("the stored sums by day are loaded", "zone", x.zoneName(), "changes", x.Seq())
	}
	return loaded
}

// saveLoop stores the sums now and then until ctx ends, and once more then.
func (k *Keeper) saveLoop(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := map[*Index]time.Time{}
	whole, files := cmp.Or(k.opt.Whole, time.Hour), cmp.Or(k.opt.Files, 24*time.Hour)
	look := time.Now().Add(whole)
	for {
		select {
		case <-ctx.Done():
			k.saveLast(context.WithoutCancel(ctx))
			return
		case <-tick.C:
		}
		for _, x := range k.currentIndexes() {
			full := x.isNearlyFull()
			at, known := last[x]
			since := time.Since(at)
			if known && (since < roomEvery || !full && since < saveEvery) || !full && !x.shouldSave() || !k.disk.TryLock() {
				continue
			}
			last[x] = time.Now()
			k.saveIndex(ctx, x)
			k.removeUnwanted()
			k.disk.Unlock()
		}
		if time.Now().After(look) {
			look = time.Now().Add(whole)
			if k.forgetGone() {
				look = time.Now().Add(files)
			}
		}
		for x := range last {
			if !slices.Contains(k.currentIndexes(), x) {
				delete(last, x)
			}
		}
	}
}

// forgetGone has the indexes made anew when they, or their files, know values that no
// record has any more: these must leave memory and disk as the records have. It reports
// whether they are.
func (k *Keeper) forgetGone() bool {
	is := slices.ContainsFunc(k.currentIndexes(), func(x *Index) bool { return x.countGone() > x.idle || x.hasStaleFiles() })
	if is {
		k.anew.Store(true)
		k.requestRenewal()
	}
	return is
}

// hasStaleFiles reports whether the files are of sums that the index has begun again since: it
// no longer knows which of the values in them are gone.
func (x *Index) hasStaleFiles() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.saved.seq > 0 && x.saved.begun != x.begun
}

// countGone is how many tuples have no run.
func (x *Index) countGone() (n int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	has := make([]bool, len(x.tuples))
	for _, se := range x.series {
		if se == nil {
			continue
		}
		for _, sl := range se.slots {
			for _, w := range sl.runs.whole {
				has[se.tuple] = has[se.tuple] || w.begun != 0
			}
		}
	}
	for _, r := range x.open { // a set: the order does not matter
		has[r.tuple] = true
	}
	for _, r := range x.long { // as above
		has[r.tuple] = true
	}
	for _, is := range has {
		n += oneIf(!is)
	}
	return n
}

// saveLast stores what has changed at all before the node stops, if it does not take
// long: a disk that hangs must not keep it.
func (k *Keeper) saveLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, saveWithin)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		if !k.disk.TryLock() {
			return // new indexes are being made: those that there are shall not be any more
		}
		defer k.disk.Unlock()
		for _, x := range k.currentIndexes() {
			if x.Seq() != x.savedSeq() {
				k.saveIndex(ctx, x)
			}
		}
	}()
	<-ctx.Done()
	select {
	case <-done:
	case <-time.After(time.Second):
		k.log.Warn("the sums by day could not be stored in time; the next start takes those that were stored before")
	}
}

func (k *Keeper) saveIndex(ctx context.Context, x *Index) {
	var err error
	if k.opt.MaySave != nil {
		err = k.opt.MaySave()
	}
	before, _ := x.onDisk()
	if err == nil {
		err = x.Save(ctx)
	}
	if after, bytes := x.onDisk(); after > before {
		k.log.Info("old sums by day have left the memory: questions about these days read the disk", "zone", x.zoneName(),
			"months", after, "bytes", bytes, "limit", x.MaxBytes)
	}
	if errors.Is(err, errStored) {
		k.dropIndexes(ctx, err)
		return
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		k.log.Warn("the sums by day are not stored; a node that starts makes them anew from the records", "zone", x.zoneName(), "error", err)
	}
}

// shouldSave reports whether it is worth while to store the sums again: the first time,
// after many changes, and when the store has dropped rows that would have to be
// subtracted from what is stored.
func (x *Index) shouldSave() bool {
	saved, seq := x.savedSeq(), x.Seq()
	if x.Dir == "" || saved == seq {
		return false
	}
	v, err := x.Views.View()
	if err != nil {
		return false
	}
	floor := v.Floor()
	return errors.Join(v.Close()) == nil && (saved == 0 || seq < saved || seq-saved >= saveChanges || saved < floor)
}

// onDisk is of how many months the days are on disk alone, and how much these take there.
func (x *Index) onDisk() (months int, bytes int64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.away), x.awayBytes()
}

// savedSeq is up to which change the stored sums go; 0 when there are none.
func (x *Index) savedSeq() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.saved.seq
}

// removeUnwanted removes the sums of dimensions and zones that are not wanted any more.
func (k *Keeper) removeUnwanted() {
	var keep []string
	for _, x := range k.currentIndexes() {
		keep = append(keep, x.sumsFolder())
	}
	if k.opt.Dir == "" || keep == nil {
		return
	}
	list, err := os.ReadDir(k.opt.Dir)
	for _, f := range list {
		if path := filepath.Join(k.opt.Dir, f.Name()); !slices.Contains(keep, path) {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	if err != nil {
		k.log.Warn("old sums by day could not be removed", "error", err)
	}
}
