package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/aggregator/internal/audit"
	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/aggregator/internal/login"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"

	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/membership"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"

	"github.com/bursar-accounting/bursar/aggregator/internal/web"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/ratelog"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Settings are what an aggregator runs with.
type Settings struct {
	Name    string
	DataDir string
	// MinFree is how many bytes stay free on the file system of DataDir; zero
	// is the smaller of 4 GiB and a twentieth of it.
	MinFree int64
	Version string
	// Listeners of the REST interface, open already: the unix socket of local
	// administration (nil: none), plain ones, and those that take mutual TLS.
	Local net.Listener
	Plain []net.Listener
	TLS   []net.Listener
	Keys  *identity.Keys // nil: no agents can be pulled, and no TLS listener
	// Authority lets machines join by tokens; nil: none can.
	Authority *identity.Authority
	// Raft is the cluster; the zero value is this node alone. With a listener,
	// Keys are required.
	Raft Raft
	// Files is what this node's files say of what the cluster shares, such as the
	// agents to pull from; nil is nothing.
	Files *clusterconfig.Document
	// Actions are what of its own files this node's actions need.
	Actions Actions
	// Watch says how closely the node watches itself and its peers.
	Watch WatchSettings
	// Access has the rules of access; the zero value denies everything.
	Access access.Rules
	// BootstrapFrom is an archive with which this node, which is empty, founds a
	// cluster of its own; "": none.
	BootstrapFrom string
	// Acknowledged are findings that operators know of.
	Acknowledged []health.Acknowledgement
	// Backup is the plan of this node's own backups; the zero value is none.
	Backup archive.Plan

	// Compaction says when what nothing shows any more leaves the disk.
	Compaction Compaction

	IgnoreExisting bool
	MaxBody        int64
	AnswerMemory   int64 // of all answers together; 0 is a share of what the process may take
	UsageMemory    int64 // of the sums by day of all zones together; 0 is 512 MiB
	Patience       time.Duration
	Gauges         api.GaugeOptions // Reader and Log are set here

	// Resolver finds agents by DNS; nil is the machine's.
	Resolver *net.Resolver

	// Ballast bounds the file that keeps room on the disk of DataDir; 0 is none.
	Ballast uint64
	// Exit ends the process where it cannot end in order; nil is os.Exit.
	Exit func(code int)

	Log *slog.Logger
}

// Aggregator is a node with everything that belongs to it.
type Aggregator struct {
	set       Settings
	registry  *prometheus.Registry
	store     *store.Store
	transport *cluster.Transport // nil: no other node reaches this one
	replica   *replica
	snapshots *snapshots
	backups   *archive.Schedule
	peer      *membership.Peer
	manager   *ingest.Manager
	arrivals  *ingest.Arrivals // of agents that dial in
	server    *api.Server
	gauges    *api.Gauges
	keeper    *clusterconfig.Keeper
	usages    *sums.Keeper
	accounts  *accounting.Keeper
	kinds     atomic.Pointer[record.Kinds] // of components that clients post
	// stopsExpire is a time.Duration: see expireStops.
	stopsExpire atomic.Int64
	// retention says how long records keep names: see removeOldNames.
	retention atomic.Pointer[erasure.Policy]
	gate      *access.Gate
	bearers   *bearers
	trail     *audit.Log
	login     *login.Service
	doctor    *healthMonitor
	actors    *actors
	actions   *action.Manager
	conns     *api.Conns
	pulled    pulled
	// askedKeys are meta keys of the configuration: see usageKeys.
	askedKeys atomic.Pointer[[]string]
	// zone is the time zone of the site; nil is UTC.
	zone atomic.Pointer[time.Location]
}

// Open opens the state on disk and puts the node together. The caller calls Run,
// which closes it.
func Open(set Settings) (*Aggregator, error) {
	a, err := newAggregator(set)
	return a, addRemedy(set.DataDir, err)
}

func newAggregator(set Settings) (*Aggregator, error) {
	set.Log = slog.New(enrol.HideInLog(set.Log.Handler()))
	a := &Aggregator{set: set, registry: prometheus.NewRegistry()}
	a.setKinds(nil)
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo(set.Version))
	err := membership.Fenced(set.DataDir)
	if err != nil {
		return nil, errors.Join(err, set.Raft.close())
	}
	a.store, err = store.Open(store.Options{Dir: filepath.Join(set.DataDir, "store"), Logger: set.Log, Registerer: a.registry, Fatal: a.exitOnStoreError, MaySpill: a.maySpill})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), set.Raft.close())
	}
	if a.accounts, err = accounting.NewKeeper(a.store, set.Log); err != nil {
		return nil, errors.Join(err, set.Raft.close(), a.store.Close())
	}
	if err := a.mayStart(); err != nil {
		return nil, errors.Join(err, set.Raft.close(), a.store.Close())
	}
	if err := a.openClusterNode(); err != nil {
		return nil, errors.Join(err, a.store.Close())
	}
	a.makeGuards()
	a.makeServices()
	return a, nil
}

func buildInfo(version string) prometheus.Collector {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "bursar_build_info", Help: "The version that runs."}, []string{"version"})
	g.WithLabelValues(version).Set(1)
	return g
}

// makeServices makes what reads and writes the replicated state.
func (a *Aggregator) makeServices() {
	a.arrivals = ingest.NewArrivals(a.set.Keys)
	a.manager = &ingest.Manager{Arrivals: a.arrivals, Version: func() uint32 { _, v := a.store.Cluster(); return v }, Cursors: a.replica, Commit: a.replica, Keys: a.set.Keys, Log: a.set.Log, Metrics: ingest.NewMetrics(a.registry), Renew: a.renewCertificate}
	a.peer.Renews(a.signRenewal)
	pulls := agents{a.manager, a.peer}
	pulls.answerPeers()
	a.usages = sums.NewKeeper(sums.Options{Views: a.store, Life: lifeOf, Dir: filepath.Join(a.set.DataDir, "usage"), MaySave: a.maySpill, MaxBytes: int(a.set.UsageMemory),
		Whole: a.set.Compaction.Whole, Files: a.set.Compaction.Files}, a.set.Log, a.registry)
	reader := access.Reader{Source: a.replica, Usages: a.usages, Reaches: &access.Reaches{}, Pseudonyms: a.currentPseudonyms}
	a.set.Gauges.Reader, a.set.Gauges.Log = reader, a.set.Log
	a.gauges = api.NewGauges(a.set.Gauges, a.registry)
	newCapacityGauges(a.accounts, a.store, a.set.Log, a.registry)
	a.makeActions()
	a.makeConfigKeeper()
	a.makeBackupSchedule()
	a.makeHealthMonitor()
	a.trail = audit.NewLog(audit.Options{Node: a.set.Name, Write: a.replica.Write, View: nodeDocuments{a.store}, Months: func() int { return a.retentionPolicy().KeptAudit() }, Log: a.set.Log})
	pages := &web.Pages{Reader: reader, Health: a.doctor.Report, Node: a.set.Name, Version: a.set.Version, Log: a.set.Log, Derivation: a.accounts.Derivation, Zone: a.siteZone, Keys: a.ownKeys}
	a.conns = api.NewConns(api.PerAddress, a.registry)
	who := a.principalFunc()
	pages.Framers, pages.Views = a.gate.Framers, a.gate.Views
	a.login = login.New(a.gate.OIDC, logins{a}, a.noteLogin, a.set.Log)
	a.server = api.New(api.Options{
		Reader: reader, Writer: a.replica, Who: who, Log: a.set.Log, Sessions: &a.gate.Sessions, Pages: pagesAddress(a.set.Plain),
		Metrics:    promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{Registry: a.registry}),
		Agreed:     func() uint32 { _, v := a.store.Cluster(); return v },
		Registerer: a.registry, Health: a.doctor, Memory: a.answerMemory(),
		Kinds: func() record.Kinds { return *a.kinds.Load() }, IgnoreExisting: a.set.IgnoreExisting, MaxBody: a.set.MaxBody, Agents: pulls, Configured: a.manager.Names, Usage: reader, Derivation: a.accounts.Derivation, UsageKeys: a.usageKeys, Zone: a.siteZone, Retention: a.retentionPolicy, Directory: a.currentDirectory, Money: a.currentMoney, Capacity: a.accounts.Capacity, Days: a.doctor.days.Days, Found: a.doctor.recordFindings, Common: a.doctor.survey.Common, Silences: &a.doctor.silences, Version: a.set.Version,
		Patience: a.set.Patience, Extra: a.withLogin(pages.Routes()), Login: a.login, Config: sharedConfig{a}, Snapshots: a.snapshots,
		Members: newMembers(a.replica), Enrolment: a.newEnrolment(), Audit: a.trail, Checker: a, Cut: ingest.Cut, Actions: a.actions, Archives: a.actors.readArchives,
	})
	pages.V1 = v1.API{Caller: a.server}
	a.replica.node.OnLeader(a.leadCluster)
	a.replica.node.OnLeader(a.maintainConfig)
	a.replica.node.OnLeader(newBudgetGauges(a, reader).updateGauges)
	a.replica.node.OnLeader(a.actions.Lead)
	a.replica.node.OnLeader(a.expireStops)
	a.replica.node.OnLeader(a.removeOldNames)
	a.startCompaction()
}

// leadCluster is what this node does while it leads. After a restore all of it begins
// again: the cursors of all agents have gone back.
func (a *Aggregator) leadCluster(ctx context.Context) error {
	for {
		if err := a.leadUntilRestored(ctx); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// maintainConfig keeps the cluster's configuration that of this node's files. It is written in
// the newest form that all nodes read.
func (a *Aggregator) maintainConfig(ctx context.Context) error {
	a.replica.guards.gate.Raise(ctx)
	return a.keeper.Lead(ctx)
}

// leadUntilRestored leads until ctx ends or the state was restored.
func (a *Aggregator) leadUntilRestored(ctx context.Context) error {
	if err := a.snapshots.seedCluster(ctx); err != nil {
		return err
	}
	id, err := a.replica.establishCluster(ctx)
	if err != nil {
		return err
	}
	a.replica.guards.gate.Raise(ctx)
	if err := a.keeper.Reconcile(ctx); err != nil {
		return err
	}
	life, err := a.replica.readIncarnation()
	if err != nil {
		return err
	}
	a.set.Log.Info("this node leads", "cluster", id, "restores", life.Restores)
	a.manager.Cluster, a.manager.Restored = id, life.Restores > 0
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-a.snapshots.restored:
			cancel()
		case <-ctx.Done():
		}
	}()
	if a.set.Keys == nil {
		<-ctx.Done()
		return nil
	}
	return a.manager.Run(ctx)
}

// Run serves until ctx ends, and stops in order: the leadership goes elsewhere,
// requests end, the state is closed. An error means that the node had to stop.
func (a *Aggregator) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g.Go(func() error { return a.runNode(alive) })
	g.Go(func() error {
		defer stop() // the node outlives what the requests need of it
		err := a.serveListeners(ctx)
		a.flushTrail(alive)
		return err
	})
	g.Go(func() error { return a.trail.Run(alive) })
	g.Go(func() error { return a.gauges.Run(ctx) })
	g.Go(func() error { return a.backups.Run(ctx) })
	g.Go(func() error { return a.rewriteFiles(ctx) })
	g.Go(func() error { return a.keeper.Run(ctx) })
	g.Go(func() error { return a.followJoined(ctx) })
	g.Go(func() error { return a.followSRV(ctx) })
	g.Go(func() error { return a.bearers.noteUses(ctx) })
	g.Go(func() error { return a.login.Run(ctx) })
	g.Go(func() error { return a.usages.Run(ctx) })
	g.Go(func() error { return a.accounts.Run(ctx) })
	if a.set.Keys != nil {
		g.Go(func() error { return a.set.Keys.Run(ctx, a.set.Log) })
		g.Go(func() error { return a.renewOwn(ctx) })
	}
	g.Go(func() error { return a.doctor.runMonitor(ctx) })
	g.Go(func() error {
		err := a.replica.guards.runGuards(ctx)
		if err != nil {
			stop() // a fenced node has no vote from now on
		}
		return err
	})
	return addRemedy(a.set.DataDir, errors.Join(g.Wait(), a.store.Close()))
}

// nodeDocuments has the documents of a node's store.
type nodeDocuments struct{ store *store.Store }

// Documents implements audit.View.
func (n nodeDocuments) Documents(space, prefix string, yield func(store.Document) error) error {
	_, err := store.With(n.store, func(v *store.View) (struct{}, error) { return struct{}{}, v.Documents(space, prefix, yield) })
	return err
}

// flushTime bounds the last commit of the audit log.
const flushTime = 2 * time.Second

// flushTrail commits what the audit log has gathered, before the node ends.
func (a *Aggregator) flushTrail(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	if err := a.trail.Flush(ctx); err != nil {
		a.set.Log.Warn("the last entries of the audit log are lost; changes are in this log", "error", err)
	}
}

// refusals writes what net/http has to say of clients into the log.
type refusals struct {
	log      *slog.Logger
	diallers ratelog.Logger // of those who dialled in and are no agents
}

// Write implements io.Writer.
func (r *refusals) Write(p []byte) (int, error) {
	// Of the protocols on these listeners only that of agents demands a certificate.
	if text := string(p); strings.Contains(text, "accepts agent only") || strings.Contains(text, "client didn't provide a certificate") {
		r.diallers.Tell(r.log, slog.LevelWarn, "refused a connection; only agents with a certificate of the cluster's authority may dial in", "error", text)
		return len(p), nil
	}
	r.log.Warn("a connection ended", "error", string(p))
	return len(p), nil
}
