package run

import (
	"github.com/bursar-accounting/bursar/aggregator/internal/backup"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
)

// keepUsage makes the keeper of the sums of what was used.
func (a *Aggregator) keepUsage() *usage.Keeper {
	return usage.NewKeeper(usage.Options{Views: a.store, Life: lifeOf}, a.set.Log, a.registry)
}

// lifeOf names the history that a view is the present of.
func lifeOf(v *store.View) (string, error) {
	id, _ := v.Cluster()
	life, err := backup.ReadIncarnation(v)
	return id + " " + life.ID, err
}
