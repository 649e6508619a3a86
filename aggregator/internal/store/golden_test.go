package store

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

var update = flag.Bool("update", false, "write the golden files of the present formats")

// goldens has the bytes of everything that is kept or sent, by name.
func goldens() (names []string, bytes map[string][]byte) {
	bytes = map[string][]byte{}
	add := func(name string, b []byte) {
		names = append(names, name)
		bytes[name] = b
	}
	for _, c := range everyCommand() {
		add(strings.TrimPrefix(fmt.Sprintf("%T", c), "*store."), Encode(c))
	}
	r := sample("a", 1)
	row := columns.Row{Record: r, Origin: slurm, Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: 3}, Stop: record.None}
	e := record.Entry{ID: "a", Holdings: []record.Holding{row.Holding(), {Origin: record.Pushed, Rank: record.RankPush, Version: record.Version{Observed: 1},
		Record: &record.Record{ID: "a", Start: t0, Stop: record.None, Submit: record.None}, Stop: t0, StopObserved: 9}}}
	add("held", encodeHeld(&e, &row))
	add("index", (&index{Seq: 300}).encode())
	add("index with flags", (&index{Seq: 300, Open: true, Hidden: true, Held: true, Deleted: true, By: "me", At: t0}).encode())
	add("cursor", (&Cursor{Agent: "a", Epoch: Epoch{1}, Seq: 3, Digest: Chain{2}, Observed: 4, Pulled: t0,
		Checkpoints: []Checkpoint{{slurm, []byte("c")}}, Watermarks: []Watermark{{slurm, t0}}}).encode())
	add("state", (&state{Cluster: "c", Version: 1, Index: 2, Term: 3, Parts: 4, Next: 5, Clock: 6, Shown: 7, Rows: 8, Hash: Hash{9, 10}}).encode())
	add("zone", (&zone{First: 1, Last: 2, Rows: 3, Dead: 1, Tombstones: 1, MinStart: t0, MaxStart: t0, MinStop: t0, MaxStop: t0, Bytes: 9}).encode())
	add("quarantined", encodeQuarantined(&Quarantined{Source: slurm, ID: "q", Reason: "mapping", Raw: []byte("{}"), First: t0, Last: t0, Count: 1}))
	add("counts", (&Counts{Pulled: 9, Added: 1, Merged: 2, Unchanged: 3, Quarantined: 3}).encode())
	add("upload", stageHead{Begun: t0, Parts: 2}.encode())
	add("waiting row", (&waitingRow{row: row, dead: true}).value())
	h := rowHasher{}
	hash := h.row(&row)
	add("hash of a row", []byte(hash.String()))
	return names, bytes
}

const goldenFile = "testdata/formats-1.golden"

func TestFormatsAreThoseThatWereReleased(t *testing.T) {
	names, got := goldens()
	if *update {
		var text strings.Builder
		for _, name := range names {
			fmt.Fprintf(&text, "%s\t%s\n", name, hex.EncodeToString(got[name]))
		}
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(goldenFile, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != len(names) {
		t.Errorf("%d formats, %d in the golden file", len(names), len(lines))
	}
	for _, line := range lines {
		name, want, _ := strings.Cut(line, "\t")
		if hex.EncodeToString(got[name]) != want {
			t.Errorf("%s\ngot  %x\nwant %s", name, got[name], want)
		}
	}
}
