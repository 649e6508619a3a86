package action

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// keepFor is how long a run is kept. What was once set is of little interest when other
// values have been for weeks.
func (r *Run) keepFor() time.Duration {
	if sdk.EffectClass(r.Class) == sdk.ClassSet {
		return keepSet
	}
	return KeepFor
}

// pruneRuns removes runs that are too old, with all that belongs to them, a few at a time.
func (r *runner) pruneRuns(ctx context.Context) error {
	for range 8 {
		p, err := r.readPicture()
		if err != nil {
			return err
		}
		state := p.state.value
		if state.Next-state.Oldest <= KeepLeast {
			return nil
		}
		many := state.Next-state.Oldest > keepMost
		removed, err := r.removeOldest(ctx, p, func(run *Run) bool { return many || r.Now().Sub(Instant(run.Planned)) >= run.keepFor() })
		if err != nil || !removed {
			return err
		}
	}
	return nil
}

// ForgetRuns removes the runs of all actions that were planned before a time, with their effects
// and payloads, but for those under way: also the last ones, and those of actions that are not
// configured any more. It returns how many. What an action has stored for its next run stays.
// [ErrChanged] says that an action went on meanwhile: the rest is removed when it is called again.
func (m *Manager) ForgetRuns(ctx context.Context, before time.Time) (n int, err error) {
	life := m.Life
	list, err := store.With(m.Views, func(view *store.View) (list []Status, err error) {
		if life.Value, _, err = view.Document(life.Space, life.Key); err != nil {
			return nil, err
		}
		return m.List(view)
	})
	if err != nil {
		return 0, err
	}
	for i := range list {
		r := &runner{Manager: m, set: Setting{Name: list[i].Name}, life: life}
		removed, err := r.forgetRuns(ctx, before)
		n += removed
		if err != nil {
			return n, fmt.Errorf("remove old runs of %s: %w", list[i].Name, err)
		}
	}
	return n, nil
}

// forgetRuns removes the runs of an action that were planned before a time, up to the one under
// way.
func (r *runner) forgetRuns(ctx context.Context, before time.Time) (n int, err error) {
	for {
		p, err := r.readPicture()
		if err != nil || p.state.value == nil || p.state.value.Oldest == p.state.value.Current {
			return n, err
		}
		removed, err := r.removeOldest(ctx, p, func(run *Run) bool { return Instant(run.Planned).Before(before) })
		if err != nil || !removed {
			return n, err
		}
		n++
	}
}

// removeOldest removes the oldest run with all that belongs to it where it is outdated, and
// reports whether it did.
func (r *runner) removeOldest(ctx context.Context, p *picture, isOutdated func(*Run) bool) (removed bool, err error) {
	state := *p.state.value
	old := state.Oldest
	if old >= state.Next {
		return false, nil
	}
	keys, err := store.With(r.Views, func(view *store.View) ([]store.Document, error) {
		return documentsOfRun(view, r.set.Name, old, isOutdated)
	})
	if err != nil || keys == nil {
		return false, err
	}
	if old != state.Kept {
		keys = append(keys, newDocument(stateSpace, r.set.Name.runKey(old), nil))
	}
	state.Oldest++
	state.Doubtful = slices.DeleteFunc(slices.Clone(state.Doubtful), func(n uint64) bool { return n == old })
	for part := range slices.Chunk(keys, 1000) {
		if err := r.writeUnder(ctx, p.state.unchangedCondition(), part...); err != nil {
			return false, err
		}
	}
	return true, r.writeUnder(ctx, p.state.unchangedCondition(), p.state.changedTo(&state))
}

// documentsOfRun are the deletions of all that belongs to a run; nil: it is not outdated.
func documentsOfRun(view *store.View, name Name, number uint64, isOutdated func(*Run) bool) ([]store.Document, error) {
	run, err := readRun(view, name, number)
	if err != nil || run.value != nil && !isOutdated(run.value) {
		return nil, err
	}
	keys := []store.Document{newDocument(runSpace, name.runKey(number), nil)}
	for _, space := range []string{effectSpace, payloadSpace} {
		err := view.Documents(space, name.runKey(number)+"/", func(d store.Document) error {
			keys = append(keys, newDocument(space, d.Key, nil))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
}
