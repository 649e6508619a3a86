package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/proto/porttest"
	"github.com/bursar-accounting/bursar/proto/racetest"
)

func TestThreeFreshNodesFoundAClusterOverTLS(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	for _, s := range f.ships {
		if !s.Fresh() || len(s.Members()) != 0 {
			t.Fatal("a new node is not fresh")
		}
	}
	f.found(3)
	f.say(0, 10)
	f.agree(numbered(0, 10), f.ships...)
	for _, s := range f.ships {
		if s.Fresh() {
			t.Fatal("a founder is fresh")
		}
		if err := s.Bootstrap([]Server{s.server()}); !errors.Is(err, ErrNotFresh) {
			t.Fatal(err)
		}
	}
	leader := f.leader()
	for _, m := range leader.Members() {
		if !m.Voter || m.Leader != (m.ID == leader.ID()) {
			t.Fatal(m)
		}
	}
	eventually(t, "the leader knows how far each is", func() bool {
		reach := leader.Reach()
		return len(reach) == 3 && !slices.ContainsFunc(reach, func(r Reach) bool {
			return r.Match < leader.Stats().Last || r.LastContact.IsZero()
		})
	})
}

func TestEachNodeMayBeKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	for i, s := range f.ships {
		f.say(10*i, 10*i+5)
		s.kill()
		f.say(10*i+5, 10*i+10)
		s.restart()
		f.agree(numbered(0, 10*i+10), s)
	}
	f.agree(numbered(0, 30), f.ships...)
}

func TestANodeThatIsCutOffCatchesUpAndALeaderThatIsGivesUp(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 3)
	old := f.leader()
	f.part(old)
	eventually(t, "the old leader gives up", func() bool { return !old.IsLeader() })
	f.say(3, 6)
	if f.leader() == old {
		t.Fatal("it leads alone")
	}
	f.heal()
	f.agree(numbered(0, 6), f.ships...)
	f.part(f.followers()[0])
	f.say(6, 9)
	f.heal()
	f.agree(numbered(0, 9), f.ships...)
}

func TestAClusterOfOneGrowsToThree(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(1)
	f.say(0, 5)
	for _, s := range f.ships[1:] {
		if err := f.leader().Add(t.Context(), s.server()); err != nil {
			t.Fatal(err)
		}
	}
	f.voters(3)
	f.agree(numbered(0, 5), f.ships...)
	f.ships[0].kill()
	f.say(5, 8)
	f.agree(numbered(0, 8), f.up()...)
}

func TestANewVoterLeadsThoughTheOtherHasNotHeardOfItsVote(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(1)
	leader, late, young := f.ships[0], f.ships[1], f.ships[2]
	eventually(t, "it is added", func() bool { return f.leader().Add(t.Context(), late.server()) == nil })
	f.voters(2)
	leader.stop()
	leader.conf.Stable = time.Hour // the test itself gives the vote
	leader.restart()
	eventually(t, "the first leads again", func() bool {
		if now := f.leader(); now != leader {
			_ = now.TransferLeadership(t.Context())
			return false
		}
		return leader.Add(t.Context(), young.server()) == nil
	})
	f.say(0, 3)
	f.agree(numbered(0, 3), f.ships...)
	f.part(late)
	if err := leader.raft.AddVoter(raft.ServerID(young.ID()), raft.ServerAddress(young.addr), 0, 0).Error(); err != nil {
		t.Fatal(err)
	}
	leader.kill()
	f.heal()
	f.say(3, 5)
	f.agree(numbered(0, 5), late, young)
}

func TestAWipedNodeComesBackAsANewOneInItsPlace(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 5)
	gone := f.followers()[0]
	old := gone.ID()
	gone.kill()
	f.say(5, 7)
	gone.wipe()
	gone.restart()
	if gone.ID() == old || !gone.Fresh() {
		t.Fatal("it is not new")
	}
	eventually(t, "it is added in the place of the old one", func() bool {
		return f.leader().Add(t.Context(), gone.server()) == nil
	})
	f.voters(3)
	f.agree(numbered(0, 7), gone)
	if slices.ContainsFunc(f.leader().Members(), func(m Member) bool { return m.ID == old }) {
		t.Fatal("the old one is a member still")
	}
}

func TestAWipedNodeIsNotTakenForTheOldOne(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 3)
	gone := f.followers()[0]
	gone.kill()
	gone.wipe()
	gone.restart()
	f.say(3, 20)
	leader := f.leader()
	_, err := leader.trans.Raft().Dial(joinIDAndAddress("old", raft.ServerAddress(gone.addr)), dialLimit)
	if !errors.Is(err, ErrOtherNode) {
		t.Fatal(err)
	}
	if !gone.Fresh() || len(gone.state.commands()) > 0 {
		t.Fatal("it was written to under its old id")
	}
}

func TestALiveAddressIsNotGivenToAnotherNode(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 1)
	live := f.followers()[0]
	if err := f.leader().Add(t.Context(), Server{ID: "new", Addr: live.addr}); err == nil || !strings.Contains(err.Error(), "answers") {
		t.Fatal(err)
	}
	if err := f.leader().Add(t.Context(), Server{ID: live.ID(), Addr: "127.0.0.1:1"}); err == nil {
		t.Fatal("a member was added again under another address")
	}
	if err := f.leader().Add(t.Context(), live.server()); err != nil {
		t.Fatalf("a member that is one already: %v", err)
	}
}

func TestAMemberIsRemovedUnlessTheQuorumWouldGo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 3)
	rest := f.followers()
	dead, alive := rest[0], rest[1]
	if err := alive.Remove(t.Context(), dead.ID()); !errors.Is(err, ErrNotLeader) {
		t.Fatal(err)
	}
	dead.kill()
	eventually(t, "the live one cannot go", func() bool {
		return errors.Is(f.leader().Remove(t.Context(), f.followers()[0].ID()), ErrQuorum)
	})
	for range 2 { // who is no member any more is no error
		eventually(t, "the dead one goes", func() bool { return f.leader().Remove(t.Context(), dead.ID()) == nil })
	}
	f.voters(2)
	f.say(3, 5)
	f.agree(numbered(0, 5), f.up()...)
	leader := f.leader()
	if err := leader.Remove(t.Context(), leader.ID()); err == nil {
		t.Fatal("the leader removed itself")
	}
	eventually(t, "another leads and removes it", func() bool {
		now := f.leader()
		if now == leader {
			_ = now.TransferLeadership(t.Context()) // a busy machine: once more
			return false
		}
		return now.Remove(t.Context(), leader.ID()) == nil
	})
	f.voters(1)
	f.say(5, 6)
}

func TestAMemberMovesToAnotherAddress(t *testing.T) {
	racetest.SkipRaft(t)
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 3)
	moved := f.followers()[0]
	moved.stop()
	moved.addr = porttest.Free(t)
	moved.restart()
	if err := f.leader().Readdress(t.Context(), moved.server()); err != nil {
		t.Fatal(err)
	}
	f.say(3, 6)
	f.agree(numbered(0, 6), f.ships...)
	if err := f.leader().Readdress(t.Context(), Server{ID: "nobody", Addr: "x:1"}); err == nil {
		t.Fatal("who is no member was moved")
	}
}

func TestANodeThatWasAloneWithoutAListenerGetsItsAddressWhenItHasOne(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 0)
	dir, state := t.TempDir(), &memory{}
	n := lead(t, lone(t, dir, state))
	propose(t, n.Node, "c0")
	n.stop(t)
	s := f.launch()
	s.stop()
	s.conf.DataDir, s.state = dir, state
	s.restart()
	f.say(1, 3)
	eventually(t, "the address is right", func() bool { return s.Members()[0].Addr == s.addr })
	other := f.launch()
	if err := f.leader().Add(t.Context(), other.server()); err != nil {
		t.Fatal(err)
	}
	f.voters(2)
	f.agree(numbered(0, 3), f.ships...)
}

func TestAPlannedTransferLeavesNoOutcomeUnknown(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	leader := f.leader()
	stop, unknown := make(chan struct{}), make(chan error, 8)
	for range cap(unknown) {
		go func() {
			for {
				select {
				case <-stop:
					unknown <- nil
					return
				default:
				}
				if _, err := leader.Propose(t.Context(), []byte("x")); errors.Is(err, ErrUnknownOutcome) {
					unknown <- err
					return
				} else if errors.Is(err, ErrNotLeader) {
					unknown <- nil
					return
				}
			}
		}()
	}
	err := leader.TransferLeadership(t.Context())
	close(stop)
	for range cap(unknown) {
		if err := <-unknown; err != nil {
			t.Error(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestANodeDoesNotListenUnderAnothersID(t *testing.T) {
	f := newFleet(t, 1)
	s := f.ships[0]
	state := &memory{}
	if _, err := Open(Config{DataDir: t.TempDir(), State: state, Stream: s.trans.Raft()}); err == nil || !strings.Contains(err.Error(), "transport is for node") {
		t.Fatal(err)
	}
}

func TestAFounderThatVotesWhileItFoundsIsMarkedAsAMember(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	s := f.ships[0]
	var all errgroup.Group
	for range 8 { // as Bootstrap and the first vote for another founder do
		all.Go(func() error {
			for range 20 {
				if err := s.markMember(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if member, err := readMarker(s.conf.DataDir, s.ID()); err != nil || !member {
		t.Fatal(member, err)
	}
}
