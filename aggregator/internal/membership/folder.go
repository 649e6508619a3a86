package membership

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrFolder is wrapped by the error of [PeerFile.CheckOwner]. The message has the remedy.
var ErrFolder = errors.New("this data folder is another node's")

// CheckOwner returns an error when the data folder of the file is that of another node than
// the one with that name, and peers has both. The folder of a name that it does not have may
// have been renamed.
func (b *PeerFile) CheckOwner(name string, peers map[string]string) error {
	owner := b.NameOf(b.currentPage().Node)
	if _, configured := peers[owner]; !configured || owner == name {
		return nil
	}
	return fmt.Errorf("%w: %s is the data folder of %s, and the name of this node is %s; nothing was changed in it. Start %s with its own data folder, or with an empty one: then it joins the cluster as a new node",
		ErrFolder, filepath.Dir(b.path), owner, name, name)
}

// heardLately is for how long what a node says of itself counts.
const heardLately = 5 * exchangeEvery

// Strayed says which configured nodes have data of another cluster than this one; ""
// when no such node was heard of lately.
func (p *Peer) Strayed() string {
	if p.conf.Store == nil {
		return ""
	}
	own, _ := p.conf.Store.Cluster()
	others := map[string][]string{}
	for _, f := range p.roster.Others() {
		if _, configured := p.conf.Peers[f.Name]; configured && f.Cluster != "" && f.Cluster != own && time.Since(f.Seen) < heardLately {
			others[f.Cluster] = append(others[f.Cluster], f.Name)
		}
	}
	if own == "" || len(others) == 0 {
		return ""
	}
	var list []string
	for _, cluster := range slices.Sorted(maps.Keys(others)) {
		slices.Sort(others[cluster])
		list = append(list, fmt.Sprintf("%s of cluster %s", strings.Join(others[cluster], " and "), cluster))
	}
	return fmt.Sprintf("the data folder of this node, %s, is of cluster %s, and other configured nodes have data %s", p.conf.DataDir, own, strings.Join(list, ", "))
}
