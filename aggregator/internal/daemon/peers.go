package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/membership"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Raft are the settings of the cluster that the node belongs to. The zero value
// is a cluster of this node alone.
type Raft struct {
	// Listener is where the other nodes reach this one, open already; nil: none
	// does.
	Listener net.Listener
	// Peers are the addresses of all nodes by name, this one included.
	Peers      map[string]string
	Multiplier int
}

// raftSettings opens the raft listener of a configuration.
func raftSettings(a *config.Aggregator) (Raft, error) {
	if !a.Listens() {
		return Raft{}, nil
	}
	l, err := net.Listen("tcp", a.Raft.Listen.String())
	if err != nil {
		return Raft{}, fmt.Errorf("%s:%d: raft.listen: %w", a.Raft.Listen.Range.Filename, a.Raft.Listen.Range.Start.Line, err)
	}
	return Raft{Listener: l, Peers: a.PeerAddresses(), Multiplier: a.Raft.Multiplier}, nil
}

// close closes the listener of settings that are not used.
func (r Raft) close() error {
	if r.Listener == nil {
		return nil
	}
	return r.Listener.Close()
}

// openClusterNode opens the node of the cluster. A node that is all there is founds its
// cluster at once; one with peers gathers them first.
func (a *Aggregator) openClusterNode() (err error) {
	if err := a.checkSeed(); err != nil {
		return errors.Join(err, a.set.Raft.close())
	}
	id, err := cluster.Identity(a.set.DataDir)
	if err != nil {
		return errors.Join(err, a.set.Raft.close())
	}
	file, err := membership.OpenPeerFile(a.set.DataDir, id)
	if err == nil {
		err = file.CheckOwner(a.set.Name, a.set.Raft.Peers)
	}
	if err != nil {
		return errors.Join(err, a.set.Raft.close())
	}
	guard, err := newDiskGuard(a.set.DataDir, a.set.MinFree, a.registry, a.set.Log)
	if err != nil {
		return errors.Join(err, a.set.Raft.close())
	}
	conf := cluster.Config{
		DataDir: a.set.DataDir, ProgressDir: filepath.Clean(a.set.DataDir) + "-progress", State: a.store, Images: a.store, Logger: a.set.Log, Metrics: a.registry, Multiplier: a.set.Raft.Multiplier,
	}
	if a.transport, err = a.listenPeers(id, file); err != nil {
		return err
	}
	if err := a.checkPeers(id); err != nil {
		return errors.Join(err, a.closeTransport())
	}
	if a.transport != nil {
		conf.Stream = a.transport.Raft()
	}
	if len(a.set.Raft.Peers) < 2 || a.set.BootstrapFrom != "" {
		conf.Bootstrap = []cluster.Server{{ID: id, Addr: a.raftAddress()}}
	}
	node, err := cluster.Open(conf)
	if err != nil {
		return errors.Join(fmt.Errorf("open the node: %w", err), a.closeTransport())
	}
	a.replica = &replica{node: node, store: a.store, guard: guard}
	if a.snapshots, err = a.newSnapshots(); err != nil {
		stop, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return errors.Join(err, node.Shutdown(stop), a.closeTransport())
	}
	a.peer = membership.New(a.peerConfig(file))
	a.replica.peer = a.peer
	node.OnLeader(a.peer.MaintainMembers)
	return nil
}

// raftAddress is by which the others reach this node; its name where none does.
func (a *Aggregator) raftAddress() string {
	if addr := a.set.Raft.Peers[a.set.Name]; addr != "" {
		return addr
	}
	return a.set.Name
}

// listenPeers opens the transport to the other nodes, nil where there is none.
func (a *Aggregator) listenPeers(id string, file *membership.PeerFile) (*cluster.Transport, error) {
	if a.set.Raft.Listener == nil {
		return nil, nil //nolint:nilnil // a node alone has none
	}
	t, err := cluster.NewTransport(cluster.TransportConfig{
		Listener: a.set.Raft.Listener, Advertise: a.raftAddress(), ID: id, Logger: a.set.Log,
		Server: a.set.Keys.Server(identity.Aggregator), Client: a.set.Keys.Client(identity.Aggregator, ""),
		Certificates: a.set.Keys,
		Configured:   func(id string) (name, addr string) { return file.Configured(a.set.Raft.Peers, id) },
	})
	if err != nil {
		return nil, fmt.Errorf("listen to the other nodes: %w", err)
	}
	return t, nil
}

func (a *Aggregator) closeTransport() error {
	if a.transport == nil {
		return nil
	}
	return a.transport.Close()
}

// peerConfig is this node among the others.
func (a *Aggregator) peerConfig(file *membership.PeerFile) membership.Config {
	conf := membership.Config{
		Name: a.set.Name, Peers: a.set.Raft.Peers, Joined: a.joinedNodes, DataDir: a.set.DataDir, File: file, Node: a.replica.node, Store: a.store,
		Refuse: a.checkWritable, Sources: []membership.FactSource{membership.FactFunc(a.ownFacts)}, Version: a.set.Version, Log: a.set.Log,
	}
	if a.transport != nil {
		conf.Listener, conf.Dial = a.transport.Peers(), a.transport.DialPeer
	}
	return conf
}

// checkWritable says why nothing may be written at present.
func (a *Aggregator) checkWritable() error {
	if err := a.snapshots.checkSeeded(); err != nil {
		return err
	}
	return a.replica.checkWritable()
}

// ownFacts are the facts that no other part knows of.
func (a *Aggregator) ownFacts(f *membership.NodeFact) {
	f.LogStalled = a.replica.node.LogStalled()
	if a.set.Keys != nil {
		f.CertEnds = a.set.Keys.Expires()
	}
	if a.set.Keys != nil {
		f.API = a.joinAddress()
	}
}

// runNode runs the node among the others until ctx ends or it must stop.
func (a *Aggregator) runNode(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.replica.node.Run(ctx) })
	g.Go(func() error { return a.peer.Run(ctx) })
	return errors.Join(g.Wait(), a.closeTransport())
}
