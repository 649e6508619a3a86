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

// gapTold returns the reason of the gap that is the last frame behind p.
func gapTold(t *testing.T, b *buffer.Buffer, p buffer.Position) string {
	t.Helper()
	got, _ := drain(t, b, p, 1)
	if len(got) == 0 {
		return ""
	}
	var f wire.Frame
	if err := wire.DecodeFrame([]byte(got[len(got)-1]), &f); err != nil || f.Kind != wire.KindGap {
		return ""
	}
	if !f.Gap.To.Present() || f.Version.Observed == 0 {
		t.Errorf("%+v", f)
	}
	return f.Gap.Reason
}

// trimmed is a buffer of 10 frames that the cluster "a" has had and that are gone,
// and two more.
func trimmed(t *testing.T, file string) (*buffer.Buffer, *clock) {
	t.Helper()
	c := newClock()
	b := open(t, file, buffer.Options{Retain: time.Hour, Now: c.now})
	fill(t, b, 10, 1)
	_, end := drain(t, b, resume(t, b, "a", buffer.Position{}), 1)
	acknowledge(t, b, "a", end)
	trims(t, b, c, 10)
	fill(t, b, 2, 1)
	return b, c
}

const allTen = "the agent's buffer no longer has the frames 1 to 10, which cluster a lacks"

func TestAClusterThatWasTakenBackToBeforeItsFirstPullIsToldWhatIsGone(t *testing.T) {
	b, _ := trimmed(t, path(t))
	if got := gapTold(t, b, resume(t, b, "a", buffer.Position{})); got != allTen {
		t.Errorf("told %q", got)
	}
	last := func() uint64 {
		stats, err := b.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return stats.Last
	}
	before := last()
	if got := gapTold(t, b, resume(t, b, "a", buffer.Position{})); got != allTen || last() != before { // the answer was lost
		t.Errorf("told %q, to frame %d after %d", got, last(), before)
	}
	if start, err := b.Begin(slurm); err != nil || start.Checkpoint != nil || start.Rewind != buffer.Overlap {
		t.Errorf("the source does not begin anew: %+v, %v", start, err)
	}
}

func TestAClusterThatWasTakenBackToAnOlderEpochIsToldWhatIsGone(t *testing.T) {
	b, _ := trimmed(t, path(t))
	if got := gapTold(t, b, resume(t, b, "a", buffer.Position{Epoch: buffer.Epoch{7}, Seq: 400})); got != allTen {
		t.Errorf("told %q", got)
	}
}

// TestAClusterThatKnewALostBufferIsToldWhatItMissed: meanwhile another cluster had
// the frames of the new buffer, and they went.
func TestAClusterThatKnewALostBufferIsToldWhatItMissed(t *testing.T) {
	b, _ := trimmed(t, path(t))
	got := gapTold(t, b, resume(t, b, "was away", buffer.Position{Epoch: buffer.Epoch{7}, Seq: 400}))
	if want := "the agent's buffer no longer has the frames 1 to 10, which cluster was away lacks"; got != want {
		t.Errorf("told %q", got)
	}
}

func TestAForgottenClusterThatWasTakenBackIsToldWhatIsGone(t *testing.T) {
	b, _ := trimmed(t, path(t))
	if err := b.Forget("a"); err != nil {
		t.Fatal(err)
	}
	if got := gapTold(t, b, resume(t, b, "a", buffer.Position{})); got != allTen {
		t.Errorf("told %q", got)
	}
}

func TestAClusterThatBeganLateLacksOnlyWhatCameSince(t *testing.T) {
	b, c := trimmed(t, path(t))
	from := resume(t, b, "late", buffer.Position{})
	if got := gapTold(t, b, from); got != "" {
		t.Errorf("a new cluster was told %q", got)
	}
	if got := gapTold(t, b, resume(t, b, "late", buffer.Position{})); got != "" { // the first answer was lost
		t.Errorf("a new cluster was told %q", got)
	}
	for _, cluster := range []string{"a", "late"} {
		_, end := drain(t, b, from, 1)
		acknowledge(t, b, cluster, end)
	}
	trims(t, b, c, 2)
	got := gapTold(t, b, resume(t, b, "late", buffer.Position{}))
	if want := "the agent's buffer no longer has the frames 11 to 12, which cluster late lacks"; got != want {
		t.Errorf("told %q", got)
	}
}

func TestABufferThatMovedToAnotherMachineTellsNoGap(t *testing.T) {
	file := path(t)
	b, c := trimmed(t, file)
	known := buffer.Position{Epoch: b.Epoch(), Seq: 10}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, file, buffer.Options{Retain: time.Hour, Now: c.now, Machine: "machine-2"})
	from := resume(t, b, "a", known)
	if from.Epoch == known.Epoch || from.Seq != 10 {
		t.Errorf("goes on at %+v", from)
	}
	if got := gapTold(t, b, from); got != "" {
		t.Errorf("told %q", got)
	}
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
