package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
)

func TestEveryProposalIsAppliedOnceAcrossRestarts(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	for round := range 3 {
		n := lead(t, lone(t, dir, state))
		for i := range 10 {
			res := propose(t, n.Node, fmt.Sprintf("c%d", round*10+i))
			if res.Value != round*10+i+1 || res.Index == 0 {
				t.Fatalf("round %d: %+v", round, res)
			}
		}
		n.stop(t)
		if n.state.repeats > 0 {
			t.Fatalf("round %d: %d entries came twice", round, n.state.repeats)
		}
		state = n.state.afterCrash()
	}
	if diff := cmp.Diff(numbered(0, 30), state.commands()); diff != "" {
		t.Fatal(diff)
	}
}

func TestAStateThatLostItsTailIsBroughtUpFromTheLog(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	n := lead(t, lone(t, dir, state))
	for _, c := range numbered(0, 5) {
		propose(t, n.Node, c)
	}
	if err := state.Flush(); err != nil {
		t.Fatal(err)
	}
	lagging := state.afterCrash()
	for _, c := range numbered(5, 20) {
		propose(t, n.Node, c)
	}
	n.stop(t)

	n = lead(t, lone(t, dir, lagging))
	if err := n.Linearizable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(numbered(0, 20), lagging.commands()); diff != "" || lagging.repeats > 0 {
		t.Fatalf("%d repeats, %s", lagging.repeats, diff)
	}
}

func TestAStateBehindTheShortenedLogIsRefused(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	n := lead(t, lone(t, dir, state))
	old := state.afterCrash()
	propose(t, n.Node, "a")
	takeSnapshot(t, n.Node)
	n.stop(t)
	refused(t, lone(t, dir, old), ErrMismatch, "lost data")
}

func TestAStateAheadOfTheLogIsRefused(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	n := lead(t, lone(t, dir, state))
	at := propose(t, n.Node, "a").Index
	n.stop(t)
	refused(t, lone(t, dir, &memory{live: content{Index: at + 100, Term: 2}}), ErrMismatch, "older than the other")
	refused(t, lone(t, dir, &memory{live: content{Index: at, Term: 77}}), ErrMismatch, "term 77")
	refused(t, lone(t, t.TempDir(), state), ErrMismatch, "is empty")
}

func refused(t *testing.T, conf Config, want error, text string) {
	t.Helper()
	n, err := Open(conf)
	if err == nil {
		n.Shutdown(t.Context())
		t.Fatal("opened")
	}
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v; want %v with %q", err, want, text)
	}
}

func TestTheLogIsShortenedOnlyBehindAFlush(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), &memory{}
	conf := lone(t, dir, state)
	conf.LogBytes, conf.TrailingBytes = 64<<10, 1
	n := lead(t, conf)
	for _, c := range numbered(0, 300) {
		propose(t, n.Node, c)
	}
	eventually(t, "the log is cut", func() bool {
		first, err := n.entries.FirstIndex()
		return err == nil && first > 100
	})
	if got := n.Stats(); got.Snapshot == 0 || state.flushes == 0 {
		t.Fatalf("%+v, %d flushes", got, state.flushes)
	}
	n.stop(t)

	again := lead(t, lone(t, dir, state.afterCrash()))
	propose(t, again.Node, "c300")
	if diff := cmp.Diff(numbered(0, 301), again.state.commands()); diff != "" {
		t.Fatal(diff)
	}
}

func TestAFlippedDigitStopsTheNodeAndNamesEntryAndFile(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	conf := lone(t, dir, state)
	n := lead(t, conf)
	propose(t, n.Node, "before")
	at := propose(t, n.Node, "COREHOURS=0000001234").Index
	n.stop(t)

	flip(t, conf.logPath(), "COREHOURS=0000001234", "COREHOURS=9000001234")
	refused(t, lone(t, dir, state.afterCrash()), ErrCorrupt, fmt.Sprintf("%s: entry %d", conf.logPath(), at))
	refused(t, lone(t, dir, &memory{}), ErrCorrupt, "checksum does not match")
}

func flip(t *testing.T, path, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(raw, []byte(from)) {
		t.Fatalf("%s: no %q: %v", path, from, err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(raw, []byte(from), []byte(to)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEntriesBeyondTheCapAreRefused(t *testing.T) {
	n := lead(t, lone(t, t.TempDir(), &memory{}))
	if _, err := n.Propose(t.Context(), make([]byte, MaxEntry+1)); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
	if _, err := n.Propose(t.Context(), make([]byte, MaxEntry)); err != nil {
		t.Fatal(err)
	}
}

func TestPipelinedProposalsKeepTheirOrder(t *testing.T) {
	conf := lone(t, t.TempDir(), &memory{})
	conf.MaxInFlight = 8
	n := lead(t, conf)
	var all []*Proposal
	for _, c := range numbered(0, 200) {
		p, err := n.Submit(t.Context(), []byte(c))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for i, p := range all {
		if res, err := p.Wait(t.Context()); err != nil || res.Value != i+1 {
			t.Fatalf("%d: %+v, %v", i, res, err)
		}
	}
}

func TestManyProposersAtOnceLoseNothing(t *testing.T) {
	n := lead(t, lone(t, t.TempDir(), &memory{}))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for k := range 20 {
				if _, err := n.Propose(t.Context(), fmt.Appendf(nil, "%d/%d", i, k)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := len(n.state.commands()); got != 320 {
		t.Fatalf("%d commands", got)
	}
}

func TestAStateThatCannotGoOnStopsTheNodeAndNothingMoreIsApplied(t *testing.T) {
	dir := t.TempDir()
	state := &memory{fail: "bad"}
	n := lead(t, lone(t, dir, state))
	propose(t, n.Node, "good")
	if _, err := n.Propose(t.Context(), []byte("bad")); !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, errBroken) {
		t.Fatalf("Propose: %v", err)
	}
	if err := <-n.done; !errors.Is(err, errBroken) {
		t.Fatalf("Run: %v", err)
	}
	if _, err := n.Propose(t.Context(), []byte("late")); !errors.Is(err, ErrStopped) {
		t.Fatalf("Propose afterwards: %v", err)
	}
	if diff := cmp.Diff([]string{"good"}, state.commands()); diff != "" {
		t.Fatal(diff)
	}

	mended := state.afterCrash()
	n = lead(t, lone(t, dir, mended))
	propose(t, n.Node, "next")
	if diff := cmp.Diff([]string{"good", "bad", "next"}, mended.commands()); diff != "" {
		t.Fatal(diff)
	}
}

func TestALostRaftLogIsNoticedAndTheRemedyIsTold(t *testing.T) {
	for name, lose := range map[string]func(string) error{
		"directory": os.RemoveAll,
		"file":      func(d string) error { return os.Remove(filepath.Join(d, "raft.db")) },
		"content":   func(d string) error { return os.Truncate(filepath.Join(d, "raft.db"), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, state := t.TempDir(), &memory{}
			conf := lone(t, dir, state)
			n := lead(t, conf)
			propose(t, n.Node, "a")
			n.stop(t)
			if err := lose(conf.raftDir()); err != nil {
				t.Fatal(err)
			}
			refused(t, lone(t, dir, state), ErrForgotten, "put "+conf.raftDir()+" back")
			refused(t, lone(t, dir, &memory{}), ErrForgotten, "move "+dir+" away")
		})
	}
}

func TestALostNodeIDIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	n := lead(t, lone(t, dir, &memory{}))
	n.stop(t)
	if err := os.Remove(filepath.Join(dir, identityFile)); err != nil {
		t.Fatal(err)
	}
	if id, err := Identity(dir); !errors.Is(err, ErrForgotten) {
		t.Fatalf("%q, %v", id, err)
	}
}

func TestFilesOfTwoNodesAreNotMixed(t *testing.T) {
	dir := t.TempDir()
	lead(t, lone(t, dir, &memory{})).stop(t)
	if err := writeSealed(filepath.Join(dir, identityFile), identity{ID: "another"}); err != nil {
		t.Fatal(err)
	}
	refused(t, lone(t, dir, &memory{}), ErrMismatch, "two nodes")
}

func TestABootstrapThatWasCutShortIsRepeated(t *testing.T) {
	dir := t.TempDir()
	conf := lone(t, dir, &memory{})
	n := newNode(conf.withDefaults(), conf.Bootstrap[0].ID)
	conf.Bootstrap = nil
	n.conf.Bootstrap = nil
	if err := n.openDisk(); err != nil {
		t.Fatal(err)
	}
	n.votes.voted = func() error { return nil }
	if err := errors.Join(n.votes.SetUint64([]byte(termKey), 1), n.closeDisk()); err != nil {
		t.Fatal(err)
	}
	propose(t, lead(t, lone(t, dir, &memory{})).Node, "a")
}

func TestASecondProcessOnTheSameDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	lead(t, lone(t, dir, &memory{}))
	conf := lone(t, dir, &memory{})
	conf.lockWait = time.Millisecond
	_, err := Open(conf)
	if err == nil || !strings.Contains(err.Error(), "another process") {
		t.Fatal(err)
	}
}

func TestADutyRunsWithTheTermAndBeginsAnewAfterAnError(t *testing.T) {
	t.Parallel()
	begun := make(chan int, 10)
	ended := make(chan error, 10)
	times := 0
	n := run(t, lone(t, t.TempDir(), &memory{}), func(ctx context.Context) error {
		times++
		begun <- times
		if times == 1 {
			return errBroken
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	})
	if a, b := <-begun, <-begun; a != 1 || b != 2 {
		t.Fatal(a, b)
	}
	n.stop(t)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestALeaderMayProposeInItsDuty(t *testing.T) {
	done := make(chan error, 1)
	var node *Node
	n, err := Open(lone(t, t.TempDir(), &memory{}))
	if err != nil {
		t.Fatal(err)
	}
	node = n
	n.OnLeader(func(ctx context.Context) error {
		_, err := node.Propose(ctx, []byte("first"))
		done <- err
		return err
	})
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- n.Run(ctx) }()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
}

func TestAContextThatEndsBeforeTheProposalProposesNothing(t *testing.T) {
	n := lead(t, lone(t, t.TempDir(), &memory{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := n.Propose(ctx, []byte("never"))
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnknownOutcome) {
		t.Fatal(err)
	}
	if err := n.Linearizable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := n.state.commands(); len(got) > 0 {
		t.Fatal(got)
	}
}

func TestANodeThatHasEndedSaysSo(t *testing.T) {
	n := lead(t, lone(t, t.TempDir(), &memory{}))
	changes := n.LeaderChanges()
	n.stop(t)
	for range changes { // it is closed
	}
	_, err := n.Propose(t.Context(), []byte("a"))
	for what, err := range map[string]error{
		"Propose": err, "Barrier": n.Barrier(t.Context()), "Linearizable": n.Linearizable(t.Context()),
		"Snapshot": n.Node.Snapshot(t.Context()), "WaitApplied": n.WaitApplied(t.Context(), 1<<40),
	} {
		if !errors.Is(err, ErrStopped) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestTheConfigurationIsChecked(t *testing.T) {
	for name, conf := range map[string]Config{
		"no data directory": {State: &memory{}},
		"no state":          {DataDir: t.TempDir()},
		"raft multiplier":   {DataDir: t.TempDir(), State: &memory{}, Multiplier: 11},
		"limit is negative": {DataDir: t.TempDir(), State: &memory{}, MaxInFlight: -1},
		"not among":         {DataDir: t.TempDir(), State: &memory{}, Bootstrap: []Server{{ID: "x", Addr: "y"}}},
	} {
		conf.Stream = listen(t, "127.0.0.1:0")
		if _, err := Open(conf); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMetricsTellWhereTheNodeStands(t *testing.T) {
	reg := prometheus.NewRegistry()
	conf := lone(t, t.TempDir(), &memory{})
	conf.Metrics = reg
	n := lead(t, conf)
	res := propose(t, n.Node, "a")
	got := gather(t, reg)
	if got["bursar_raft_leader"] != 1 || got["bursar_raft_applied_index"] != float64(res.Index) ||
		got["bursar_raft_commit_seconds"] != 1 || got["bursar_raft_term"] < 2 {
		t.Fatal(got)
	}
	n.stop(t)
	if got := gather(t, reg); len(got) > 0 {
		t.Fatal(got)
	}
}

func gather(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		out[f.GetName()] = m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return out
}

// rotten is a log with an entry that is damaged after it was read once.
type rotten struct {
	raft.LogStore
	index uint64
	reads int
}

func (r *rotten) GetLog(index uint64, l *raft.Log) error {
	err := r.LogStore.GetLog(index, l)
	if index == r.index {
		if r.reads++; r.reads > 1 {
			l.Data[0] ^= 1
		}
	}
	return err
}

func TestDamageFoundWhileRunningEndsTheNodeInGoodOrder(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	n := lead(t, lone(t, dir, state))
	propose(t, n.Node, "good")
	at := propose(t, n.Node, "rotten").Index
	propose(t, n.Node, "after")
	n.stop(t)

	state = &memory{}
	conf := lone(t, dir, state).withDefaults()
	bad := newNode(conf, conf.Bootstrap[0].ID)
	if err := bad.openDisk(); err != nil {
		t.Fatal(err)
	}
	bad.entries.under = &rotten{LogStore: bad.entries.under, index: at}
	if err := bad.startRaft(); err != nil {
		t.Fatal(err)
	}
	<-bad.halted
	err := bad.Shutdown(t.Context())
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), fmt.Sprintf("%s: entry %d", conf.logPath(), at)) {
		t.Fatal(err)
	}
	if got := state.commands(); len(got) > 1 {
		t.Fatalf("the damaged command was applied: %q", got)
	}
}

func TestTwoNodesWithTheSameMetricsAreRefused(t *testing.T) {
	reg := prometheus.NewRegistry()
	conf := lone(t, t.TempDir(), &memory{})
	conf.Metrics = reg
	lead(t, conf)
	other := lone(t, t.TempDir(), &memory{})
	other.Metrics = reg
	if _, err := Open(other); err == nil || !strings.Contains(err.Error(), "metrics") {
		t.Fatal(err)
	}
}
