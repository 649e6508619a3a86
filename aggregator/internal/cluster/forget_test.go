package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/bursar-accounting/bursar/proto/filetest"
)

// forget takes all entries of now out of the log's files, as soon as another one has followed.
func forget(t *testing.T, n *Node) {
	t.Helper()
	upTo := n.Stats().Applied
	propose(t, n, "behind")
	if err := n.ForgetLog(t.Context(), upTo); err != nil {
		t.Fatal(err)
	}
}

func TestForgetLog_SmallAndLargeEntries_AreInNoFileAndTheNodeGoesOn(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), &memory{}
	n := lead(t, lone(t, dir, state))
	var want []string
	for round := range 3 {
		name := fmt.Sprintf("mustermann%d", round)
		for i, size := range []int{10, 1000, 40_000, 100_000, 300_000, 20} {
			c := fmt.Sprintf("%s/%d/%s", name, i, strings.Repeat("x", size))
			propose(t, n.Node, c)
			want = append(want, c)
		}
		raft := n.conf.raftDir()
		if in := filetest.Containing(t, raft, name); len(in) == 0 {
			t.Fatal("no file of the log had the name: the test proves nothing")
		}
		forget(t, n.Node)
		want = append(want, "behind")
		if in := filetest.Containing(t, raft, name); len(in) > 0 {
			t.Errorf("round %d: the name is in %v", round, in)
		}
		info, err := os.Stat(n.conf.logPath())
		if err != nil || info.Size() > 256<<10 {
			t.Errorf("raft.db has not become smaller: %v, %v", info, err)
		}
		if round == 1 {
			n.stop(t)
			state = n.state.afterCrash()
			n = lead(t, lone(t, dir, state))
		}
	}
	if diff := cmp.Diff(want, n.state.commands()); diff != "" || n.state.repeats > 0 {
		t.Errorf("%d repeats, %d commands of %d", n.state.repeats, len(n.state.commands()), len(want))
	}
}

func TestForgetLog_LastEntry_Stays(t *testing.T) {
	t.Parallel()
	n := lead(t, lone(t, t.TempDir(), &memory{}))
	before := propose(t, n.Node, "before").Index
	last := propose(t, n.Node, "newest").Index
	for _, upTo := range []uint64{last, last + 5, last} { // the leader may append entries of its own
		if err := n.ForgetLog(t.Context(), upTo); err != nil && !strings.Contains(err.Error(), "was not cut yet") {
			t.Error(err)
		}
	}
	first, err1 := n.entries.FirstIndex()
	if end, err2 := n.entries.LastIndex(); errors.Join(err1, err2) != nil || first <= before || first > end {
		t.Errorf("the log has entries %d to %d, and %d was forgotten: %v, %v", first, end, before, err1, err2)
	}
	n.stop(t)
	if err := n.ForgetLog(t.Context(), last); err == nil {
		t.Error("a node that has ended has cut its log")
	}
}

// Members whose logs are cut all the time have one history, and a member that was away for
// longer than the logs reach back is brought up.
func TestForgetLog_WhileThreeNodesWrite_TheyStayEqual(t *testing.T) {
	t.Parallel()
	f := newFleetOf(t, 3, calm).found(3)
	stop := make(chan struct{})
	var forgetting sync.WaitGroup
	forgetting.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			s := f.ships[i%3]
			upTo := s.Stats().Applied
			if err := s.ForgetLog(t.Context(), upTo-min(upTo, 2)); err != nil && !strings.Contains(err.Error(), "was not cut yet") {
				t.Error(err)
			}
		}
	})
	f.say(0, 300)
	close(stop)
	forgetting.Wait()
	away := f.followers()[0]
	away.stop()
	f.say(300, 310)
	upTo := f.leader().Stats().Applied - 1
	for _, s := range f.up() {
		eventually(t, "the log is cut", func() bool { return s.ForgetLog(t.Context(), upTo) == nil })
	}
	away.restart()
	f.agree(numbered(0, 310), f.ships...)
}

// Whatever comes between, a rewritten file has what the former one had.
func TestBoltLog_RewrittenWhileItIsUsed_HoldsTheSame(t *testing.T) {
	t.Parallel()
	rng, dir := rand.New(rand.NewPCG(3, 1)), t.TempDir()
	b, err := openBoltLog(raftboltdb.Options{Path: dir + "/raft.db", NoSync: true, MsgpackUseNewTimeFormat: true})
	if err != nil {
		t.Fatal(err)
	}
	want := raft.NewInmemStore()
	var readers sync.WaitGroup
	stop := make(chan struct{})
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := b.FirstIndex(); err != nil {
				t.Error(err)
			}
			if _, err := b.Get([]byte("vote")); err != nil && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
				t.Error(err)
			}
		}
	})
	var last uint64
	for i := range 60 {
		var logs []*raft.Log
		for range 1 + rng.IntN(10) {
			last++
			logs = append(logs, someEntry(rng, last, 1))
		}
		err := errors.Join(b.StoreLogs(logs), want.StoreLogs(logs), b.Set([]byte("vote"), []byte{byte(i)}))
		if first, _ := want.FirstIndex(); i%5 == 4 {
			upTo := first + rng.Uint64N(last-first)
			err = errors.Join(err, b.DeleteRange(first, upTo), want.DeleteRange(first, upTo))
		}
		if i%3 == 0 { // what a rewrite that was killed has left is in the way
			err = errors.Join(err, os.WriteFile(dir+"/raft.db.new", []byte("cut short"), 0o600), b.rewrite())
		}
		if err != nil {
			t.Fatal(err)
		}
		sameLog(t, b, want)
		if vote, err := b.Get([]byte("vote")); err != nil || !bytes.Equal(vote, []byte{byte(i)}) {
			t.Fatal(vote, err)
		}
	}
	close(stop)
	readers.Wait()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.rewrite(); !errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		t.Error(err)
	}
	again, err := openBoltLog(b.options)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	sameLog(t, again, want)
}

// BenchmarkBoltLog_Rewrite is how long entries wait while a log of 64 MiB is rewritten.
func BenchmarkBoltLog_Rewrite(b *testing.B) {
	log, err := openBoltLog(raftboltdb.Options{Path: b.TempDir() + "/raft.db", MsgpackUseNewTimeFormat: true})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	data := make([]byte, 64<<10)
	for i := range uint64(1024) {
		if err := log.StoreLog(&raft.Log{Index: i + 1, Data: data}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if err := log.rewrite(); err != nil {
			b.Fatal(err)
		}
	}
}
