package buffer_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// resume makes the cluster known where it says that it is.
func resume(t *testing.T, b *buffer.Buffer, cluster string, known buffer.Position) buffer.Position {
	t.Helper()
	from, err := b.Resume(buffer.Resume{Cluster: cluster, Epoch: b.Epoch(), Known: known})
	if err != nil {
		t.Fatal(err)
	}
	return from
}

func acknowledge(t *testing.T, b *buffer.Buffer, cluster string, p buffer.Position) {
	t.Helper()
	if err := b.Ack(cluster, p); err != nil {
		t.Fatal(err)
	}
}

// trims says how many frames go when all of them are old.
func trims(t *testing.T, b *buffer.Buffer, c *clock, want int) {
	t.Helper()
	c.t = c.t.Add(1000 * time.Hour)
	if n, err := b.Trim(); n != want || err != nil {
		t.Fatalf("dropped %d, want %d; %v", n, want, err)
	}
}

func TestAClusterThatIsSilentForLongerThanTheRetentionHoldsBackWhatItLacks(t *testing.T) {
	c := newClock()
	b := open(t, path(t), buffer.Options{Retain: time.Hour, Now: c.now})
	resume(t, b, "silent", buffer.Position{})
	fill(t, b, 10, 1)
	_, end := drain(t, b, resume(t, b, "a", buffer.Position{}), 1)
	acknowledge(t, b, "a", end)
	trims(t, b, c, 0)
	if err := b.Forget("silent"); err != nil {
		t.Fatal(err)
	}
	trims(t, b, c, 10)
}

func TestAClusterIsKnownFromItsResumeOn(t *testing.T) {
	c := newClock()
	b := open(t, path(t), buffer.Options{Retain: time.Hour, Now: c.now})
	fill(t, b, 10, 1)
	_, end := drain(t, b, origin(b), 1)
	acknowledge(t, b, "a", end)
	resume(t, b, "new", buffer.Position{})
	stats, err := b.Stats()
	if want := (buffer.Ack{Epoch: b.Epoch(), At: c.t}); err != nil || stats.Clusters["new"] != want {
		t.Fatalf("%+v, want %+v; %v", stats.Clusters["new"], want, err)
	}
	trims(t, b, c, 0)
}

func TestAResumeTakesBackWhatAClusterHadAcknowledgedAndLost(t *testing.T) {
	c := newClock()
	b := open(t, path(t), buffer.Options{Retain: time.Hour, Now: c.now})
	fill(t, b, 10, 1)
	chunks, third, err := b.Read(origin(b), 1)
	if err != nil || len(chunks) != 1 {
		t.Fatal(err)
	}
	_, end := drain(t, b, origin(b), 1)
	acknowledge(t, b, "a", end)
	if from := resume(t, b, "a", third); from != third {
		t.Fatalf("goes on at %v, not %v", from, third)
	}
	trims(t, b, c, int(third.Seq))
	got, _ := drain(t, b, third, 1)
	if len(got) != int(end.Seq-third.Seq) {
		t.Fatalf("%d frames are left", len(got))
	}
}

func TestAClusterIsToldWhichFramesItLacksAndWillNotGet(t *testing.T) {
	c := newClock()
	b := open(t, path(t), buffer.Options{Retain: time.Hour, Now: c.now})
	fill(t, b, 10, 1)
	_, known, err := b.Read(origin(b), 1)
	if err != nil {
		t.Fatal(err)
	}
	_, end := drain(t, b, origin(b), 1)
	acknowledge(t, b, "a", end)
	trims(t, b, c, 10)
	fill(t, b, 2, 1)
	before := b.Epoch()
	var last string
	for range 2 { // the first answer may be lost
		from := resume(t, b, "restored", known)
		if from.Epoch != before || from.Seq != 10 {
			t.Fatalf("goes on at %v", from)
		}
		got, _ := drain(t, b, from, 1)
		last = got[len(got)-1]
		var f wire.Frame
		if err := wire.DecodeFrame([]byte(last), &f); err != nil {
			t.Fatal(err)
		}
		want := wire.Gap{From: record.None, To: record.FromStd(c.t), Reason: "the agent's buffer no longer has the frames 2 to 10, which cluster restored lacks"}
		if f.Kind != wire.KindGap || f.Gap != want || f.SourceType != "" || f.Version.Observed == 0 {
			t.Fatalf("%+v, want %+v", f, want)
		}
	}
	trims(t, b, c, 0)
}

func TestANewClusterIsToldOfNoGap(t *testing.T) {
	c := newClock()
	b := open(t, path(t), buffer.Options{Retain: time.Hour, Now: c.now})
	fill(t, b, 10, 1)
	_, end := drain(t, b, origin(b), 1)
	acknowledge(t, b, "a", end)
	trims(t, b, c, 10)
	if from := resume(t, b, "new", buffer.Position{}); from != end {
		t.Fatalf("goes on at %v, not %v", from, end)
	}
	if got, _ := drain(t, b, end, 1); len(got) != 0 {
		t.Fatalf("told %q", got)
	}
}

func TestAClusterWithoutANameAndOneThatIsNotKnownAreRefused(t *testing.T) {
	b := open(t, path(t), buffer.Options{})
	if _, err := b.Resume(buffer.Resume{Epoch: b.Epoch()}); !errors.Is(err, buffer.ErrCluster) {
		t.Error(err)
	}
	if err := b.Ack("", origin(b)); !errors.Is(err, buffer.ErrCluster) {
		t.Error(err)
	}
	if err := b.Forget("x"); !errors.Is(err, buffer.ErrCluster) || !strings.Contains(err.Error(), `"x"`) {
		t.Error(err)
	}
}

func TestAPositionAtTheEndOfAllNumbersIsNoPlaceAndNoGap(t *testing.T) {
	b := open(t, path(t), buffer.Options{})
	fill(t, b, 3, 1)
	old := b.Epoch()
	beyond := buffer.Position{Epoch: old, Seq: math.MaxUint64}
	if err := b.Ack("a", beyond); !errors.Is(err, buffer.ErrAhead) {
		t.Error(err)
	}
	from := resume(t, b, "a", beyond)
	if b.Epoch() == old {
		t.Error("the epoch stayed")
	}
	if got, _ := drain(t, b, from, 1); len(got) != 3 {
		t.Errorf("sent %q", got)
	}
}

// TestASourceGoesBackToItsOwnCheckpointToo: the cluster that the source goes
// back for may be further than the old copy of the buffer was.
func TestASourceGoesBackToItsOwnCheckpointToo(t *testing.T) {
	b := open(t, path(t), buffer.Options{})
	fill(t, b, 5, 1)
	_, err := b.Resume(buffer.Resume{
		Cluster: "a", Epoch: b.Epoch(), Known: buffer.Position{Epoch: b.Epoch(), Seq: 50},
		Checkpoints: map[buffer.Source][]byte{slurm: {40}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []byte{40, 4} {
		start, err := b.Begin(slurm)
		if err != nil || len(start.Checkpoint) != 1 || start.Checkpoint[0] != want || start.Rewind != buffer.Overlap {
			t.Fatalf("%+v, %v; want %d", start, err, want)
		}
		for _, a := range []buffer.Append{{Checkpoint: []byte{60}}, {Rewound: true}} {
			a.Source, a.Generation = slurm, start.Generation
			if _, err := b.Append(a); err != nil {
				t.Fatal(err)
			}
		}
	}
	if start, err := b.Begin(slurm); err != nil || start.Checkpoint[0] != 60 || start.Rewind != 0 {
		t.Fatalf("%+v, %v", start, err)
	}
}

// TestASourceWithoutAnEndGoesOnFromWhereItSteppedBackTo: its own checkpoint may
// be the newer one, and it would skip what lies before that.
func TestASourceWithoutAnEndGoesOnFromWhereItSteppedBackTo(t *testing.T) {
	b := open(t, path(t), buffer.Options{})
	fill(t, b, 5, 1)
	_, err := b.Resume(buffer.Resume{Cluster: "a", Epoch: b.Epoch(), Known: buffer.Position{Epoch: buffer.Epoch{7}}, Checkpoints: map[buffer.Source][]byte{slurm: {1}}})
	if err != nil {
		t.Fatal(err)
	}
	start, err := b.Begin(slurm)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range []buffer.Append{{Checkpoint: []byte{2}, Rewound: true}, {Checkpoint: []byte{3}}} {
		a.Source, a.Generation = slurm, start.Generation
		if _, err := b.Append(a); err != nil {
			t.Fatal(i, err)
		}
	}
	if start, err = b.Begin(slurm); err != nil || start.Checkpoint[0] != 3 || start.Rewind != 0 {
		t.Fatalf("%+v, %v", start, err)
	}
}
