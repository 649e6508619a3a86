package membership

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ErrFolder is wrapped by the error of [CheckFolder]. The message has the remedy.
var ErrFolder = errors.New("this data folder is another node's")

// CheckFolder returns an error when a data folder is that of another node that the
// configuration names. The folder of a name that it does not name may have been renamed.
func CheckFolder(dataDir, id, name string, peers map[string]string) error {
	book, err := OpenBook(dataDir, id)
	if err != nil {
		return err
	}
	owner := book.nameOf(id)
	if _, configured := peers[owner]; !configured || owner == name {
		return nil
	}
	return fmt.Errorf("%w: %s is the data folder of %s, and the name of this node is %s; nothing was changed in it. Start %s with its own data folder, or with an empty one: then it joins the cluster as a new node",
		ErrFolder, dataDir, owner, name, name)
}

// nameOf returns the name of the node with that id; "" when the book does not say.
func (b *Book) nameOf(id string) string {
	for _, n := range slices.Concat(b.page.Nodes, b.page.Oath.Held.Nodes) {
		if n.ID == id {
			return n.Name
		}
	}
	return ""
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
