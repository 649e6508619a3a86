package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/membership"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// snapshots implements api.Snapshots.
type snapshots struct {
	shop    *archive.Archiver
	replica *replica
	// restored is told when the state was taken back, or may have been.
	restored chan struct{}
	// seed is the archive that a new cluster begins with; "" is none.
	seed string
}

// newSnapshots makes the shop of this node. Its scratch directory lies beside the
// store, so that images are hard links.
func (a *Aggregator) newSnapshots() (*snapshots, error) {
	dir := a.set.DataDir
	shop := &archive.Archiver{
		Applied: func() uint64 { index, _ := a.store.Applied(); return index },
		Store:   a.store, Scratch: filepath.Join(dir, "scratch"), Node: a.set.Name, Version: a.set.Version, Now: time.Now,
		Free: func() (int64, error) { return spareSpace(dir, a.replica.guard.Marks().ReadOnly) },
		Amend: func(image *store.Image, m archive.Meta) ([]store.Document, error) {
			return enrol.AmendSnapshot(image, m.Made)
		},
	}
	return &snapshots{shop: shop, replica: a.replica, restored: make(chan struct{}, 1), seed: a.set.BootstrapFrom}, shop.Sweep()
}

// spareSpace is the space on the disk of dir beyond what stays free.
func spareSpace(dir string, least uint64) (int64, error) {
	now, err := health.MeasureDisk(dir)
	if err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(now.Free) - int64(least), nil
}

// Save implements api.Snapshots.
func (s *snapshots) Save(ctx context.Context) (*archive.Image, error) {
	if err := s.replica.waitLinearizable(ctx); err != nil {
		return nil, err
	}
	return s.shop.Image()
}

// Restore implements api.Snapshots.
func (s *snapshots) Restore(ctx context.Context, from io.Reader, foreign bool) (*api.Restore, error) {
	if !s.replica.node.IsLeader() {
		return nil, s.notLeaderError()
	}
	own, before := "", &accessInstaller{replica: s.replica}
	if !foreign {
		own, _ = s.replica.store.Cluster()
	}
	restored, err := s.shop.Restore(ctx, from, own, before)
	var done *api.Restore
	if restored != nil {
		done = &api.Restore{Restored: *restored}
	}
	switch {
	case err == nil && foreign:
		done.Unverified, err = s.restoredAgents()
	case err == nil:
		done.Removed, err = s.restoreAccess(ctx, before.was)
	}
	if done != nil {
		select {
		case s.restored <- struct{}{}:
		default:
		}
	}
	if errors.Is(err, cluster.ErrNotLeader) && !errors.Is(err, api.ErrAccess) { // after which it is restored
		return nil, s.notLeaderError()
	}
	return done, err
}

// accessInstaller installs a snapshot that has arrived and is sound, and keeps what was valid until
// then.
type accessInstaller struct {
	replica *replica
	was     enrol.Access
}

// Install implements [archive.Installer].
func (a *accessInstaller) Install(ctx context.Context, dir string) (err error) {
	a.was, err = store.With(a.replica.store, func(v *store.View) (enrol.Access, error) { return enrol.ReadAccess(v) })
	if err != nil {
		return err
	}
	return a.replica.node.Install(ctx, dir)
}

// restoreAccess has the restored cluster take what was valid before, whether or not the request
// that ordered the restore is still there. It returns the agents that were removed since.
func (s *snapshots) restoreAccess(ctx context.Context, was enrol.Access) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	removed, err := store.With(s.replica.store, func(v *store.View) ([]string, error) { return was.Put(ctx, v, s.replica.Write) })
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrAccess, err)
	}
	return removed, nil
}

// restoredAgents are the agents that the cluster pulls from because the snapshot has them.
func (s *snapshots) restoredAgents() ([]string, error) {
	r, err := store.With(s.replica.store, func(v *store.View) (enrol.Restored, error) { return enrol.FindRestored(v, time.Now()) })
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrAccess, err)
	}
	return r.Agents, nil
}

// notLeaderError is an error that says which node leads.
func (s *snapshots) notLeaderError() error {
	leader := s.replica.node.Leader()
	if leader.ID == "" {
		return fmt.Errorf("%w, and none does at present", api.ErrElsewhere)
	}
	if f, ok := s.replica.nodeFact(leader.ID); ok {
		return fmt.Errorf("%w; %s does: ask that node (its raft address is %s)", api.ErrElsewhere, f.Name, leader.Addr)
	}
	return fmt.Errorf("%w; the node at %s does: ask that one", api.ErrElsewhere, leader.Addr)
}

// errSeeding keeps writes away until the archive is in place.
var errSeeding = errors.New("the cluster is about to begin with a snapshot")

// checkSeeded returns an error unless the archive that the cluster begins with is in place.
func (s *snapshots) checkSeeded() error {
	if s.seed == "" {
		return nil
	}
	if id, _ := s.replica.store.Cluster(); id == "" {
		return errSeeding
	}
	return nil
}

// seedCluster begins a new cluster with the archive. A cluster that has begun already is
// left alone.
func (s *snapshots) seedCluster(ctx context.Context) error {
	if s.checkSeeded() == nil {
		return nil
	}
	file, err := os.Open(s.seed)
	if err != nil {
		return fmt.Errorf("begin with a snapshot: %w", err)
	}
	defer file.Close()
	if _, err := s.shop.Restore(ctx, file, "", s.replica.node); err != nil {
		return fmt.Errorf("begin with the snapshot %s: %w", s.seed, err)
	}
	return nil
}

// ErrNotEmpty says that a node that was to begin with a snapshot has data already.
var ErrNotEmpty = errors.New("-bootstrap-from is for a node without data")

// checkSeed refuses an archive for a node that has data, and one that does not
// read.
func (a *Aggregator) checkSeed() error {
	if a.set.BootstrapFrom == "" {
		return nil
	}
	if id, _ := a.store.Cluster(); id != "" {
		return fmt.Errorf("%w: %s holds data of cluster %s; start without the option to go on with them, or restore into the running cluster by `bursar snapshot restore`", ErrNotEmpty, a.set.DataDir, id)
	}
	file, err := os.Open(a.set.BootstrapFrom)
	if err != nil {
		return fmt.Errorf("-bootstrap-from: %w", err)
	}
	defer file.Close()
	if _, err := archive.ReadMeta(file); err != nil {
		return fmt.Errorf("-bootstrap-from: %s: %w", a.set.BootstrapFrom, err)
	}
	return nil
}

// ErrFounded says that nodes which run have a cluster, and that none is to be
// founded beside it.
var ErrFounded = errors.New("-bootstrap-from founds a new cluster, and there is one")

// checkPeers refuses to begin with an archive while another node of the
// configuration belongs to a cluster: agents know a cluster by its id, and two of
// one id would let them drop what the other one lacks.
func (a *Aggregator) checkPeers(id string) error {
	if a.set.BootstrapFrom == "" || a.transport == nil {
		return nil
	}
	founded, silent := membership.Found(context.Background(), membership.Config{Name: a.set.Name, Peers: a.set.Raft.Peers, Dial: a.transport.DialPeer, Log: a.set.Log}, id)
	if len(founded) == 0 {
		if len(silent) > 0 {
			a.set.Log.Warn("-bootstrap-from: nodes do not answer; none of them may run with data of the old cluster", "nodes", strings.Join(silent, ", "))
		}
		return nil
	}
	var nodes, names []string
	for _, f := range founded {
		nodes, names = append(nodes, f.String()), append(names, f.Name)
	}
	return fmt.Errorf(`%w: %s. Nothing was changed here.
To take that cluster back to the snapshot, on its leader: bursar snapshot restore %s
To give that cluster up and begin anew, first on each of %s: systemctl stop bursar && mv %s %s.old`,
		ErrFounded, strings.Join(nodes, "; "), a.set.BootstrapFrom, strings.Join(names, ", "), a.set.DataDir, a.set.DataDir)
}

// readIncarnation returns the life of the cluster that goes on here.
func (r *replica) readIncarnation() (archive.Incarnation, error) {
	return store.With(r.store, func(v *store.View) (archive.Incarnation, error) { return archive.ReadIncarnation(v) })
}
