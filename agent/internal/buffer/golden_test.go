package buffer_test

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
)

var update = flag.Bool("update", false, "write the golden files")

var golden = filepath.Join("testdata", "format1.db")

// epochOfGolden was drawn when the file was made.
const epochOfGolden = "testdata/format1.epoch"

// write makes a buffer that holds some of everything.
func write(t *testing.T, file string) {
	t.Helper()
	b := open(t, file, buffer.Options{Now: newClock().now, Machine: "golden"})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fill(t, b, 3, 20)
	_, err := b.Append(buffer.Append{Source: slurm, Frames: [][]byte{[]byte("four"), []byte("five")},
		Opened: []buffer.OpenRun{{Run: "7", Record: "nemo-7", Digest: 77}}})
	must(err)
	b.Clock().Advance(2_000_000_000_000_000)
	_, err = b.Resume(buffer.Resume{Cluster: "a", Epoch: b.Epoch(), Known: buffer.Position{Epoch: b.Epoch(), Seq: 90},
		Checkpoints: map[buffer.Source][]byte{slurm: []byte("at a")}})
	must(err)
	_, err = b.Resume(buffer.Resume{Cluster: "b", Epoch: b.Epoch(), Checkpoints: map[buffer.Source][]byte{slurm: []byte("at b")}})
	must(err)
	_, end := drain(t, b, origin(b), 1)
	must(b.Ack("a", end))
	must(os.WriteFile(epochOfGolden, []byte(fmt.Sprintf("%x\n", b.Epoch())), 0o600))
	must(b.Close())
}

// copied gives a copy of the golden file that the test may write to.
func copied(t *testing.T) string {
	t.Helper()
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(golden) // there may be none
		write(t, golden)
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	file := path(t)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAFileOfFormat1IsReadWhole: what the first release wrote, every later one
// reads.
func TestAFileOfFormat1IsReadWhole(t *testing.T) {
	b := open(t, copied(t), buffer.Options{Now: newClock().now, Machine: "golden"})
	text, err := os.ReadFile(epochOfGolden)
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(epoch(b)) + "\n"; got != string(text) {
		t.Errorf("epoch %s, not %s", got, text)
	}
	stats, err := b.Stats()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	want := buffer.Stats{Epoch: b.Epoch(), First: 1, Last: 5, Bytes: stats.Bytes, MaxBytes: 8 << 30, Clusters: map[string]buffer.Ack{
		"a": {Epoch: b.Epoch(), Through: 5, At: at}, "b": {Epoch: b.Epoch(), At: at},
	}}
	if diff := cmp.Diff(want, stats); diff != "" {
		t.Error(diff)
	}
	zeros := string(make([]byte, 20))
	got, end := drain(t, b, origin(b), 1)
	if diff := cmp.Diff([]string{"frame 0 " + zeros, "frame 1 " + zeros, "frame 2 " + zeros, "four", "five"}, got); diff != "" {
		t.Error(diff)
	}
	if digest := end.Digest.String(); digest != digestOfGolden {
		t.Errorf("the chain ends with %s, not %s", digest, digestOfGolden)
	}
	if b.Clock().Last() != 2_000_000_000_000_000 {
		t.Errorf("the clock is at %d", b.Clock().Last())
	}
	runs, err := b.OpenRuns(slurm)
	if diff := cmp.Diff(map[string]buffer.OpenRun{"7": {Run: "7", Record: "nemo-7", Digest: 77}}, runs); diff != "" || err != nil {
		t.Error(diff, err)
	}
	goesBack(t, b, "at a", "\x02", "at b")
}

// digestOfGolden is the end of the chain over the five frames.
const digestOfGolden = "e961c27cf363d3c22e67ee2c83ce04a7"

func epoch(b *buffer.Buffer) []byte {
	e := b.Epoch()
	return e[:]
}

// goesBack steps the source back to these checkpoints, one after the other.
func goesBack(t *testing.T, b *buffer.Buffer, checkpoints ...string) {
	t.Helper()
	for _, want := range checkpoints {
		start, err := b.Begin(slurm)
		if err != nil || string(start.Checkpoint) != want || start.Rewind != buffer.Overlap {
			t.Errorf("%+v, %v; want %q", start, err, want)
		}
		if _, err := b.Append(buffer.Append{Source: slurm, Generation: start.Generation, Rewound: true}); err != nil {
			t.Fatal(err)
		}
	}
	if start, err := b.Begin(slurm); err != nil || start.Rewind != 0 {
		t.Errorf("%+v, %v", start, err)
	}
}
