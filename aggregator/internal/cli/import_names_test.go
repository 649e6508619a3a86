package cli

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/proto/record"
)

// importedCluster is what a cluster holds, by the rule by which it merges.
type importedCluster map[string]*record.Entry

func (c importedCluster) write(w record.Write) {
	e := c[w.ID]
	if e == nil {
		e = &record.Entry{ID: w.ID}
		c[w.ID] = e
	}
	e.Merge(w)
}

func (c importedCluster) put(o record.Origin, rank record.Rank, at int64, id string, start, stop record.Time) {
	c.write(record.Write{ID: id, Op: record.OpPut, Origin: o, Rank: rank, Version: record.Version{Ended: true, Observed: at},
		Record: &record.Record{ID: id, Start: start, Stop: stop, Submit: record.None}})
}

func (c importedCluster) look() map[string]KnownRecord {
	out := map[string]KnownRecord{}
	for id, e := range c {
		k := KnownRecord{Deleted: e.Deleted}
		for _, h := range e.Holdings {
			if h.Record != nil {
				k.Runs = append(k.Runs, ImportRun{h.Origin.String(), h.Record.Start})
			}
		}
		out[id] = k
	}
	return out
}

// total is the time of all records that are shown, and how many there are.
func (c importedCluster) total() (sum record.Time, n int) {
	for _, e := range c {
		if r := e.Shown(); r != nil {
			sum, n = sum+r.Stop-r.Start, n+1
		}
	}
	return sum, n
}

func (c importedCluster) shown() []string {
	var out []string
	for id, e := range c {
		if e.Shown() != nil {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// began is one start of a task as both sources know it.
type began struct {
	event, state, stop record.Time // the state is a little behind the event
	scheduler, file    bool        // who knows it
}

// task draws the starts of a task, most of which both know. The scheduler's source may
// have begun late, and a file may begin anywhere.
func task(t *rapid.T) []began {
	var all []began
	now := record.Time(rapid.Int64Range(1_700_000_000_000_000, 1_700_000_100_000_000).Draw(t, "begin"))
	n := rapid.IntRange(1, 6).Draw(t, "starts")
	scheduler, file := rapid.IntRange(0, n).Draw(t, "scheduler from"), rapid.IntRange(0, n-1).Draw(t, "file from")
	for i := range n {
		now += record.Time(rapid.Int64Range(5_000_000, 100_000_000_000).Draw(t, "pause"))
		s := began{event: now, state: now + record.Time(rapid.Int64Range(0, 999).Draw(t, "delay"))}
		now += record.Time(rapid.Int64Range(0, 100_000_000_000).Draw(t, "runs"))
		s.stop = max(now, s.state)
		s.scheduler, s.file = i >= scheduler, i >= file && rapid.IntRange(0, 3).Draw(t, "seen") > 0
		all = append(all, s)
	}
	return all
}

func timed(t record.Time) string { return fmt.Sprintf("x-main@%d", t/1000) }

var (
	nomad    = record.Origin{Agent: "head1", Type: "nomad", Label: "x"}
	imported = record.Origin{Agent: "import", Type: "ai4", Label: "x"}
)

// collect is the scheduler's source: it knows which start is the first one.
func (c importedCluster) collect(all []began, at int64) {
	for i, s := range all {
		id := "x-main"
		if i > 0 {
			id = timed(s.event)
		}
		if s.scheduler {
			c.put(nomad, record.RankScheduler, at, id, s.event, s.stop)
		}
	}
}

// load is an import of files, from which on start, as the source ai4 names runs.
func (c importedCluster) load(all []began, from int, at int64) {
	later, known := false, c.look()
	for _, s := range all[from:] {
		if !s.file {
			continue
		}
		ids := []string{"x-main", timed(s.state), timed(s.state - 1000)}
		if later {
			ids[0], ids[1] = ids[1], ids[0]
		}
		later = true
		id, brought := chooseID(ids, known, s.state, imported.String())
		c.put(imported, record.RankImport, at, id, s.state, s.stop)
		for _, old := range brought {
			if old != id {
				at++
				c.write(record.Write{ID: old, Op: record.OpWithdraw, Origin: imported, Rank: record.RankImport, Version: record.Version{Ended: true, Observed: at}})
			}
		}
		at++
	}
}

// old is an import as it once was: each start by its time.
func (c importedCluster) old(all []began, at int64) {
	for _, s := range all {
		if s.file {
			c.put(imported, record.RankImport, at, timed(s.state), s.state, s.stop)
		}
	}
}

// want is the truth of what any of the two knows, by the source that is preferred.
func want(all []began) (sum record.Time, n int) {
	for _, s := range all {
		switch {
		case s.scheduler:
			sum, n = sum+s.stop-s.event, n+1
		case s.file:
			sum, n = sum+s.stop-s.state, n+1
		}
	}
	return sum, n
}

// A world in which a snapshot and the scheduler's source saw the same starts, in both
// orders, beside what older imports left, is counted once in the end.
func TestARunOfTwoSourcesIsOneRecordInEitherOrder(t *testing.T) {
	for name, play := range map[string]func(c importedCluster, all []began){
		"the scheduler's source first": func(c importedCluster, all []began) { c.collect(all, 1000); c.load(all, 0, 2000) },
		"the import again after it":    func(c importedCluster, all []began) { c.load(all, 0, 1000); c.collect(all, 2000); c.load(all, 0, 3000) },
		"an import of an old release": func(c importedCluster, all []began) {
			c.old(all, 500)
			c.collect(all, 1000)
			c.load(all, 0, 2000)
		},
		"an import of an old release, then the source": func(c importedCluster, all []began) {
			c.old(all, 500)
			c.load(all, 0, 1000)
			c.collect(all, 2000)
			c.load(all, 0, 3000)
		},
		"three times": func(c importedCluster, all []began) {
			c.collect(all, 1000)
			for n := range int64(3) {
				c.load(all, 0, 2000+1000*n)
			}
		},
		"the newer files alone, after all": func(c importedCluster, all []began) {
			c.load(all, 0, 1000)
			c.load(all, len(all)/2, 2000)
			c.collect(all, 3000)
			c.load(all, 0, 4000)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				all, c := task(t), importedCluster{}
				play(c, all)
				sum, n := c.total()
				if wantSum, wantN := want(all); sum != wantSum || n != wantN {
					t.Fatalf("%d µs in %d records, want %d in %d: %v of %+v", sum, n, wantSum, wantN, c.shown(), all)
				}
			})
		})
	}
}

// Files that are imported bit by bit, in any order, lose no start and double none, though
// each part takes its own earliest start for the first.
func TestFilesThatAreImportedInPartsAreCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, c := task(t), importedCluster{}
		for i := range all {
			all[i].scheduler = false
		}
		for n := range rapid.IntRange(1, 4).Draw(t, "parts") {
			from := rapid.IntRange(0, len(all)-1).Draw(t, "from")
			c.load(all[:rapid.IntRange(from+1, len(all)).Draw(t, "to")], from, int64(1000*(n+1)))
		}
		c.load(all, 0, 100_000)
		sum, n := c.total()
		if wantSum, wantN := want(all); sum != wantSum || n != wantN {
			t.Fatalf("%d µs in %d records, want %d in %d: %v of %+v", sum, n, wantSum, wantN, c.shown(), all)
		}
	})
}

// Where nothing was missed before the first sighting, the ids are the same from the
// start, so that the order is all one and nothing is asked twice.
func TestATaskThatWasSeenFromItsFirstStartNeedsNoSecondImport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, c := task(t), importedCluster{}
		for i := range all {
			all[i].file, all[i].scheduler = true, true
			all[i].state = max(all[i].event, all[i].event/1000*1000+min(all[i].event%1000+20, 999)) // the same millisecond
			all[i].stop = max(all[i].stop, all[i].state)
		}
		c.load(all, 0, 1000)
		c.collect(all, 2000)
		if sum, n := c.total(); n != len(all) {
			t.Fatalf("%d µs in %d records of %d starts", sum, n, len(all))
		}
	})
}

// What was erased does not come back by another name.
func TestAnErasedRunStaysErased(t *testing.T) {
	for _, id := range []string{"x-main", timed(1_700_000_000_000_000)} {
		c := importedCluster{}
		all := []began{{event: 1_700_000_000_000_000, state: 1_700_000_000_000_000, stop: 1_700_000_001_000_000, file: true}}
		c.old(all, 1)
		c.write(record.Write{ID: id, Op: record.OpDelete})
		c.load(all, 0, 1000)
		if diff := cmp.Diff([]string(nil), c.shown()); diff != "" {
			t.Errorf("%s: %v of %v", id, diff, slices.Collect(maps.Keys(c)))
		}
	}
}
