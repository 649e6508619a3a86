package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// everyCommand has each command with all its fields set.
func everyCommand() []Command {
	r := sample("a", 1)
	return []Command{
		&IngestCommand{Agent: "a", Epoch: Epoch{1}, From: 2, To: 3, Before: Chain{2}, After: Chain{3}, Begin: &Begin{Epoch{9}, 7, Chain{8}, 1, Chain{2}}, Now: t0,
			Rows: []byte("rows"), Writes: []record.Write{{ID: "a", Op: record.OpPut, Origin: slurm, Rank: 4, Version: record.Version{Ended: true, Observed: 5}, Record: &r, Stop: record.None}},
			Quarantine: []Quarantined{{Source: slurm, ID: "q", Reason: "r", Message: "m", RecordID: "x", Raw: []byte("raw"), Truncated: true, First: record.None, Last: t0, Count: 3}},
			Resolved:   []QuarantineKey{{slurm, "s"}}, Gaps: []Gap{{slurm, t0, t0, "why", record.None}}, Watermarks: []Watermark{{slurm, t0}},
			Checkpoints: []Checkpoint{{slurm, []byte("c")}}, Facts: []Fact{{FactCapacity, slurm, t0, []byte("f")}}, Observed: 9},
		&PostCommand{Rows: []byte("r"), IgnoreExisting: true, Now: t0},
		&StageCommand{Upload: Upload{1}, Part: 2, Rows: []byte("r"), Now: t0},
		&CommitStageCommand{Upload: Upload{1}, Parts: 2, IgnoreExisting: true, Now: t0},
		&PutStopCommand{ID: "a", Stop: t0, Now: t0},
		&ArchiveCommand{Op: ArchiveRemove, Archive: goldenArchive.ArchiveStatement},
		&ArchiveCommand{Op: ArchiveRestore, Archive: ArchiveStatement{Name: "2026-03"}, Rows: [][]byte{{1, 2}, {3}}},
		&PutStopsCommand{Puts: []PutStop{{"a", t0}, {"b", t0 + 1}}, Now: t0},
		&DeleteCommand{IDs: []string{"a", "b"}, By: "me", Now: t0},
		&UndeleteCommand{IDs: []string{"a"}, By: "me", Now: t0},
		&QuarantineDropCommand{Keys: []QuarantineKey{{slurm, "s"}}},
		&SetClusterCommand{ID: "c"},
		&SetVersionCommand{Version: 3},
		&CompactBlockCommand{Blocks: []uint64{1, 2}, Of: Superseded{UpTo: 300, Rows: []uint64{1, 4, 250}}},
		&ForgetCommand{UpTo: 9, Of: Superseded{UpTo: 300, Rows: []uint64{7}}},
		&HashCheckCommand{},
		&DocumentCommand{If: []Document{{"s", "k", nil}}, Sets: []Document{{"s", "k", []byte("v")}, {"s", "e", []byte{}}}},
		&DocumentCommand{Sets: []Document{{"s", "k", []byte("v")}}, Needs: 4},
		&CorrectCommand{Writes: []record.Write{{ID: "a", Op: record.OpPut, Origin: record.Pushed, Rank: record.RankPush, Version: record.Version{Ended: true, Observed: 5}, Record: &r, Stop: record.None}}, Now: t0},
		&DismissStopsCommand{IDs: []string{"a", "b"}, Until: 7},
		&ReplaceCommand{Replacements: []Replacement{{"b", 4, record.Write{ID: "a", Op: record.OpPut, Origin: slurm, Rank: record.RankImport, Version: record.Version{Ended: true, Observed: 5}, Record: &r, Stop: record.None}}}, By: "me", Now: t0},
	}
}

func TestEveryCommandComesBackFromItsBytes(t *testing.T) {
	for _, c := range everyCommand() {
		got, err := Decode(Encode(c))
		if diff := cmp.Diff(c, got, cmpopts.IgnoreUnexported(HashCheckCommand{})); err != nil || diff != "" {
			t.Errorf("%T: %v %s", c, err, diff)
		}
	}
}

func TestUnknownOrDamagedCommandIsAnError(t *testing.T) {
	good := Encode(&SetVersionCommand{Version: 1})
	ofVersion := func(c Command, version byte) []byte {
		data := Encode(c)
		data = data[:len(data)-trailerSize]
		data[3] = version
		return binary.BigEndian.AppendUint32(data, castagnoli(data))
	}
	for name, data := range map[string][]byte{"empty": nil, "short": good[:8], "newer": ofVersion(&HashCheckCommand{}, CommandFormat+1),
		"without the rows to drop": ofVersion(&CompactBlockCommand{}, supersededVersion-1), "other": []byte("hello, this is no command")} {
		b := newBox(t)
		if _, err := b.s.Apply(1, 1, data); !errors.Is(err, ErrCommand) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1
		if _, err := Decode(bad); !errors.Is(err, ErrCommand) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range everyCommand() {
		f.Add(Encode(c))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for k := kind(1); k <= kindReplace; k++ { // past the checksum
			if c := newCommand(k); c != nil {
				c.visitFields(fields{d: &decoder{b: data}})
			}
		}
		if c, err := Decode(data); err == nil {
			Encode(c)
		}
	})
}

func TestPostIsAllOrNothing(t *testing.T) {
	b := newBox(t)
	b.post(t0, sample("a", 1))
	if r := b.post(t0, sample("b", 1), sample("a", 2)); len(r.Existing) != 1 || r.Added != 0 {
		t.Errorf("%+v", r)
	}
	if r := b.post(t0, sample("c", 1), sample("c", 1)); len(r.Existing) != 1 || r.Added != 0 {
		t.Errorf("%+v", r)
	}
	bad := sample("e", 1)
	bad.ID = " "
	if r := b.post(t0, sample("d", 1), bad); r.Refused == "" || r.Added != 0 {
		t.Errorf("%+v", r)
	}
	b.view(func(v *View) {
		if v.Count() != 1 || v.Seq() != 1 {
			t.Error(v.Count(), v.Seq())
		}
	})
	r := b.apply(&PostCommand{Rows: postRows(sample("b", 1), sample("a", 2)), IgnoreExisting: true, Now: t0}).(PostResult)
	if r.Added != 1 || r.Seq != 2 {
		t.Errorf("%+v", r)
	}
	if r := b.apply(&PostCommand{Now: t0}).(PostResult); r.Added != 0 || r.Refused != "" {
		t.Errorf("nothing to post: %+v", r)
	}
	sound(t, b.s)
}

func TestStagedPostIsUnseenUntilItsCommitAndExpires(t *testing.T) {
	b := newBox(t)
	u, late := Upload{1}, Upload{2}
	b.apply(&StageCommand{Upload: u, Part: 0, Rows: postRows(sample("a", 1)), Now: t0})
	b.apply(&StageCommand{Upload: late, Part: 0, Rows: postRows(sample("z", 1)), Now: t0})
	if _, ok := b.get("a"); ok {
		t.Error("seen before the commit")
	}
	if r := b.apply(&CommitStageCommand{Upload: u, Parts: 2, Now: t0}).(PostResult); !r.Unknown {
		t.Errorf("half an upload: %+v", r)
	}
	b.restart()
	b.apply(&StageCommand{Upload: u, Part: 1, Rows: postRows(sample("b", 1)), Now: t0 + StageLife})
	if r := b.apply(&CommitStageCommand{Upload: u, Parts: 2, Now: t0}).(PostResult); r.Added != 2 {
		t.Errorf("%+v", r)
	}
	b.apply(&StageCommand{Upload: Upload{3}, Part: 0, Rows: postRows(sample("y", 1)), Now: t0 + 2*StageLife})
	if r := b.apply(&CommitStageCommand{Upload: late, Parts: 1, Now: t0}).(PostResult); !r.Unknown {
		t.Errorf("an expired upload: %+v", r)
	}
	b.apply(&CommitStageCommand{Upload: Upload{3}, Parts: 1, Now: t0 + 2*StageLife})
	b.view(func(v *View) {
		if n, err := v.Stages(); n != 0 || err != nil {
			t.Error(n, err)
		}
	})
	sound(t, b.s)
}

func TestDeletedIDBeatsEveryWriteUntilItIsUndeleted(t *testing.T) {
	b := newBox(t)
	b.ingest("head1", t0, put(sample("a", 1), 1))
	b.apply(&DeleteCommand{IDs: []string{"a", "never-seen"}, By: "ann", Now: t0 + 1})
	r := b.ingest("head1", t0, put(sample("a", 1), 9), put(sample("never-seen", 1), 1))
	if r.Counts.Deleted != 2 {
		t.Errorf("%+v", r.Counts)
	}
	if p := b.post(t0, sample("a", 1)); len(p.Existing) != 1 {
		t.Errorf("%+v", p)
	}
	b.view(func(v *View) {
		by, at, ok, err := v.Deletion("a")
		if by != "ann" || at != t0+1 || !ok || err != nil || v.Count() != 0 {
			t.Error(by, at, ok, err, v.Count())
		}
	})
	b.apply(&UndeleteCommand{IDs: []string{"a"}, Now: t0})
	if r := b.ingest("head1", t0, put(sample("a", 1), 10)); r.Counts.Added != 1 {
		t.Errorf("%+v", r.Counts)
	}
	sound(t, b.s)
}

func TestDocumentsChangeTogetherWhenTheConditionsHold(t *testing.T) {
	b := newBox(t)
	set := func(c *DocumentCommand) bool { return b.apply(c).(DocumentResult).Done }
	if !set(&DocumentCommand{If: []Document{{"s", "a", nil}}, Sets: []Document{{"s", "a", []byte("1")}, {"s", "b", []byte("2")}, {"t", "a", []byte("3")}}}) {
		t.Error("refused")
	}
	if set(&DocumentCommand{If: []Document{{"s", "a", nil}}, Sets: []Document{{"s", "b", nil}}}) {
		t.Error("done against its condition")
	}
	if !set(&DocumentCommand{If: []Document{{"s", "a", []byte("1")}}, Sets: []Document{{"s", "b", nil}}}) {
		t.Error("refused")
	}
	b.view(func(v *View) {
		var got []Document
		err := v.Documents("s", "", func(d Document) error { got = append(got, d); return nil })
		if diff := cmp.Diff([]Document{{"s", "a", []byte("1")}}, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
	sound(t, b.s)
}

func TestClusterIDIsGivenOnceAndTheVersionNeverFalls(t *testing.T) {
	b := newBox(t)
	b.apply(&SetClusterCommand{ID: "one"})
	if got := b.apply(&SetClusterCommand{ID: "two"}); got != "one" {
		t.Error(got)
	}
	b.apply(&SetVersionCommand{Version: 3})
	if got := b.apply(&SetVersionCommand{Version: 2}); got != uint32(3) {
		t.Error(got)
	}
	if id, v := b.s.Cluster(); id != "one" || v != 3 {
		t.Error(id, v)
	}
}

func TestHashCheck_AfterAPost_IsTheNewestHash(t *testing.T) {
	b := newBox(t)
	b.post(t0, sample("a", 1))
	h := b.apply(&HashCheckCommand{}).(HashResult)
	if index, last, ok := b.s.LastHash(); !ok || index != h.Index || last != h.Hash {
		t.Error("the newest hash is not remembered", index, last, ok)
	}
	if at, ok := b.s.HashAt(h.Index); !ok || at != h.Hash {
		t.Error(at, ok, h)
	}
}

func TestImageBecomesTheStateOfAnotherStore(t *testing.T) {
	b, other := newBox(t), newBox(t)
	var ws []record.Write
	for i := range 1500 {
		ws = append(ws, put(sample(fmt.Sprintf("j%d", i), i), 1))
	}
	b.ingest("head1", t0, ws...)
	b.post(t0, sample("x", 1))
	other.post(t0, sample("mine", 1))
	other.o.FS = b.o.FS
	other.o.Dir = "/other"
	other.s.Close()
	other.open()
	if err := b.s.Checkpoint("/image"); err != nil {
		t.Fatal(err)
	}
	old, err := other.s.View()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.s.Restore("/image"); err != nil {
		t.Fatal(err)
	}
	if old.Count() != 0 {
		t.Error("an open view changed")
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		i, h := b.s.Hash()
		if j, g := other.s.Hash(); i != j || h != g {
			t.Fatal("not the same state", i, j)
		}
		sound(t, other.s)
		other.restart()
	}
	if names, _ := b.o.FS.List("/other"); len(names) != 2 {
		t.Error("left over:", names)
	}
}

func TestSupersededRowsGoWithTheirBlock(t *testing.T) {
	b := newBox(t)
	var ws []record.Write
	for i := range 1500 {
		ws = append(ws, put(sample(fmt.Sprintf("j%d", i), i), 1))
	}
	b.ingest("head1", t0, ws...)
	for i := range ws {
		ws[i] = put(sample(fmt.Sprintf("j%d", i), i+1), 2)
	}
	b.ingest("head1", t0, ws[:1200]...)
	candidates := func() (list []Candidate) {
		b.view(func(v *View) { list = v.Candidates(0.5) })
		return list
	}
	list := candidates()
	if len(list) != 1 || list[0].Dead != 1200 {
		t.Fatalf("%+v", list)
	}
	seen := func() (n int) {
		b.view(func(v *View) {
			for seq := uint64(1); seq <= 1500; seq++ {
				if _, ok, err := v.RowAt(seq); err != nil {
					t.Fatal(err)
				} else if ok {
					n++
				}
			}
		})
		return n
	}
	if n := seen(); n != 1500 {
		t.Error("superseded rows are gone before their block was compacted:", n)
	}
	c, _ := drops(b, record.MaxTime, list[0].First, 99999)
	b.apply(c)
	if n := seen(); n != 300 || len(candidates()) != 0 {
		t.Error(n, candidates())
	}
	sound(t, b.s)
	b.restart()
	sound(t, b.s)
}

// ledger adds up what the feed says, as a derived index does.
type ledger struct {
	at   uint64
	rows map[uint64]bool
}

func (l *ledger) follow(t *testing.T, v *View) {
	q := Query{Order: BySeq, After: l.at, Tombstones: true, Superseded: true}
	err := v.Query(context.Background(), q, func(row *columns.Row) error {
		if row.Supersedes != 0 {
			if _, ok, err := v.RowAt(row.Supersedes); err != nil {
				return err
			} else if ok && !l.rows[row.Supersedes] {
				t.Errorf("row %d supersedes %d, which was never told", row.Seq, row.Supersedes)
			}
			delete(l.rows, row.Supersedes)
		}
		if !row.Tombstone && row.ShownStop() != record.None {
			l.rows[row.Seq] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l.at = v.Seq()
}

func TestFollowingTheFeedGivesExactlyTheClosedRecords(t *testing.T) {
	b := newBox(t)
	l := &ledger{rows: map[uint64]bool{}}
	epilog := func(r record.Record, obs int64) record.Write {
		w := put(r, obs)
		w.Origin, w.Rank = record.Origin{Agent: "head1", Type: "epilog", Label: "e"}, record.RankEpilog
		return w
	}
	for i := range 400 {
		r := sample(fmt.Sprintf("j%d", i%37), i)
		switch i % 7 {
		case 0, 1:
			r.Stop = record.None
			b.ingest("head1", t0, put(r, int64(i+1)))
		case 2:
			b.ingest("head1", t0, epilog(r, int64(i+1)))
		case 3:
			b.ingest("head1", t0, record.Write{ID: r.ID, Op: record.OpWithdraw, Origin: slurm, Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: int64(i + 1)}})
		case 4:
			b.apply(&DeleteCommand{IDs: []string{r.ID}, Now: t0})
			b.apply(&UndeleteCommand{IDs: []string{r.ID}, Now: t0})
		default:
			b.ingest("head1", t0, put(r, int64(i+1)))
		}
		if i%11 == 0 {
			b.view(func(v *View) { l.follow(t, v) })
		}
	}
	b.view(func(v *View) {
		l.follow(t, v)
		n := 0
		err := v.Query(context.Background(), Query{Open: OnlyClosed}, func(row *columns.Row) error {
			n++
			if !l.rows[row.Seq] {
				t.Errorf("row %d of %s is not in the ledger", row.Seq, row.Record.ID)
			}
			return nil
		})
		if err != nil || n != len(l.rows) {
			t.Errorf("%d rows, the ledger has %d, %v", n, len(l.rows), err)
		}
	})
	sound(t, b.s)
}
