package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// copied is a copy of a stopped node's data directory and of what its state had on disk.
type copied struct {
	dir   string
	state *memory
}

func (s *ship) backup() copied {
	s.fleet.t.Helper()
	dir := filepath.Join(s.fleet.t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(s.conf.DataDir)); err != nil {
		s.fleet.t.Fatal(err)
	}
	return copied{dir: dir, state: s.state.afterCrash()}
}

// takeBack puts a copy in the place of the stopped node's data.
func (s *ship) takeBack(c copied) {
	s.conf.DataDir, s.state = c.dir, c.state
}

// recorded waits until the node has recorded all that it has committed.
func (s *ship) recorded() {
	s.fleet.t.Helper()
	eventually(s.fleet.t, "the progress is recorded", func() bool {
		s.progress.mu.Lock()
		defer s.progress.mu.Unlock()
		return s.progress.body.Commit >= s.raft.CommitIndex()
	})
}

// pair is a cluster of three of which one lags, another goes back to a copy from that
// time, and the third, which has everything, is down.
func pair(t *testing.T, protected bool) (f *fleet, whole, back, lagging *ship) {
	t.Helper()
	f = newFleet(t, 3)
	if !protected {
		for _, s := range f.ships {
			s.stop()
			s.conf.ProgressDir = ""
			s.restart()
		}
	}
	f.found(3)
	f.say(0, 10)
	f.agree(numbered(0, 10), f.ships...)
	whole, back, lagging = f.ships[0], f.ships[1], f.ships[2]
	lagging.stop()
	back.stop()
	old := back.backup()
	back.restart()
	if err := whole.standForElection(); err != nil { // the copy has never heard of its term, which others may lead again
		t.Fatal(err)
	}
	f.say(10, 30)
	f.agree(numbered(0, 30), whole, back)
	if protected {
		back.recorded()
	}
	back.kill()
	whole.kill()
	back.takeBack(old)
	back.restart()
	lagging.restart()
	return f, whole, back, lagging
}

func TestOlderCopy_WithLaggingPeer_VotesOnlyAfterCatchingUp(t *testing.T) {
	t.Parallel()
	f, whole, back, lagging := pair(t, true)
	if back.Behind() == nil {
		t.Fatal("a copy that lacks 20 committed commands was not noticed")
	}
	for range 3 {
		if err := lagging.standForElection(); err != nil {
			t.Fatal(err)
		}
		if err := back.standForElection(); !errors.Is(err, errBehind) && (err == nil || !strings.Contains(err.Error(), errBehind.Error())) {
			t.Fatalf("it stands for election: %v", err)
		}
		eventually(t, "the election is over", func() bool { return lagging.Stats().State != "Leader" })
		if back.IsLeader() || lagging.IsLeader() {
			t.Fatal("two nodes that lack what was committed lead")
		}
	}
	whole.restart()
	f.agree(numbered(0, 30), f.ships...)
	eventually(t, "it has its vote back", func() bool { return back.Behind() == nil })
	whole.kill()
	f.say(30, 35)
	f.agree(numbered(0, 35), back, lagging)
	back.stop()
	back.restart()
	if err := back.Behind(); err != nil {
		t.Errorf("after another start: %v", err)
	}
}

// The same without the record loses what was committed: the test above would notice.
func TestOlderCopy_WithoutRecord_LosesCommittedCommands(t *testing.T) {
	t.Parallel()
	f, _, back, lagging := pair(t, false)
	f.leader()
	f.agree(numbered(0, 10), back, lagging)
}

func TestOlderCopy_StartedAgain_IsStillBehind(t *testing.T) {
	t.Parallel()
	_, _, back, _ := pair(t, true)
	for range 2 {
		back.stop()
		back.restart()
		if back.Behind() == nil {
			t.Fatal("a restart has given it its vote back")
		}
	}
}

func TestOlderCopy_OfALoneNode_GoesOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1).found(1)
	f.say(0, 5)
	s := f.ships[0]
	s.stop()
	old := s.backup()
	s.restart()
	f.say(5, 9)
	s.stop()
	s.takeBack(old)
	s.restart()
	f.leader()
	f.agree(numbered(0, 5), s)
	eventually(t, "it is not behind", func() bool { return s.Behind() == nil })
}

func TestOlderCopy_FromBeforeTheClusterGrew_IsRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(1)
	first := f.ships[0]
	f.say(0, 5)
	first.stop()
	old := first.backup()
	first.restart()
	for _, s := range f.ships[1:] {
		if err := f.leader().Add(t.Context(), s.server()); err != nil {
			t.Fatal(err)
		}
	}
	f.voters(3)
	f.say(5, 9)
	first.recorded()
	first.stop()
	conf := first.conf
	conf.DataDir, conf.State, conf.Images = old.dir, old.state, old.state
	conf.Stream = nil
	refused(t, conf, ErrMismatch, "before the cluster had 3 voters")
}

func TestProgress_CannotBeRecorded_NodeRunsAndSaysSo(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), &memory{}
	conf := lone(t, dir, state)
	conf.ProgressDir = filepath.Join(dir, "node.id", "progress") // node.id is a file
	n := lead(t, conf)
	propose(t, n.Node, "a")
	if n.Unprotected() == nil || n.Behind() != nil {
		t.Errorf("unprotected: %v, behind: %v", n.Unprotected(), n.Behind())
	}
	if got := state.commands(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q", got)
	}
}
