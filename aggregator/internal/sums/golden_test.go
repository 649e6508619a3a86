package sums

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
)

var updateGolden = flag.Bool("update", false, "write the golden files anew")

// goldenBox has a run of each kind: a short one, one that lasts, an open one, one that is
// too long for days, and one whose sum takes more than 64 bits.
func goldenBox(t *testing.T) *box {
	b := newBox(t, 0)
	meta := record.Meta{{Key: "site", Values: []string{"nemo"}}, {Key: "user", Values: []string{"anna", "second"}}}
	cores := func(n int64) []record.Component {
		return []record.Component{
			{Name: "Cores", Amount: n, Scores: []record.Score{{Name: "HEPScore23", Value: 21.5}}},
			{Name: "TotalCPU", Amount: 7, Kind: record.Total},
		}
	}
	at := t0 + 10*record.Hour
	b.post(
		record.Record{ID: "short", Start: at, Stop: at + record.Hour + 1, Submit: at - record.Minute, Meta: meta, Components: cores(4)},
		record.Record{ID: "lasting", Start: at, Stop: at + 3*record.Day, Submit: record.None, Meta: meta[:1], Components: cores(8)[:1]},
		record.Record{ID: "open", Start: at, Stop: record.None, Submit: record.None, Meta: meta[1:], Components: cores(2)},
		record.Record{ID: "long", Start: at, Stop: at + 3000*record.Day, Submit: at - 2*record.Day, Meta: meta, Components: cores(1)},
		record.Record{ID: "great", Start: at, Stop: at + record.Day, Submit: record.None, Components: []record.Component{{Name: "Memory", Amount: 1 << 60}}},
	)
	return b
}

func TestStoredSums_Golden_AreReadAndWrittenAsTheyWere(t *testing.T) {
	b := goldenBox(t)
	golden := filepath.Join("testdata", "sums-v1")
	o := Options{Views: b, Life: life, Dir: t.TempDir()}
	dims := []string{"site", "user"}
	x := newIndex(t, o, dims)
	b.save(x)
	if *updateGolden {
		copyFolder(t, x.sumsFolder(), golden)
	}
	want := newIndex(t, o, dims)
	copyFolder(t, golden, want.sumsFolder())
	if loaded, err := want.Load(t.Context()); !loaded || err != nil {
		t.Fatal(loaded, err)
	}
	b.follow(want)
	if found, err := want.Check(t.Context()); err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	if len(want.months) != len(x.months) {
		t.Fatalf("%d months, want %d", len(x.months), len(want.months))
	}
	for n, m := range want.months {
		content, err := os.ReadFile(filepath.Join(golden, m.name))
		if err != nil {
			t.Fatal(err)
		}
		if _, got, err := x.encodeMonth(n, nil); err != nil || !bytes.Equal(got, content) {
			t.Errorf("chunk %d of days is written in another way", n)
		}
		x.months[n] = m // names are random
	}
	content, err := os.ReadFile(filepath.Join(golden, headFile))
	if err != nil {
		t.Fatal(err)
	}
	view, err := b.View()
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	anchors, err := anchorsOf(view, anchorsAt(x.seq))
	if err != nil {
		t.Fatal(err)
	}
	index, _ := view.Applied()
	if got := x.writeHead(x.identityHash(), index).finishHead(anchors); !bytes.Equal(got, content) {
		t.Errorf("the head is written in another way:\n%q, want\n%q", got, content)
	}
	if len(want.lasting) == 0 || len(want.long) == 0 || len(want.open) == 0 {
		t.Error("a kind of run is missing")
	}
}
