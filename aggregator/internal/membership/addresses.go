package membership

import (
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
)

// AddressOf returns the address at which this node dials a member first: that which the
// configuration has for its name, or else that of the members' list.
func (p *Peer) AddressOf(s cluster.Server) string {
	if _, addr := p.file.Configured(p.conf.Peers, s.ID); addr != "" {
		return addr
	}
	return s.Addr
}

// Misplaced is a node that says it is at another address than the one at which this node
// dials it.
type Misplaced struct {
	Name        string
	Dialled, Is string
}

// Misplaced returns the members and the configured nodes whose address is another one, as
// those say that were heard lately, sorted by name.
func (p *Peer) Misplaced() (list []Misplaced) {
	members := map[string]cluster.Server{}
	for _, m := range p.conf.Node.Members() {
		members[m.ID] = m.Server
	}
	for _, f := range p.roster.Others() {
		dialled := p.conf.Peers[f.Name]
		if m, ok := members[f.ID]; ok && dialled == "" {
			dialled = m.Addr
		}
		if dialled != "" && f.Addr != "" && f.Addr != dialled && time.Since(f.Seen) < heardLately {
			list = append(list, Misplaced{Name: f.Name, Dialled: dialled, Is: f.Addr})
		}
	}
	return list
}
