package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// detailed is a record with details that follow from the rest.
func detailed(id string, k int) record.Record {
	r := sample(id, k)
	r.Meta = append(record.Meta{{Key: "comment", Values: []string{fmt.Sprint("run ", k)}}}, r.Meta...)
	r.State, r.Exit = "COMPLETED", record.Exit{Known: true, Code: int32(k)}
	return r
}

// twins are a store in which records are archived and restored, and one to which the same
// happens and that.
type twins struct {
	*box
	other    *box
	rng      *rand.Rand
	now      record.Time
	files    map[string][][]byte
	names    int
	removed  int
	refused  int
	restored uint64
	left     string
}

func (w *twins) both(c func() Command) any {
	got := w.apply(c())
	w.other.apply(c())
	return got
}

func (w *twins) id() string { return fmt.Sprintf("job-%d", w.rng.IntN(60)) }

func (w *twins) write() record.Write {
	o := []record.Origin{slurm, {Agent: "head1", Type: "epilog", Label: "nemo"}, record.Pushed}[w.rng.IntN(3)]
	rank := map[string]record.Rank{"slurm": record.RankScheduler, "epilog": record.RankEpilog, "": record.RankPush}[o.Type]
	version := record.Version{Ended: true, Observed: int64(1 + w.rng.IntN(30))}
	switch w.rng.IntN(10) {
	case 0:
		return record.Write{ID: w.id(), Op: record.OpWithdraw, Origin: o, Rank: rank, Version: version}
	case 1:
		return record.Write{ID: w.id(), Op: record.OpStop, Origin: record.Pushed, Rank: record.RankPush, Version: version, Stop: t0 + record.Time(w.rng.IntN(9))*record.Minute}
	}
	r := detailed(w.id(), w.rng.IntN(4))
	if w.rng.IntN(4) == 0 {
		r.Stop, r.State, r.Exit = record.None, "", record.Exit{}
	}
	version.Ended = !r.Open()
	return record.Write{ID: r.ID, Op: record.OpPut, Origin: o, Rank: rank, Version: version, Record: &r}
}

// step does something to both.
func (w *twins) step() {
	w.now += record.Second
	switch w.rng.IntN(10) {
	case 0, 1, 2:
		var writes []record.Write
		for range 1 + w.rng.IntN(8) {
			one := w.write()
			if one.Op == record.OpStop && w.moves(one.ID, one.Stop) {
				continue
			}
			writes = append(writes, one)
		}
		w.ingest("head1", w.now, writes...)
		w.other.ingest("head1", w.now, writes...)
	case 3:
		var writes []record.Write
		for range 1000 + w.rng.IntN(500) {
			w.names++
			writes = append(writes, put(detailed(fmt.Sprint("bulk-", w.names), w.rng.IntN(90)), 1))
		}
		w.ingest("head1", w.now, writes...)
		w.other.ingest("head1", w.now, writes...)
	case 4:
		r := detailed(w.id(), w.rng.IntN(8))
		w.both(func() Command { return &PostCommand{Rows: postRows(r), IgnoreExisting: true, Now: w.now} })
	case 5:
		id, stop := w.id(), t0+record.Time(w.rng.IntN(99))*record.Second
		c := &PutStopCommand{ID: id, Stop: stop, Now: w.now}
		if w.apply(c).(PutResult).Archived == "" {
			w.other.apply(c)
		} else {
			w.other.apply(&HashCheckCommand{}) // the logs are of one length
		}
	case 6:
		id := w.id()
		w.both(func() Command { return &DeleteCommand{IDs: []string{id}, By: "me", Now: w.now} })
	case 7:
		id := w.id()
		w.both(func() Command { return &UndeleteCommand{IDs: []string{id}, By: "me", Now: w.now} })
	case 8:
		var blocks []uint64
		w.view(func(v *View) {
			for _, c := range v.Candidates(0) {
				blocks = append(blocks, c.First)
			}
			blocks = append(blocks, v.Small()...)
		})
		c, f := drops(w.box, record.MaxTime, blocks...)
		w.apply(c)
		w.apply(f)
	case 9:
		w.restart()
	}
}

// moves reports whether a stop is refused since it would move an archived run.
func (w *twins) moves(id string, stop record.Time) (moves bool) {
	w.view(func(v *View) {
		e, err := v.Entry(id)
		if err != nil {
			w.t.Fatal(err)
		}
		moves = movesArchived(&slot{entry: e}, stop)
	})
	return moves
}

// period reads the rows of a period as an action does.
func (b *box) period(from, to record.Time) (s ArchiveStatement, rows [][]byte) {
	s = ArchiveStatement{From: from, To: to, Keep: []string{"group_id"}, Location: "/archive", Manifest: "m.json", SHA256: "ab",
		Sums: []ArchiveTotal{{"Cores", "12"}}}
	q := Query{Open: OnlyClosed, Details: true, ReuseRows: true}
	q.Stop.GTE(int64(from))
	q.Stop.LT(int64(to))
	b.view(func(v *View) {
		s.UpTo = v.Seq()
		err := v.Query(context.Background(), q, func(row *columns.Row) error {
			line := ArchivedRow(row)
			rows = append(rows, line.Append(nil))
			s.Rows.Add(rows[len(rows)-1])
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	})
	return s, rows
}

// archive removes a period; between its steps other things happen.
func (w *twins) archive() {
	from := t0 + record.Time(w.rng.IntN(60))*record.Minute
	s, rows := w.period(from, from+record.Time(1+w.rng.IntN(60))*record.Minute)
	s.Name = fmt.Sprint("a", w.names)
	w.names++
	c := &ArchiveCommand{Op: ArchiveRemove, Archive: s}
	for {
		got := w.apply(c).(ArchiveResult)
		w.removed += int(got.Changed)
		if got.Refused != "" {
			w.refused++
			return
		}
		if got.State == ArchiveRemoving || got.State == Archived {
			w.files[s.Name] = rows
		}
		if got.Done {
			return
		}
		if w.rng.IntN(2) == 0 {
			w.step()
		}
	}
}

func (w *twins) restore(name string) {
	c := &ArchiveCommand{Op: ArchiveRestore, Archive: ArchiveStatement{Name: name}}
	rows := w.files[name]
	w.rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	for part := range slices.Chunk(rows, 1+w.rng.IntN(4000)) {
		c.Rows = part
		got := w.apply(c).(ArchiveResult)
		if got.Refused != "" {
			w.t.Fatal(got.Refused)
		}
		w.restored += got.Changed
	}
	for {
		got := w.apply(&ArchiveCommand{Op: ArchiveEnd, Archive: ArchiveStatement{Name: name}}).(ArchiveResult)
		if got.Refused != "" {
			w.t.Fatalf("end of %s: %+v", name, got)
		}
		if got.Left > 0 && got.Done {
			w.left = fmt.Sprintf("%s: %+v", name, got)
			return
		}
		if got.Done {
			break
		}
	}
	delete(w.files, name)
}

// totals are what usage is made of: what all groups used, by when they stopped.
func (b *box) totals() map[string]int64 {
	sums := map[string]int64{}
	b.view(func(v *View) {
		err := v.Query(context.Background(), Query{Order: BySeq}, func(row *columns.Row) error {
			r := row.Shown()
			for _, c := range r.Components {
				sums[fmt.Sprint(r.Meta.Get("group_id"), r.ID[:3], c.Name, c.Kind, c.Scores, r.Stop)] += c.Amount * int64(r.Stop/1000-r.Start/1000)
			}
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	})
	return sums
}

func (w *twins) check() {
	w.view(func(v *View) {
		if found, err := v.Check(context.Background()); err != nil || len(found) > 0 {
			w.t.Fatalf("check: %v %v", strings.Join(found, "\n"), err)
		}
	})
	if a, b := w.totals(), w.other.totals(); !maps.Equal(a, b) {
		w.t.Fatalf("totals differ:\n%v\n%v", a, b)
	}
}

// Whatever happens to archived records: what usage is made of is as if they had never been
// archived, and after the restore the whole state is.
func TestArchive_RandomHistories_TotalsAndHashAsWithoutArchives(t *testing.T) {
	t.Parallel()
	removed, restored, refused := 0, uint64(0), 0
	for seed := range uint64(racetest.Few(4)) {
		w := &twins{box: newBox(t), other: newBox(t), rng: rand.New(rand.NewPCG(seed, 17)), now: t0, files: map[string][][]byte{}}
		w.apply(&SetVersionCommand{Version: CommandFormat})
		w.other.apply(&SetVersionCommand{Version: CommandFormat})
		for range 60 {
			switch w.rng.IntN(8) {
			case 0:
				w.archive()
			case 1:
				for name := range w.files {
					if w.rng.IntN(2) == 0 && w.stateOf(name) == Archived {
						w.restore(name)
						break
					}
				}
			default:
				w.step()
			}
			if w.rng.IntN(12) == 0 {
				w.check()
			}
		}
		for range 2 { // what several origins said may be in another archive's files
			for _, name := range slices.Sorted(maps.Keys(w.files)) {
				w.restore(name)
			}
		}
		w.check()
		w.same(seed)
		removed, restored, refused = removed+w.removed, restored+w.restored, refused+w.refused
		w.replayed()
		w.s.Close()
		w.other.s.Close()
	}
	t.Logf("%d rows removed, %d restored, %d archives refused", removed, restored, refused)
	if removed == 0 || restored == 0 {
		t.Fatal("nothing was archived")
	}
}

func (w *twins) stateOf(name string) (state ArchiveState) {
	w.view(func(v *View) {
		for _, a := range v.Archives() {
			if a.Name == name {
				state = a.State
			}
		}
	})
	return state
}

// same compares the hashes; archives that were only being checked go first.
func (w *twins) same(seed uint64) {
	w.view(func(v *View) {
		for _, a := range v.Archives() {
			if a.State != ArchiveChecking {
				w.t.Fatalf("seed %d: archive %s is left: %+v; %s", seed, a.Name, a, w.left)
			}
			w.apply(&ArchiveCommand{Op: ArchiveEnd, Archive: ArchiveStatement{Name: a.Name}})
		}
	})
	_, a := w.s.Hash()
	_, b := w.other.s.Hash()
	if a != b {
		w.t.Fatalf("seed %d: hashes differ after the restore: %v %v", seed, a, b)
	}
}

// replayed applies the log to a third store, which must come to the same.
func (w *twins) replayed() {
	third := newBox(w.t)
	defer third.s.Close()
	for i, data := range w.log {
		if _, err := third.s.Apply(uint64(i+1), 1, data); err != nil {
			w.t.Fatal(err)
		}
	}
	_, a := w.s.Hash()
	_, b := third.s.Hash()
	if a != b {
		w.t.Fatalf("hashes differ: %v %v", a, b)
	}
}

// months has n records of a source in blocks, and 10 that wait for one.
func months(t *testing.T, n int) *box {
	t.Helper()
	b := newBox(t)
	b.apply(&SetVersionCommand{Version: CommandFormat})
	for from := 0; from < n; from += 4000 {
		var writes []record.Write
		for i := from; i < min(n, from+4000); i++ {
			writes = append(writes, put(detailed(fmt.Sprint("nemo-", i), i%90), int64(1+i)))
		}
		b.ingest("head1", t0, writes...)
	}
	for i := range 10 {
		b.post(t0, detailed(fmt.Sprint("late-", i), i))
	}
	return b
}

// remove archives all, and returns the rows.
func (b *box) remove(name string) [][]byte {
	b.t.Helper()
	s, rows := b.period(t0, t0+record.Day)
	s.Name = name
	for {
		got := b.apply(&ArchiveCommand{Op: ArchiveRemove, Archive: s}).(ArchiveResult)
		if got.Refused != "" {
			b.t.Fatal(got.Refused)
		}
		if got.Done {
			return rows
		}
	}
}

// Once the files are rewritten, what was removed takes no room.
func TestArchive_Removed_StoreIsSmallerOnTheDisk(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.apply(&SetVersionCommand{Version: CommandFormat})
	rng := rand.New(rand.NewPCG(1, 30))
	for range 10 {
		var writes []record.Write
		for range 2000 {
			r := detailed(fmt.Sprintf("nemo-%016x", rng.Uint64()), rng.IntN(90))
			r.Meta[0].Values[0] = fmt.Sprintf("%032x", rng.Uint64()) // as job names and folders
			writes = append(writes, put(r, int64(1+len(writes))))
		}
		b.ingest("head1", t0, writes...)
	}
	size := func() uint64 {
		if err := b.s.Compact(); err != nil {
			t.Fatal(err)
		}
		b.restart() // files that the database dropped are deleted when it has closed
		return b.s.BytesOnDisk()
	}
	full := size()
	b.remove("2026-03")
	left := size()
	t.Logf("20000 records take %.2f MiB, and %.2f MiB when they are removed", float64(full)/(1<<20), float64(left)/(1<<20))
	if left*10 > full*9 {
		t.Errorf("%d bytes are left of %d, want less than nine tenths", left, full)
	}
}

func TestArchive_RowsDiffer_RemovesNothing(t *testing.T) {
	b := months(t, 9000)
	s, _ := b.period(t0, t0+record.Day)
	_, before := b.s.Hash()
	for name, bad := range map[string]func(*ArchiveStatement){
		"count": func(s *ArchiveStatement) { s.Rows.Count++ }, "digest": func(s *ArchiveStatement) { s.Rows.Lo ^= 1 },
		"period": func(s *ArchiveStatement) { s.To -= record.Day - record.Minute }, "change": func(s *ArchiveStatement) { s.UpTo-- },
		"future": func(s *ArchiveStatement) { s.UpTo += 9 }, "empty": func(s *ArchiveStatement) { s.From = s.To },
	} {
		c := &ArchiveCommand{Op: ArchiveRemove, Archive: s}
		c.Archive.Name = name
		bad(&c.Archive)
		var got ArchiveResult
		for !got.Done {
			got = b.apply(c).(ArchiveResult)
		}
		if _, after := b.s.Hash(); got.Refused == "" || after != before {
			t.Errorf("%s: %+v, hash %v, want %v", name, got, after, before)
		}
	}
}

func TestArchive_QuestionByLostKey_IsRefused(t *testing.T) {
	b := months(t, 5000)
	b.remove("2026-03")
	b.view(func(v *View) {
		none := func(*columns.Row) error { return nil }
		user := Query{Meta: []MetaTest{{Key: "user_id", Contains: []string{"u1"}}}}
		if err := v.Query(context.Background(), user, none); !errors.Is(err, ErrArchived) || !strings.Contains(err.Error(), "2026-03") {
			t.Errorf("by a key that left: %v", err)
		}
		user.Start.GTE(int64(t0 + 2*record.Day))
		user.Running = &Window{From: t0 + 2*record.Day, To: t0 + 3*record.Day}
		if err := v.Query(context.Background(), user, none); err != nil {
			t.Errorf("of another time: %v", err)
		}
		earlier := Query{Meta: user.Meta}
		earlier.Stop.LTE(int64(t0 - 100*record.Day))
		if err := v.Query(context.Background(), earlier, none); err != nil {
			t.Errorf("of what stopped earlier: %v", err)
		}
		n := 0
		group := Query{Meta: []MetaTest{{Key: "group_id", Contains: []string{"g1"}}}}
		if err := v.Query(context.Background(), group, func(*columns.Row) error { n++; return nil }); err != nil || n == 0 {
			t.Errorf("by a key that stayed: %d, %v", n, err)
		}
		if err := v.Query(context.Background(), Query{Details: true}, func(*columns.Row) error { return errStop }); err != nil {
			t.Errorf("a record without details is listed: %v", err)
		}
		if _, err := v.MetaCounts(context.Background(), "user_id"); !errors.Is(err, ErrArchived) {
			t.Errorf("counts: %v", err)
		}
	})
}

func TestArchive_LateWrites_DeduplicateOrBecomeSupplement(t *testing.T) {
	b := months(t, racetest.Few(5000))
	rows := b.remove("2026-03")
	if got := b.post(t0, detailed("nemo-7", 7)); !slices.Equal(got.Existing, []string{"nemo-7"}) {
		t.Errorf("a post of an archived id: %+v", got)
	}
	before, _ := b.get("nemo-8")
	if got := b.ingest("head1", t0, put(detailed("nemo-8", 8), 99_999)); got.Counts.Unchanged != 1 {
		t.Errorf("what an archived run is said again: %+v", got.Counts)
	}
	if after, _ := b.get("nemo-8"); after.Seq != before.Seq || !after.Archived || len(after.Record.Meta) != 1 || after.Record.State != "" {
		t.Errorf("its row: %+v", after)
	}
	stop := detailed("late-3", 3).Stop
	if got := b.apply(&PutStopCommand{ID: "late-3", Stop: stop, Now: t0}); got != (PutResult{Found: true}) {
		t.Errorf("the same stop: %+v", got)
	}
	if got := b.apply(&PutStopCommand{ID: "late-3", Stop: stop + 1, Now: t0}); got != (PutResult{Found: true, Archived: "2026-03"}) {
		t.Errorf("another stop: %+v", got)
	}
	moved := record.Write{ID: "late-3", Op: record.OpStop, Origin: record.Pushed, Rank: record.RankPush, Version: record.Version{Ended: true, Observed: 1 << 61}, Stop: stop + 1}
	if got := b.ingest("head1", t0, moved); got.Counts.Quarantined != 1 {
		t.Errorf("another stop by an agent: %+v", got.Counts)
	}
	changed := detailed("nemo-9", 9)
	changed.Components[0].Amount++
	b.ingest("head1", t0, put(changed, 99_999), put(detailed("new", 4), 1))
	s, late := b.period(t0, t0+record.Day)
	if len(late) != 2 {
		t.Fatalf("%d rows for the supplement, want 2", len(late))
	}
	s.Name = "2026-03-2"
	for done := false; !done; {
		done = b.apply(&ArchiveCommand{Op: ArchiveRemove, Archive: s}).(ArchiveResult).Done
	}
	w := &twins{box: b, rng: rand.New(rand.NewPCG(1, 1)), files: map[string][][]byte{"2026-03": rows, "2026-03-2": late}}
	w.restore("2026-03")
	w.restore("2026-03-2")
	if row, _ := b.get("nemo-9"); row.Archived || row.Record.State != "COMPLETED" || row.Record.Components[0].Amount != changed.Components[0].Amount {
		t.Errorf("after the restore: %+v", row)
	}
}

func TestArchive_Restore_RefusesRowsOfOthers(t *testing.T) {
	b := months(t, 1500)
	rows := b.remove("2026-03")
	row, err := archived.Decode(rows[0])
	if err != nil {
		t.Fatal(err)
	}
	row.Seq = 1 << 50
	for name, bad := range map[string][]byte{"damaged": rows[0][:9], "of a later change": row.Append(nil)} {
		got := b.apply(&ArchiveCommand{Op: ArchiveRestore, Archive: ArchiveStatement{Name: "2026-03"}, Rows: [][]byte{rows[1], bad}}).(ArchiveResult)
		if got.Refused == "" || got.Changed != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := b.apply(&ArchiveCommand{Op: ArchiveEnd, Archive: ArchiveStatement{Name: "2026-03"}}).(ArchiveResult); got.Left != uint64(len(rows)) {
		t.Errorf("an archive with rows was ended: %+v", got)
	}
}
