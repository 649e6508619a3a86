package membership

import (
	"context"
	"fmt"
)

// Founded is another node of the configuration that belongs to a cluster already.
type Founded struct {
	Listed

	// Cluster is the cluster's id; "" when it has none yet.
	Cluster string
	Members []Listed
}

// String names the node and its cluster, for people.
func (f Founded) String() string {
	return fmt.Sprintf("%s at %s belongs to cluster %q of %s", f.Name, f.Addr, f.Cluster, describeNodes(f.Members))
}

// helloTries is how often a node is asked that does not answer.
const helloTries = 3

// Found asks all other nodes of a configuration whether they belong to a cluster
// already, before this one founds another. It returns those that do, but for the
// cluster of which the node with the id me is a member itself, and the names of
// those that did not answer. Of conf only Name, Peers, Dial and Log count.
func Found(ctx context.Context, conf Config, me string) (founded []Founded, silent []string) {
	p := &Peer{me: Listed{Name: conf.Name, ID: me, Addr: conf.Peers[conf.Name]}, links: newLinks(conf.Dial), conf: conf}
	defer p.links.closeAll()
	for name, addr := range conf.Peers {
		p.peers = append(p.peers, Listed{Name: name, Addr: addr})
	}
	sortListed(p.peers)
	var hellos map[string]Hello
	for range helloTries {
		if hellos = p.askHellos(ctx, p.peers); len(hellos) == len(p.peers)-1 {
			break
		}
	}
	for _, n := range p.peers {
		h, heard := hellos[n.Name]
		switch {
		case n.Name == conf.Name:
		case !heard:
			silent = append(silent, n.Name)
		case !h.Fresh && !hasID(h.Members, me):
			founded = append(founded, Founded{Listed: h.Listed, Cluster: h.Cluster, Members: h.Members})
		}
	}
	return founded, silent
}

func hasID(nodes []Listed, id string) bool {
	for _, n := range nodes {
		if n.ID == id {
			return true
		}
	}
	return false
}
