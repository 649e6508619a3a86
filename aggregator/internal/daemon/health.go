package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"

	"github.com/bursar-accounting/bursar/aggregator/internal/membership"

	"github.com/bursar-accounting/bursar/aggregator/internal/completeness"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// healthMonitor looks after the health of the node: its disk, and the verdict on the
// cluster.
type healthMonitor struct {
	agg      *Aggregator
	watch    *health.Watch
	probe    *health.DiskProbe
	ballast  *health.Ballast
	watchdog *health.Watchdog
	days     *completeness.Keeper
	survey   *health.Survey
	silences health.Learner

	mu           sync.Mutex
	data         health.Data // as of its index
	acknowledged []health.Acknowledgement
}

// makeHealthMonitor makes that of a node that is open.
func (a *Aggregator) makeHealthMonitor() {
	d := &healthMonitor{agg: a, acknowledged: a.set.Acknowledged, ballast: health.NewBallast(a.set.DataDir, a.replica.guard.State().Size, a.set.Ballast)}
	d.days = &completeness.Keeper{View: a.store.View, Log: a.set.Log}
	d.survey = &health.Survey{View: a.store.View, Life: lifeOf, Log: a.set.Log}
	node := a.replica.node
	d.probe = &health.DiskProbe{Path: filepath.Join(a.set.DataDir, "raft", "disk.probe"), Log: a.set.Log}
	d.watchdog = &health.Watchdog{
		Stalls: []func() time.Duration{d.probe.Stalled, node.LogStalled}, Leads: node.IsLeader, Exit: a.exitProcess, Log: a.set.Log,
		Level: func() health.DiskLevel { return a.replica.guard.State().Level }, Roomy: d.roomyMember,
		PassLeadership: d.transferLeadership,
	}
	d.watch = &health.Watch{Sources: []health.Source{d.addClusterFacts, d.addStrayedNode, d.addAgentFacts, d.addStoreFacts, d.addActionFacts, d.addLoginTrouble, d.addRestoredAccess, d.addSRVTrouble}, Log: a.set.Log}
	health.NewMetrics(d.watch, a.registry)
	d.registerMetrics(a.registry)
	a.peer.Source(membership.FactFunc(d.fillNodeFact))
	a.doctor = d
}

// acknowledgementsOf are those of a configuration.
func acknowledgementsOf(h *config.Health) (list []health.Acknowledgement) {
	for _, a := range h.Acknowledged {
		list = append(list, health.Acknowledgement{ID: a.ID.Value, About: a.About.Value, Count: int64(a.Count), Reason: a.Reason.Value})
	}
	return list
}

// SetAcknowledged makes list what operators know of findings.
func (a *Aggregator) SetAcknowledged(list []health.Acknowledgement) {
	a.doctor.mu.Lock()
	defer a.doctor.mu.Unlock()
	a.doctor.acknowledged = list
}

// recordFindings returns the findings about records as of the last verdict.
func (d *healthMonitor) recordFindings() []health.RecordFinding {
	r, _ := d.watch.Last()
	return r.Facts.Records()
}

// transferLeadership gives the leadership to another node: in order, or where this disk
// hangs at once.
func (d *healthMonitor) transferLeadership(ctx context.Context, to string) error {
	if to == "" {
		return d.agg.replica.node.TransferLeadership(ctx)
	}
	return d.agg.peer.TransferLeadership(ctx)
}

// registerMetrics registers what the doctor knows of this node's disk.
func (d *healthMonitor) registerMetrics(reg prometheus.Registerer) {
	gauge := func(name, help string, value func() float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "bursar_" + name, Help: help}, value))
	}
	gauge("disk_ballast_bytes", "Size of the file that can be given up for room.", func() float64 { return float64(d.ballast.Size()) })
	gauge("disk_probe_seconds", "How long the last test write to the disk took.", func() float64 { took, _ := d.probe.Last(); return took.Seconds() })
	gauge("disk_stalled_seconds", "How long a write to the disk has been hanging, 0 when none is.", func() float64 { return d.diskStalled().Seconds() })
	reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "bursar_disk_probe_failures_total", Help: "Test writes to the disk that failed."}, func() float64 {
		_, failed := d.probe.Last()
		return float64(failed)
	}))
}

func (d *healthMonitor) diskStalled() time.Duration {
	return max(d.probe.Stalled(), d.agg.replica.node.LogStalled())
}

// Report implements api.Health.
func (d *healthMonitor) Report(ctx context.Context) health.Report { return d.watch.Report(ctx) }

// ballastEvery is how often the ballast is looked after.
const ballastEvery = 10 * time.Second

// runMonitor looks after the node until ctx ends.
func (d *healthMonitor) runMonitor(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.probe.Run(ctx) })
	g.Go(func() error { return d.watchdog.Run(ctx) })
	g.Go(func() error { return d.watch.Run(ctx) })
	g.Go(func() error { return d.maintainBallast(ctx) })
	g.Go(func() error { return d.days.Run(ctx) })
	g.Go(func() error { return d.survey.Run(ctx) })
	return g.Wait()
}

func (d *healthMonitor) maintainBallast(ctx context.Context) error {
	guard, failed := d.agg.replica.guard, false
	for {
		err := d.ballast.Keep(guard.State().Free, guard.Marks().Warn)
		if err != nil && !failed {
			d.agg.set.Log.Warn("the ballast cannot be made; it is tried again", "error", err)
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(ballastEvery):
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// localFacts is what this node knows of itself alone.
func (d *healthMonitor) localFacts() health.Local {
	a := d.agg
	s := a.replica.guard.State()
	l := health.Local{Version: a.set.Version, Disk: health.Disk{
		Path: a.set.DataDir, Free: s.Free, Size: s.Size, Level: health.Level(s.Level.String()), Since: s.Since, Ballast: d.ballast.Size(), Stalled: d.diskStalled(),
	}}
	if a.set.Keys != nil {
		l.CertFrom, l.CertEnds = a.set.Keys.Begins(), a.set.Keys.Expires()
		l.CertError, l.Unrenewed = errorText(a.set.Keys.Problem()), a.set.Keys.Unrenewed()
	}
	conf := a.keeper.Facts()
	for _, diff := range conf.Differences {
		l.ConfigDiffers = append(l.ConfigDiffers, diff.Block)
	}
	l.ConfigDiffers = slices.Compact(l.ConfigDiffers)
	if conf.Problem != nil {
		l.ConfigProblem = conf.Problem.Error()
	}
	for _, m := range a.peer.Misplaced() {
		l.Misplaced = append(l.Misplaced, health.Misplaced(m))
	}
	l.Backup = a.ownBackups()
	l.Unindexed = errorText(a.usages.TooLarge())
	l.OldCopy, l.Unrecorded, l.Forked = errorText(a.replica.node.Behind()), errorText(a.replica.node.Unprotected()), errorText(a.replica.node.Forked())
	if !a.replica.node.IsLeader() {
		return l
	}
	if err := errors.Join(a.replica.guard.CheckPull(), a.replica.guards.checkGuards()); err != nil {
		l.Paused = err.Error()
	}
	for _, p := range a.manager.Status() {
		h := health.Agent{Name: p.Name, Address: p.Address, Connected: p.Connected, Contact: p.LastContact, Behind: p.Behind, Remedy: p.Remedy, Unasked: !p.Asked, CertFrom: p.CertFrom, CertEnds: p.CertEnds, Unrenewed: p.Unrenewed}
		if p.Err != nil {
			h.Error = p.Err.Error()
		}
		for _, s := range p.Failing {
			if h.Failing == nil {
				h.Failing = map[string]string{}
			}
			h.Failing[s.Source] = s.Error
		}
		for _, f := range p.Found {
			h.Findings = append(h.Findings, findingOf(p.Name, f))
		}
		l.Agents = append(l.Agents, h)
	}
	return l
}

// findingOf is what an agent found about records of a source.
func findingOf(agent string, f ingest.Found) health.RecordFinding {
	x := f.Finding
	at := func(micros int64) time.Time { return record.Time(micros).Std() }
	do := x.GetDo()
	if strings.HasPrefix(do, "bursar-agent ") {
		do += "   # on " + agent
	}
	return health.RecordFinding{
		Kind: x.GetKind(), Source: agent + "/" + f.Source, About: x.GetAbout(), What: x.GetWhat(), Do: do, Count: x.GetCount(),
		First: at(x.GetFirst()), Last: at(x.GetLast()), Example: x.GetExample(), Noticed: at(x.GetNoticed()),
	}
}

// addClusterFacts is the source of what is known of the nodes.
func (d *healthMonitor) addClusterFacts(_ context.Context, f *health.Facts) {
	a := d.agg
	stats := a.replica.node.Stats()
	f.Node, f.Version, f.Leader = a.set.Name, a.set.Version, stats.Leader.ID
	newest := stats.Applied
	for _, fact := range a.peer.Roster().All() {
		newest = max(newest, fact.Applied, fact.Command)
	}
	for _, m := range stats.Servers {
		f.Nodes = append(f.Nodes, d.memberFacts(f.Now, stats.Leader.ID, newest, m))
	}
	if own := a.peer.Roster().Own(); len(stats.Servers) == 0 {
		f.Others = append(f.Others, health.Finding{
			Severity: health.Critical, ID: "no-cluster", What: "this node belongs to no cluster yet: " + own.Waits, Do: "bursar config validate   # and start the other nodes",
		})
	}
}

// addStrayedNode says that nodes are of different clusters.
func (d *healthMonitor) addStrayedNode(_ context.Context, f *health.Facts) {
	if why := d.agg.peer.Strayed(); why != "" {
		f.Others = append(f.Others, health.Finding{
			Severity: health.Critical, ID: "other-cluster", What: why,
			Do: "systemctl stop bursar   # on the node whose data folder is not the right one; start it with the right one, or with an empty one to have it join",
		})
	}
}

// memberFacts is what is known of a member; newest is the newest command that any node
// has.
func (d *healthMonitor) memberFacts(now time.Time, leader string, newest uint64, m cluster.Member) health.Node {
	n := health.Node{Name: m.Addr, ID: m.ID, Address: d.agg.peer.AddressOf(m.Server), Listed: m.Addr, Voter: m.Voter, Leader: m.ID == leader, Self: m.ID == d.agg.replica.node.ID()}
	fact, heard := d.agg.peer.Roster().ByID(m.ID)
	for _, l := range d.agg.peer.Names() {
		if l.ID == m.ID && l.Name != "" {
			n.Name = l.Name
		}
	}
	switch {
	case n.Self:
		n.Seen, n.Local = now, d.localFacts()
		fact = d.agg.peer.Roster().Own()
	case !heard:
		return n
	default:
		n.Unreached = fact.Unreached
		n.Seen, n.ClockOffset = fact.Seen, fact.Clock.Sub(calendar.ByClock(fact.Seen).Add(-fact.RoundTrip/2))
		if local, err := health.DecodeLocal(fact.Extra[factName]); err == nil {
			n.Local = local
		}
	}
	n.Name, n.Applied, n.Fenced = fact.Name, fact.Applied, fact.Fenced
	n.LagKnown, n.Lag = leader != "", max(newest, fact.Applied)-fact.Applied // only a leader knows what is committed
	if fact.HashIndex > 0 {
		n.Hash, n.HashIndex = fact.Hash.String(), fact.HashIndex
	}
	return n
}

// factName is under which the nodes tell each other what each knows of itself.
const factName = "health"

// fillNodeFact implements peer.FactSource.
func (d *healthMonitor) fillNodeFact(f *membership.NodeFact) {
	local := d.localFacts()
	f.DiskFree, f.DiskSize = local.Disk.Free, local.Disk.Size
	f.SetExtra(factName, json.RawMessage(local.Brief().Encode()))
}

// addAgentFacts is the source of what is known of the agents: the leader pulls them.
func (d *healthMonitor) addAgentFacts(_ context.Context, f *health.Facts) {
	for i := range f.Nodes {
		if n := &f.Nodes[i]; n.Leader {
			f.Agents = n.Agents
		}
	}
}

// roomyMember names a member other than this one with space on its disk.
func (d *healthMonitor) roomyMember() string {
	report, ok := d.watch.Last()
	if !ok {
		return ""
	}
	for i := range report.Facts.Nodes {
		n := &report.Facts.Nodes[i]
		if !n.Self && n.Voter && report.Heard(n) && (n.Disk.Level == health.LevelNormal || n.Disk.Level == health.LevelWarn) {
			return n.ID
		}
	}
	return ""
}

// addStoreFacts is the source of what the store of this node holds. It is counted again
// only when something was applied.
func (d *healthMonitor) addStoreFacts(_ context.Context, f *health.Facts) {
	view, err := d.agg.store.View()
	if err != nil {
		f.Unknown = append(f.Unknown, "the store cannot be read: "+err.Error())
		return
	}
	defer func() {
		if err := view.Close(); err != nil {
			d.agg.set.Log.Error("close a view", "error", err)
		}
	}()
	f.Cluster, _ = view.Cluster()
	index, _ := view.Applied()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.data.Known || d.data.Index != index {
		data := health.Data{Known: true, Index: index, Records: view.Count()}
		setStoreCounts(view.Anomalies(), &data)
		if err := countSources(view, &data); err != nil {
			f.Unknown = append(f.Unknown, "the store cannot be read: "+err.Error())
			return
		}
		d.data = data
		if err := d.learnSources(view, f.Now); err != nil {
			f.Unknown = append(f.Unknown, "the store cannot be read: "+err.Error())
		}
	}
	f.Data = d.data
	f.Acknowledged = d.acknowledged
	f.Data.Lacking, f.Data.Negative = d.missingRuns(f.Now), d.survey.List()
	for _, s := range d.silences.Silent(record.FromStd(f.Now)) {
		f.Data.Silent = append(f.Data.Silent, health.Silent{Agent: s.Source.Agent, Source: s.Source.String(), Since: s.Since.Std(), Allowed: time.Duration(s.Allowed) * time.Microsecond})
	}
}

// addRestoredAccess says that tokens are valid and agents are pulled from because a snapshot has
// them.
func (d *healthMonitor) addRestoredAccess(_ context.Context, f *health.Facts) {
	r, err := store.With(d.agg.store, func(v *store.View) (enrol.Restored, error) { return enrol.FindRestored(v, f.Now) })
	if err != nil {
		f.Unknown = append(f.Unknown, "the tokens and the agents that have joined cannot be read: "+err.Error())
		return
	}
	made := r.Made.UTC().Format("2006-01-02 15:04 MST")
	if r.Tokens > 0 {
		f.Others = append(f.Others, health.Finding{
			Severity: health.Warning, ID: "tokens-restored", Count: int64(r.Tokens), Since: r.Made,
			What: fmt.Sprintf("%s valid as in the snapshot of %s that was restored, even if revoked or used since", tokenPhrase(r.Tokens), made),
			Do:   "bursar token list   # bursar token revoke those that must not be valid; then acknowledge \"tokens-restored\" in the block health",
		})
	}
	if n := len(r.Agents); n > 0 {
		f.Others = append(f.Others, health.Finding{
			Severity: health.Warning, ID: "agents-restored", Count: int64(n), Since: r.Made,
			What: fmt.Sprintf("%s of the snapshot of %s that was restored; whether any was removed since is not known: %s", agentPhrase(n), made, strings.Join(r.Agents, ", ")),
			Do:   "bursar agents remove NAME   # each that was removed since; then acknowledge \"agents-restored\" in the block health",
		})
	}
}

func agentPhrase(n int) string {
	if n == 1 {
		return "1 joined agent is"
	}
	return fmt.Sprintf("%d joined agents are", n)
}

func tokenPhrase(n int) string {
	if n == 1 {
		return "1 token is"
	}
	return fmt.Sprintf("%d tokens are", n)
}

// learnSources learns how often sources speak.
func (d *healthMonitor) learnSources(view *store.View, now time.Time) error {
	agents, err := view.Agents()
	if err != nil {
		return err
	}
	counters, err := view.Counters()
	d.silences.Look(record.FromStd(now), agents, counters)
	return err
}

// lackingDays is how far back days that lack runs are spoken of.
const lackingDays = 35 * 24 * time.Hour

// missingRuns are the days of late that lack runs.
func (d *healthMonitor) missingRuns(now time.Time) (list []health.Lacking) {
	days, _ := d.days.Days(completeness.Window{From: record.FromStd(now.Add(-lackingDays)), To: record.FromStd(now)})
	for _, s := range completeness.Stretches(days) {
		list = append(list, health.Lacking{
			Agent: s.Source.Agent, Source: s.Source.String(), From: s.From.Std(), To: s.To.Std(), Runs: s.Missing, Unread: s.Unread, Shared: s.Shared, Remedy: s.Remedy(),
		})
	}
	return list
}

// setStoreCounts takes over what the store has counted.
func setStoreCounts(odd store.Anomalies, data *health.Data) {
	data.Quarantined, data.Conflicts, data.Waiting, data.Gaps = int(odd.Quarantined), int(odd.Conflicts), int(odd.Waiting), int(odd.Gaps)
	data.OldestQuarantined, data.NewestGap = stdTime(odd.OldestQuarantined), stdTime(odd.NewestGap)
}

// countSources finds the source that is most behind, and those whose counters do
// not add up.
func countSources(view *store.View, data *health.Data) error {
	cursors, err := view.Agents()
	if err != nil {
		return err
	}
	for i := range cursors {
		for _, w := range cursors[i].Watermarks {
			if at := stdTime(w.CompleteTo); !at.IsZero() && (data.CompleteTo.IsZero() || at.Before(data.CompleteTo)) {
				data.CompleteTo, data.Late = at, w.Source.String()
			}
		}
	}
	counters, err := view.Counters()
	for _, c := range counters {
		if !c.Counts.Conserved() {
			data.Lost = append(data.Lost, c.Source.String())
		}
	}
	return err
}

// stdTime turns a time of the store into one of the library; zero when there is none.
func stdTime(t record.Time) time.Time {
	if !t.Present() {
		return time.Time{}
	}
	return t.Std()
}
