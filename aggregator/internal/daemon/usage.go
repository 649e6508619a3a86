package daemon

import (
	"context"
	"errors"

	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// Check implements api.Checker.
func (a *Aggregator) Check(ctx context.Context) (index uint64, wrong []string, err error) {
	view, err := a.replica.openView()
	if err != nil {
		return 0, nil, err
	}
	index, _ = view.Applied()
	wrong, err = view.Check(ctx)
	if err = errors.Join(err, view.Close()); err != nil {
		return 0, nil, err
	}
	more, err := a.usages.Check(ctx)
	return index, append(wrong, more...), err
}

// lifeOf names the history that a view is the present of.
func lifeOf(v *store.View) (string, error) {
	id, _ := v.Cluster()
	life, err := archive.ReadIncarnation(v)
	return id + " " + life.ID, err
}
