package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// promoteEvery is how often the leader looks whether a new node is ready.
	promoteEvery = 500 * time.Millisecond
	// promoteLag is how many entries a new node may be behind.
	promoteLag = 250
	// changeLimit is how long raft may take to accept a change of the members.
	changeLimit = 10 * time.Second
)

// Reach is what the leader knows of a member.
type Reach struct {
	ID string
	// Match is the newest entry that the member is known to hold; 0 when this
	// leader does not know yet.
	Match uint64
	// LastContact is when the member last answered; zero for never.
	LastContact time.Time
}

// Fresh reports whether this node has no history: neither log nor State holds
// anything and it has never voted. Only such a node may be bootstrapped, or
// added under its id.
func (n *Node) Fresh() bool {
	at, _ := n.machine.statePosition()
	return n.raft.LastIndex() == 0 && at == 0 && n.raft.CurrentTerm() <= 1
}

// Bootstrap makes this node a founder of a new cluster of these voters, itself
// among them. All founders are given the same list, and each only once it is
// known that all have promised it: two lists would be two clusters. ErrNotFresh
// says that the node has a history, or has just got one from another founder.
func (n *Node) Bootstrap(servers []Server) error {
	list, err := foundingConfiguration(n.id, servers)
	if err != nil {
		return err
	}
	if at, _ := n.machine.statePosition(); at > 0 {
		return ErrNotFresh
	}
	err = n.raft.BootstrapCluster(list).Error()
	if errors.Is(err, raft.ErrCantBootstrap) {
		return ErrNotFresh
	}
	if err != nil {
		return fmt.Errorf("cluster: bootstrap: %w", err)
	}
	if err := n.rememberMembership(false); err != nil {
		n.haltNode(err)
		return err
	}
	n.tasks.Go(n.leadAlone)
	return nil
}

// Members returns the newest configuration that this node knows, committed or
// not; empty on a fresh node.
func (n *Node) Members() []Member {
	leader := n.Leader()
	var out []Member
	for _, m := range n.currentServers() {
		out = append(out, Member{
			Server: Server{ID: string(m.ID), Addr: string(m.Address)},
			Voter:  m.Suffrage == raft.Voter, Leader: string(m.ID) == leader.ID,
		})
	}
	return out
}

// Reach returns what this node, the leader, knows of each member; nil on another
// node.
func (n *Node) Reach() []Reach {
	if n.raft.State() != raft.Leader {
		return nil
	}
	term := n.raft.CurrentTerm()
	var out []Reach
	for _, m := range n.currentServers() {
		if string(m.ID) == n.id {
			out = append(out, Reach{ID: n.id, Match: n.raft.LastIndex(), LastContact: time.Now()})
			continue
		}
		c := n.trans.peers.contactOf(string(m.ID), term)
		out = append(out, Reach{ID: string(m.ID), Match: c.match, LastContact: c.at})
	}
	return out
}

// Add makes a fresh node a member: without a vote at first, and with one as soon
// as it has caught up, which the leader sees to. It returns when the node is a
// member; one that is a member already is no error.
//
// A node at the address of a member that answers no more takes its place: the
// old one is removed first, for a new id at its address says that its data are
// gone. Errors: ErrNotLeader, ErrQuorum, ErrStopped, those of ctx.
func (n *Node) Add(ctx context.Context, s Server) error {
	if err := checkID(s.ID); err != nil || s.Addr == "" {
		return fmt.Errorf("cluster: add node %q at %q: %w", s.ID, s.Addr, errors.Join(err, errNoAddr(s.Addr)))
	}
	return n.changeMembers(ctx, func(now []Member) error {
		for _, m := range now {
			switch {
			case m.ID == s.ID && m.Addr == s.Addr:
				return nil
			case m.ID == s.ID:
				return fmt.Errorf("cluster: node %s is a member at %s; change its address instead", m.ID, m.Addr)
			case m.Addr == s.Addr && n.countAnswering([]string{m.ID}, 1) > 0:
				return fmt.Errorf("cluster: %s is the address of node %s, which answers", s.Addr, m.ID)
			case m.Addr == s.Addr:
				if err := n.removeMember(m, now); err != nil {
					return err
				}
			}
		}
		return n.awaitChange("add", s.ID, n.raft.AddNonvoter(raft.ServerID(s.ID), raft.ServerAddress(s.Addr), 0, changeLimit))
	})
}

func errNoAddr(addr string) error {
	if addr == "" {
		return errors.New("no address")
	}
	return nil
}

// Remove ends the membership of a node; one that is no member is no error. It is
// refused with ErrQuorum where the voters that answer would not be a majority of
// those that stay. The leader does not remove itself: it hands the leadership on
// and returns ErrNotLeader, so that the new leader is asked.
func (n *Node) Remove(ctx context.Context, id string) error {
	if id == n.id && n.IsLeader() {
		if err := n.TransferLeadership(ctx); err != nil {
			return fmt.Errorf("cluster: remove node %s, which leads: %w", id, err)
		}
		return ErrNotLeader
	}
	return n.changeMembers(ctx, func(now []Member) error {
		for _, m := range now {
			if m.ID == id {
				return n.removeMember(m, now)
			}
		}
		return nil
	})
}

func (n *Node) removeMember(m Member, now []Member) error {
	var stay []string
	for _, o := range now {
		if o.Voter && o.ID != m.ID {
			stay = append(stay, o.ID)
		}
	}
	need := len(stay)/2 + 1
	if alive := n.countAnswering(stay, need); m.Voter && alive < need {
		return fmt.Errorf("%w: without node %s only %d of %d voters would answer, and %d are needed; bring a node back or add one first",
			ErrQuorum, m.ID, alive, len(stay), need)
	}
	return n.awaitChange("remove", m.ID, n.raft.RemoveServer(raft.ServerID(m.ID), 0, changeLimit))
}

// countAnswering waits until so many of the members have answered since the call, and
// not for long, and returns how many have.
func (n *Node) countAnswering(ids []string, enough int) (alive int) {
	begun := time.Now()
	end := begun.Add(500 * time.Millisecond * time.Duration(n.conf.Multiplier))
	for {
		alive = 0
		for _, id := range ids {
			if id == n.id || n.trans.peers.contactOf(id, 0).at.After(begun) {
				alive++
			}
		}
		if alive >= enough || time.Now().After(end) || !waitOrStop(20*time.Millisecond, n.stopping) {
			return alive
		}
	}
}

// Readdress gives a member, which keeps its id, another address: the caller knows that it
// answers there. Another member that had the address until now, as when two exchange theirs,
// has its id for an address until its own is known.
func (n *Node) Readdress(ctx context.Context, s Server) error {
	if s.Addr == "" {
		return fmt.Errorf("cluster: node %s: %w", s.ID, errNoAddr(""))
	}
	return n.changeMembers(ctx, func(now []Member) error {
		i := slices.IndexFunc(now, func(m Member) bool { return m.ID == s.ID })
		if i < 0 {
			return fmt.Errorf("cluster: node %s is not a member", s.ID)
		}
		// Raft knows no two members of one address.
		if j := slices.IndexFunc(now, func(m Member) bool { return m.Addr == s.Addr }); j >= 0 && j != i {
			if err := n.readdressMember(now[j], Server{ID: now[j].ID, Addr: now[j].ID}); err != nil {
				return err
			}
		}
		return n.readdressMember(now[i], s)
	})
}

func (n *Node) readdressMember(m Member, s Server) error {
	id, addr := raft.ServerID(s.ID), raft.ServerAddress(s.Addr)
	switch {
	case m.Addr == s.Addr:
		return nil
	case m.Voter:
		return n.awaitChange("readdress", s.ID, n.raft.AddVoter(id, addr, 0, changeLimit))
	default:
		return n.awaitChange("readdress", s.ID, n.raft.AddNonvoter(id, addr, 0, changeLimit))
	}
}

// changeMembers runs one change of the members at a time.
func (n *Node) changeMembers(ctx context.Context, do func(now []Member) error) error {
	select {
	case n.changing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-n.stopping:
		return ErrStopped
	}
	return n.awaitEnd(ctx, func() error {
		defer func() { <-n.changing }()
		if !n.IsLeader() {
			return ErrNotLeader
		}
		return do(n.Members())
	})
}

// awaitChange waits until a change of the members is committed.
func (n *Node) awaitChange(what, id string, f raft.IndexFuture) error {
	err := f.Error()
	switch {
	case err == nil:
		n.logger.Info("the members have changed", "change", what, "member", id, "entry", f.Index())
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return ErrNotLeader
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("cluster: %s node %s: %w", what, id, context.DeadlineExceeded)
	default:
		return fmt.Errorf("cluster: %s node %s: %w: %w", what, id, ErrUnknownOutcome, err)
	}
}

// maintainMembers is the leader's own duty: new nodes that have caught up get their vote,
// and the leader's own address is kept right.
func (n *Node) maintainMembers(ctx context.Context) error {
	since := map[string]time.Time{}
	for tick := time.NewTicker(promoteEvery); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return nil
		case <-tick.C:
		}
		n.correctOwnAddress(ctx)
		n.promoteReady(ctx, since)
	}
}

// correctOwnAddress corrects the address of a node that had no listener, or another
// one, when it became a member.
func (n *Node) correctOwnAddress(ctx context.Context) {
	if _, ok := n.conf.Stream.(*raftStream); !ok {
		return
	}
	want := string(n.trans.LocalAddr())
	for _, m := range n.Members() {
		if m.ID == n.id && m.Addr != want {
			if err := n.Readdress(ctx, Server{ID: n.id, Addr: want}); err != nil {
				n.logger.Warn("the own address could not be changed", "from", m.Addr, "to", want, "error", err)
			}
		}
	}
}

// promoteReady gives a vote to each new node that has kept up for a while.
func (n *Node) promoteReady(ctx context.Context, since map[string]time.Time) {
	now := time.Now()
	for _, m := range n.Members() {
		if m.Voter || !n.keepsUp(m.ID) {
			delete(since, m.ID)
			continue
		}
		if _, ok := since[m.ID]; !ok {
			since[m.ID] = now
		}
		if now.Sub(since[m.ID]) < n.conf.Stable {
			continue
		}
		if err := n.promoteMember(ctx, m); err != nil {
			n.logger.Warn("a new node could not be given its vote", "member", m.ID, "error", err)
		}
	}
}

func (n *Node) keepsUp(id string) bool {
	c := n.trans.peers.contactOf(id, n.raft.CurrentTerm())
	return c.match > 0 && c.match+promoteLag >= n.raft.LastIndex() && n.countAnswering([]string{id}, 1) > 0
}

func (n *Node) promoteMember(ctx context.Context, m Member) error {
	return n.changeMembers(ctx, func(now []Member) error {
		for _, o := range now {
			if o.ID == m.ID && !o.Voter {
				return n.awaitChange("promote", m.ID, n.raft.AddVoter(raft.ServerID(m.ID), raft.ServerAddress(o.Addr), 0, changeLimit))
			}
		}
		return nil
	})
}
