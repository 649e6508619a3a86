package run

import (
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/pull"
	"github.com/bursar-accounting/bursar/aggregator/internal/shared"
)

// keep makes the keeper of the cluster's configuration.
func (a *Aggregator) keep() {
	if a.set.Files == nil {
		a.set.Files = shared.New()
	}
	a.keeper = shared.NewKeeper(shared.Options{
		Node: a.set.Name, Dir: a.set.DataDir, Views: a.store, Writer: a.replica, Files: a.set.Files,
		Obey: a.obey, Now: time.Now, Log: a.set.Log, Metrics: a.registry,
	})
}

// obey does what the cluster's configuration says.
func (a *Aggregator) obey(d *shared.Document) error {
	s, err := config.ReadShared(d)
	if err != nil {
		return err
	}
	agents := make([]pull.Agent, 0, len(s.Agents))
	for _, g := range s.Agents {
		agents = append(agents, pull.Agent{Name: g.Name, Address: g.Address})
	}
	a.manager.Set(agents)
	a.gauges.SetKeys(s.SiteKey, s.GroupKey, s.UserKey)
	return nil
}

// SetFiles says what this node's files say now of what the cluster shares. They
// count when this node leads and they have changed.
func (a *Aggregator) SetFiles(d *shared.Document) { a.keeper.SetFiles(d) }
