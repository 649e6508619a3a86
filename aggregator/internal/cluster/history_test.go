package cluster

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A history of random entries, replaced ends, gaps and snapshots says of each entry its
// term or nothing, as a plain map does.
func TestHistory_RandomLogs_TermsAreThoseOfAPlainMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var h history
		plain, end, term := map[uint64]uint64{}, uint64(0), uint64(1)
		put := func(index uint64) {
			for i := index; i <= end; i++ {
				delete(plain, i)
			}
			plain[index], end = term, index
			h.addEntry(index, term, time.Time{})
		}
		for range 1 + r.IntN(60) {
			switch r.IntN(12) {
			case 0:
				term += 1 + r.Uint64N(3)
			case 1:
				if end > 1 {
					term++
					put(1 + r.Uint64N(end))
				}
			case 2:
				cut := 1 + r.Uint64N(end+1)
				h.cutFrom(cut)
				for i := cut; i <= end; i++ {
					delete(plain, i)
				}
				end = min(end, cut-1)
				if len(plain) == 0 {
					end = 0
				}
			case 3: // a snapshot, of which the log has an end or nothing
				at := r.Uint64N(end + 2)
				earlier, later := h.copyUntil(at), history{}
				for i := at + 1; i <= end; i++ {
					if term, known := plain[i]; known {
						later.addEntry(i, term, time.Time{})
					}
				}
				later.prependEarlier(earlier)
				h = later
			case 4:
				clear(plain)
				put(end + 2 + r.Uint64N(4))
			default:
				put(end + 1)
			}
			for i := range end + 3 {
				got, known := h.termOf(i)
				if want, ok := plain[i]; known != ok || got != want {
					t.Fatalf("seed %d: entry %d of %v: term %d, %v; want %d, %v", seed, i, h, got, known, want, ok)
				}
			}
		}
	}
}

// A copy that is younger than the last record of what is committed lacks entries that
// were confirmed after it was made.
func TestOlderCopy_YoungerThanTheRecordOfWhatIsCommitted_IsNoticed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 10)
	f.agree(numbered(0, 10), f.ships...)
	whole, back, lagging := f.ships[0], f.ships[1], f.ships[2]
	lagging.stop()
	back.stop()
	old := back.backup()
	back.restart()
	f.leader()
	record := filepath.Join(back.conf.ProgressDir, back.ID()+".json")
	committed, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	var was progressBody
	if err := openSealed(record, committed, &was); err != nil {
		t.Fatal(err)
	}
	f.say(10, 30)
	f.agree(numbered(0, 30), whole, back)
	back.kill()
	whole.kill()
	back.takeBack(old)
	now := progressBody{}
	if err := readSealed(record, &now); err != nil {
		t.Fatal(err)
	}
	now.Commit = was.Commit // the second was not over
	if err := writeSealed(record, now); err != nil {
		t.Fatal(err)
	}
	back.restart()
	lagging.restart()
	if back.Behind() == nil {
		t.Fatal("a copy that lacks 20 confirmed commands was not noticed")
	}
	for range 2 { // also when it started once more
		back.stop()
		back.restart()
		if back.Behind() == nil {
			t.Fatal("a restart has given it its vote back")
		}
	}
	whole.restart()
	f.agree(numbered(0, 30), f.ships...)
	eventually(t, "it has its vote back", func() bool { return back.Behind() == nil })
	back.stop()
	back.restart()
	if err := back.Behind(); err != nil {
		t.Errorf("after another start: %v", err)
	}
}

// Where nothing remembers what was confirmed, the node that has it stops when it meets
// the others, and says why, whatever they have written meanwhile and however they hand
// it on: it neither takes their history nor mixes the two.
func TestTwoHistories_NodeWithCommittedEntries_StopsAndKeepsThem(t *testing.T) {
	t.Parallel()
	type others struct {
		more int  // commands that the others have written
		cut  bool // and no longer have in their logs
	}
	for name, c := range map[string]others{
		"the others have less": {3, false},
		"as many":              {20, false},
		"more":                 {60, false},
		"a snapshot of less":   {3, true},
		"a snapshot of more":   {60, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, whole, back, lagging := pair(t, false)
			for _, s := range f.up() {
				s.running.conf.TrailingBytes = 1
			}
			if c.more == 60 { // a term of which the other has never heard
				if err := f.followers()[0].standForElection(); err != nil {
					t.Fatal(err)
				}
			}
			f.say(100, 100+c.more)
			f.agree(slices.Concat(numbered(0, 10), numbered(100, 100+c.more)), back, lagging)
			if c.cut {
				for _, s := range f.up() {
					if err := s.shortenLog(); err != nil {
						t.Fatal(err)
					}
				}
			}
			whole.restart()
			eventually(t, "the node with more stops", func() bool { return whole.haltReason() != nil })
			if err := whole.haltReason(); !errors.Is(err, ErrForked) || !strings.Contains(err.Error(), whole.conf.DataDir) {
				t.Fatal(err)
			}
			if got := whole.state.commands(); !slices.Equal(got, numbered(0, 30)) {
				t.Errorf("it has %q", got)
			}
			f.say(200, 203)
		})
	}
}

// Histories that random leaders have written: each begins as one of the histories before,
// cut somewhere, and has a term of its own, whose number may be that of another. Of two of
// them one contradicts what the other has committed exactly when an entry up to there is
// not the same.
func TestHistory_RandomPairs_ClashWhereCommittedEntriesDiffer(t *testing.T) {
	t.Parallel()
	type entry struct {
		term  uint64
		stamp int64
	}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		logs, stamp := [][]entry{nil}, int64(0)
		for range 2 + r.IntN(5) {
			from := logs[r.IntN(len(logs))]
			from = slices.Clone(from[:r.IntN(len(from)+1)])
			term := uint64(1)
			if len(from) > 0 {
				term = from[len(from)-1].term + 1 + r.Uint64N(2)
			}
			for range 1 + r.IntN(6) {
				stamp++
				from = append(from, entry{term, stamp})
			}
			logs = append(logs, from)
		}
		for _, own := range logs[1:] {
			for _, theirs := range logs[1:] {
				committed := r.IntN(len(own) + 1)
				same := committed <= len(theirs) && slices.Equal(own[:committed], theirs[:min(committed, len(theirs))])
				// Two leaders of one term are none of one history, even where nothing is committed.
				for i := range min(len(own), len(theirs)) {
					same = same && (own[i] == theirs[i] || own[i].term != theirs[i].term)
				}
				for _, a := range own {
					for _, b := range theirs {
						first := func(list []entry, x entry) entry {
							return list[slices.IndexFunc(list, func(e entry) bool { return e.term == x.term })]
						}
						same = same && (a.term != b.term || first(own, a) == first(theirs, b))
					}
				}
				var mine, leader history
				for i, e := range own {
					mine.addEntry(uint64(i+1), e.term, time.Unix(0, e.stamp))
				}
				for i, e := range theirs {
					leader.addEntry(uint64(i+1), e.term, time.Unix(0, e.stamp))
				}
				if err := mine.clashWith(leader, uint64(committed)); (err == nil) != same {
					t.Fatalf("seed %d: %v with %v, %d committed: %v", seed, own, theirs, committed, err)
				}
			}
		}
	}
}

// What tells the terms of two leaders apart is the same on all nodes, whichever way the
// entries came and wherever they lie: in memory, in the journal, in raft.db, in a snapshot.
func TestHistory_AfterRestartsAndSnapshots_IsTheSameOnAllNodes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	large := strings.Repeat("x", 96<<10) // such a batch goes past the journal
	for round := range 4 {
		if _, err := f.leader().Propose(t.Context(), []byte(large)); err != nil && !errors.Is(err, ErrUnknownOutcome) && !errors.Is(err, ErrNotLeader) {
			t.Fatal(err)
		}
		f.say(10*round, 10*round+10)
		s := f.ships[round%len(f.ships)]
		s.stop()
		s.restart()
		if round == 2 {
			for _, s := range f.ships {
				takeSnapshot(t, s.Node)
			}
		}
		if err := f.followers()[0].standForElection(); err != nil {
			t.Fatal(err)
		}
	}
	f.say(100, 101)
	for _, s := range f.ships {
		s.stop()
		s.restart()
	}
	f.say(101, 102)
	known := map[uint64]termStart{}
	stamped := 0
	for _, s := range f.ships {
		for _, start := range s.entries.pastTerms().starts {
			if start.At == 0 {
				continue
			}
			if other, ok := known[start.Term]; ok && other != start {
				t.Errorf("term %d begins with %+v and with %+v", start.Term, start, other)
			}
			known[start.Term] = start
			stamped++
		}
	}
	if len(known) < 4 || stamped < 3*4 {
		t.Errorf("%d terms are known, %d times", len(known), stamped)
	}
}
