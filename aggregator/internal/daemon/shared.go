package daemon

import (
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/audit"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/auditor"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// makeConfigKeeper makes the keeper of the cluster's configuration.
func (a *Aggregator) makeConfigKeeper() {
	if a.set.Files == nil {
		a.set.Files = &clusterconfig.Document{}
	}
	a.keeper = clusterconfig.NewKeeper(clusterconfig.Options{
		Node: a.set.Name, Dir: a.set.DataDir, Views: a.store, Writer: a.replica, Files: a.set.Files,
		Obey: a.applyConfig, Diff: config.Diff, Now: calendar.Now, Log: a.set.Log, Metrics: a.registry,
		Committed: func(digest string) {
			a.trail.Note(audit.Entry{Kind: audit.Change, Who: string(identity.Aggregator) + "/" + a.set.Name, About: "the files of " + a.set.Name, Result: "are the cluster's configuration now: " + digest[:min(len(digest), 12)]})
		},
	})
}

// applyConfig does what the cluster's configuration says.
func (a *Aggregator) applyConfig(d *clusterconfig.Document) error {
	s, err := config.ReadShared(d)
	if err != nil {
		return err
	}
	if err := a.accounts.Set(accounting.Settings{Directory: s.Directory, Money: s.Money, Capacity: s.Capacity, Energy: s.Energy}); err != nil {
		return err
	}
	agents := make([]ingest.Agent, 0, len(s.Agents))
	for _, g := range s.Agents {
		agents = append(agents, ingest.Agent{Name: g.Name, Address: g.Address})
	}
	a.changePulled(func(p *pulled) { p.configured, p.actions, p.srv = agents, s.Actions, s.AgentSRV })
	a.setKinds(s.Kinds)
	a.stopsExpire.Store(int64(s.StopsExpire))
	a.gauges.SetKeys(s.SiteKey, s.GroupKey, s.UserKey)
	asked := append(slices.Clone(s.Dimensions), s.SiteKey, s.GroupKey, s.UserKey)
	a.askedKeys.Store(&asked)
	zone, err := calendar.Zone(s.Zone)
	if err != nil {
		return err
	}
	a.zone.Store(zone)
	s.Retention.Zone = zone
	a.retention.Store(&s.Retention)
	a.usages.Set(sums.Settings{Dimensions: s.Dimensions, Zones: s.Zones, Classes: a.accounts.Now().Directory.Classes()})
	return nil
}

// siteZone is the time zone of the site.
func (a *Aggregator) siteZone() *time.Location {
	if zone := a.zone.Load(); zone != nil {
		return zone
	}
	return time.UTC
}

// usageKeys are the meta keys by which usage is asked: dimensions, those of metrics, those by
// which each statement is asked, what projects, prices and classes follow from, and which
// records are parts of runs.
func (a *Aggregator) usageKeys() (keys []string) {
	if asked := a.askedKeys.Load(); asked != nil {
		keys = slices.Clone(*asked)
	}
	keys = append(keys, record.PartKey, "project", "pi")
	now := a.accounts.Now()
	for i := range now.Derivation.Keys {
		keys = append(keys, now.Derivation.Keys[i].From...)
	}
	for i := range now.Derivation.Weights {
		keys = append(keys, now.Derivation.Weights[i].From...)
	}
	for _, c := range now.Directory.Classes() {
		keys = append(keys, c.From)
	}
	return slices.DeleteFunc(keys, func(key string) bool { return key == "" })
}

// setKinds takes over what the configuration says of components.
func (a *Aggregator) setKinds(own record.Kinds) {
	kinds := auditor.Kinds(own)
	a.kinds.Store(&kinds)
}

// SetFiles says what this node's files say now of what the cluster shares. They
// count when this node leads and they have changed.
func (a *Aggregator) SetFiles(d *clusterconfig.Document) { a.keeper.SetFiles(d) }

// sharedConfig implements api.Config.
type sharedConfig struct{ a *Aggregator }

// Acceptable implements api.Config.
func (c sharedConfig) Acceptable(d *clusterconfig.Document) error {
	_, err := config.ReadShared(d)
	return err
}

// Files implements api.Config.
func (c sharedConfig) Files() (list []api.ConfigFiles) {
	facts := c.a.keeper.Facts()
	for _, f := range c.a.peer.Roster().All() {
		digest := clusterconfig.Digest(f.ConfigDigest)
		if digest == (clusterconfig.Digest{}) {
			continue // it has not said yet
		}
		list = append(list, api.ConfigFiles{Node: f.Name, Digest: digest, Differs: facts.Committed != nil && facts.Committed.Digest != digest})
	}
	return list
}
