package health

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// TestSurvey_AnyChanges_NegativesAreThoseShown writes, stops and withdraws records of several
// sources, some as blocks, and compares with the plain list of what is shown.
func TestSurvey_AnyChanges_NegativesAreThoseShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := store.Open(store.Options{Dir: "/store", FS: vfs.NewMem(), MemTableBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		life := "one"
		n := &Survey{View: s.View, Life: func(*store.View) (string, error) { return life, nil }, Log: slog.New(slog.DiscardHandler)}
		at := record.FromStd(noon)
		cursor, observed := store.Cursor{}, int64(at)
		shown := map[string]record.Record{} // by source and id
		ever := map[record.Origin][]record.Meta{}
		for i := range rapid.IntRange(1, 25).Draw(t, "steps") {
			source := record.Origin{Agent: "head1", Type: "replay", Label: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "label")}
			id := fmt.Sprint(source.Label, rapid.IntRange(1, 6).Draw(t, "id"))
			meta := record.Meta{{Key: "job", Values: []string{id}}, {Key: "site_id", Values: []string{source.Label}}}
			if rapid.IntRange(0, 3).Draw(t, "partition") > 0 {
				meta = record.Meta{meta[0], {Key: "partition", Values: []string{"long"}}, meta[1]}
			}
			r := record.Record{ID: id, Meta: meta, Start: at + record.Time(rapid.IntRange(0, 3).Draw(t, "start"))*record.Hour, Stop: record.None, Submit: record.None}
			if rapid.IntRange(0, 4).Draw(t, "open") > 0 {
				r.Stop = at + record.Time(rapid.IntRange(0, 3).Draw(t, "stop"))*record.Hour
			}
			observed++
			version := record.Version{Ended: true, Observed: observed}
			c := &store.IngestCommand{Agent: "head1", Now: at, Epoch: store.Epoch{1}, From: cursor.Seq + 1, To: cursor.Seq + 1, Before: cursor.Digest, After: store.Chain{byte(i + 1)}}
			if cursor.Seq == 0 {
				c.Begin = &store.Begin{}
			}
			old, known := shown[id]
			switch {
			case known && rapid.IntRange(0, 3).Draw(t, "withdraw") == 0:
				c.Writes = []record.Write{{Op: record.OpWithdraw, ID: id, Origin: source, Rank: record.RankScheduler, Version: version}}
				delete(shown, id)
			case known: // an id keeps its start, so that it is the same run
				ever[source] = append(ever[source], meta)
				r.Start, r.Stop = old.Start, max(r.Stop, at)
				c.Writes = []record.Write{{Op: record.OpPut, ID: id, Origin: source, Rank: record.RankScheduler, Version: version, Record: &r}}
				shown[id] = r
			default:
				ever[source] = append(ever[source], meta)
				rows := columns.NewBuilder()
				rows.Add(&columns.Row{Record: r, Origin: source, Rank: record.RankScheduler, Version: version, Stop: record.None})
				c.Rows = rows.Bytes()
				shown[id] = r
			}
			answer, err := s.Apply(uint64(i+1), 1, store.Encode(c))
			if err != nil {
				t.Fatal(err)
			}
			cursor = answer.(store.IngestResult).Cursor
			if rapid.IntRange(0, 9).Draw(t, "restored") == 0 {
				life += "+"
			}
			if rapid.Bool().Draw(t, "followed") {
				follow(t, n)
			}
		}
		follow(t, n)
		want, got := map[string]int64{}, map[string]int64{}
		for id, r := range shown {
			if r.Negative() {
				want["head1/replay/"+id[:1]]++
			}
		}
		for _, f := range n.List() {
			got[f.Source] = f.Count
			if r, ok := shown[f.Example]; !ok || !r.Negative() || f.First.After(f.Last) || !f.Noticed.Equal(noon) {
				t.Errorf("%+v", f)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		checkCommon(t, n.Common(), shown, ever)
		n.mu.Lock() // as while a look goes on
		checkCommon(t, n.Common(), shown, ever)
		n.mu.Unlock()
	})
}

// checkCommon checks that what is common holds of all that is shown, and that what holds of all
// that ever was is common.
func checkCommon(t *rapid.T, got map[record.Origin]record.Meta, shown map[string]record.Record, ever map[record.Origin][]record.Meta) {
	for source, metas := range ever {
		for _, e := range got[source] {
			for id, r := range shown {
				if id[:1] == source.Label && !slices.Equal(r.Meta.Get(e.Key), e.Values) {
					t.Errorf("%s: %v is not that of %s", source, e, id)
				}
			}
		}
		for _, e := range metas[0] {
			all := !slices.ContainsFunc(metas, func(m record.Meta) bool { return !slices.Equal(m.Get(e.Key), e.Values) })
			if _, some := got[source]; some && all && got[source].Get(e.Key) == nil {
				t.Errorf("%s: %v is of all records, and not of %v", source, e, got[source])
			}
		}
	}
}

func follow(t *rapid.T, n *Survey) {
	if err := n.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRecords_OfAgentsAndTheStore_AreOneList(t *testing.T) {
	f := Facts{Data: Data{Negative: []RecordFinding{{Source: "pushed", Kind: "stop-before-start"}}}}
	f.Agents = []Agent{{Findings: []RecordFinding{{Source: "b/replay/x", Kind: "column-unread"}}}, {Findings: []RecordFinding{{Source: "a/replay/x", Kind: "component-missing"}}}}
	var got []string
	for _, x := range f.Records() {
		got = append(got, x.Source)
	}
	if diff := cmp.Diff([]string{"a/replay/x", "b/replay/x", "pushed"}, got); diff != "" {
		t.Error(diff)
	}
	l := Local{Agents: []Agent{{Findings: make([]RecordFinding, 20)}}}
	if n := len(l.Brief().Agents[0].Findings); n != briefFindings {
		t.Errorf("%d findings are told to the other nodes", n)
	}
	if len(l.Agents[0].Findings) != 20 || !f.Agents[0].Findings[0].First.IsZero() {
		t.Error("the original was changed")
	}
}
