package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Raft is the block raft { … }: the cluster of which this node is one.
type Raft struct {
	// Listen is where the other nodes of the cluster reach this one.
	Listen *hcl.Address `hcl:"listen"`
	// Peers are the addresses of all nodes, this one included, by the names in
	// their certificates. All nodes of a new cluster have the same.
	Peers map[string]hcl.Address `hcl:"peers,optional"`
	// PeersAt is where Peers is written.
	PeersAt hcl.Range `hcl:"peers,attr_range"`
	// Multiplier stretches the timeouts of elections for slow networks and
	// disks; 0 is 1.
	Multiplier int `hcl:"multiplier,optional" min:"0" max:"10"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// maxPeers bounds the nodes of a cluster: each write waits for most of them.
const maxPeers = 9

// Listens reports whether other nodes reach this one.
func (a *Aggregator) Listens() bool { return a.Raft != nil && a.Raft.Listen != nil && a.TLS != nil }

// PeerAddresses are the addresses of all nodes by name; nil where this node is
// all there is.
func (a *Aggregator) PeerAddresses() map[string]string {
	if a.Raft == nil || len(a.Raft.Peers) == 0 {
		return nil
	}
	out := map[string]string{}
	for name, addr := range a.Raft.Peers {
		out[name] = addr.String()
	}
	return out
}

// validateRaft reports what is wrong with the cluster.
func (a *Aggregator) validateRaft() hcl.Diagnostics {
	r := a.Raft
	if r == nil {
		return nil
	}
	var diags hcl.Diagnostics
	diags.Extend(r.validatePeers(a.Name.Value))
	diags.Extend(a.validateListen())
	return diags
}

func (r *Raft) validatePeers(self string) hcl.Diagnostics {
	var diags hcl.Diagnostics
	if _, ok := r.Peers[self]; len(r.Peers) > 0 && !ok {
		diags.Add(hcl.Errorf(r.PeersAt, "this node is not among the peers", "raft.peers lists all nodes of the cluster, this one included, by the names in their certificates; %q is not there", self))
	}
	if len(r.Peers) > maxPeers {
		diags.Add(hcl.Errorf(r.PeersAt, "too many peers", "%d nodes; three survive the loss of one and five that of two, and each more makes writes slower: at most %d", len(r.Peers), maxPeers))
	}
	if len(r.Peers) == 2 {
		diags.Add(hcl.Warnf(r.PeersAt, "a cluster of two", "two nodes stop when either is lost, which is worse than one; three survive the loss of one"))
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.Peers)) {
		addr := r.Peers[name]
		if err := identity.CheckName(name); err != nil {
			diags.Add(hcl.Errorf(r.PeersAt, `invalid value for "peers"`, "%v", err))
		}
		if addr.Host == "" || addr.Port == 0 {
			diags.Add(hcl.Errorf(addr.Range, `invalid value for "peers"`, "%s = %s cannot be connected to; expected host:port", name, addr))
		}
		if other := seen[addr.String()]; other != "" {
			diags.Add(hcl.Errorf(addr.Range, "duplicate address", "%s and %s have the address %s", other, name, addr))
		}
		seen[addr.String()] = name
	}
	return diags
}

func (a *Aggregator) validateListen() hcl.Diagnostics {
	r := a.Raft
	switch {
	case len(r.Peers) > 1 && r.Listen == nil:
		return hcl.Diagnostics{hcl.Errorf(r.Range, "nothing listens", "the other nodes of raft.peers need an address to reach this one: listen = \"0.0.0.0:8701\"")}
	case len(r.Peers) > 1 && a.TLS == nil:
		return hcl.Diagnostics{hcl.Errorf(r.Range, "raft needs TLS", "nodes talk to each other with certificates only; add tls { ca cert key } to the aggregator block (bursar tls makes certificates)")}
	case r.Listen != nil && a.TLS == nil:
		return hcl.Diagnostics{hcl.Warnf(r.Listen.Range, "nothing listens here", "nodes talk to each other with certificates only; without tls { ca cert key }, raft.listen has no effect")}
	case r.Listen != nil && len(r.Peers) == 0:
		return hcl.Diagnostics{hcl.Errorf(r.Range, "no peers", "other nodes must know how they reach this one: peers = { %q = \"host:port\" }", a.Name.Value)}
	}
	return nil
}

// isSame reports whether nothing differs that a running node cannot take over.
func (r *Raft) isSame(o *Raft) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Multiplier == o.Multiplier && fmt.Sprint(r.Listen) == fmt.Sprint(o.Listen) &&
		maps.EqualFunc(r.Peers, o.Peers, sameAddress)
}
