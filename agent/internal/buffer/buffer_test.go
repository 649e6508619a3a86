package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/proto/frame"
)

var slurm = buffer.Source{Type: "slurm", Label: "nemo"}

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func newClock() *clock { return &clock{time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)} }

func open(t *testing.T, path string, opt buffer.Options) *buffer.Buffer {
	t.Helper()
	if opt.Machine == "" {
		opt.Machine = "machine-1"
	}
	b, err := buffer.Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func path(t *testing.T) string { return filepath.Join(t.TempDir(), "buffer.db") }

// fill appends n frames, each in an append of its own, and returns them.
func fill(t *testing.T, b *buffer.Buffer, n, size int) {
	t.Helper()
	start, err := b.Begin(slurm)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		f := append([]byte(fmt.Sprintf("frame %d ", i)), make([]byte, size)...)
		if _, err := b.Append(buffer.Append{Source: slurm, Generation: start.Generation, Frames: [][]byte{f}, Checkpoint: []byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
	}
}

// drain reads all behind p and returns the frames and the end.
func drain(t *testing.T, b *buffer.Buffer, p buffer.Position, maxBytes int) ([]string, buffer.Position) {
	t.Helper()
	var got []string
	for {
		chunks, end, err := b.Read(p, maxBytes)
		if err != nil {
			t.Fatal(err)
		}
		if len(chunks) == 0 {
			return got, p
		}
		for _, raw := range chunks {
			c, err := frame.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			if c.First != p.Seq+1 || c.Before != p.Digest {
				t.Fatalf("chunk begins at %d %s, want behind %d %s", c.First, c.Before, p.Seq, p.Digest)
			}
			for _, f := range c.Frames() {
				got = append(got, string(f))
			}
			p = buffer.Position{Epoch: p.Epoch, Seq: c.Last(), Digest: c.After}
		}
		if p != end {
			t.Fatalf("end %v, want %v", end, p)
		}
	}
}

func origin(b *buffer.Buffer) buffer.Position { return buffer.Position{Epoch: b.Epoch()} }

func TestFramesSurviveReopeningAndReadingRemovesNothing(t *testing.T) {
	file := path(t)
	b := open(t, file, buffer.Options{})
	fill(t, b, 50, 10)
	first, end := drain(t, b, origin(b), 1000)
	if len(first) != 50 || end.Seq != 50 {
		t.Fatalf("read %d frames up to %d", len(first), end.Seq)
	}
	epoch := b.Epoch()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, file, buffer.Options{})
	if b.Epoch() != epoch {
		t.Fatal("the same file on the same machine got a new epoch")
	}
	again, _ := drain(t, b, origin(b), 1<<20)
	if fmt.Sprint(again) != fmt.Sprint(first) {
		t.Fatal("frames differ after reopening")
	}
	start, err := b.Begin(slurm)
	if err != nil || len(start.Checkpoint) != 1 || start.Checkpoint[0] != 49 {
		t.Fatalf("checkpoint %v, %v", start, err)
	}
}

func TestOneAppendOfManyFramesIsCutIntoChunksAndCanBeReadFromItsMiddle(t *testing.T) {
	b := open(t, path(t), buffer.Options{})
	var frames [][]byte
	for i := range 3000 {
		frames = append(frames, append([]byte(fmt.Sprint(i, " ")), make([]byte, 300)...))
	}
	last, err := b.Append(buffer.Append{Source: slurm, Frames: frames})
	if err != nil || last != 3000 {
		t.Fatal(last, err)
	}
	all, _ := drain(t, b, origin(b), 1)
	if len(all) != 3000 {
		t.Fatalf("read %d", len(all))
	}
	chunks, _, err := b.Read(origin(b), 1)
	if err != nil {
		t.Fatal(err)
	}
	c, err := frame.Parse(chunks[0])
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := c.DigestAt(17)
	rest, _ := drain(t, b, buffer.Position{Epoch: b.Epoch(), Seq: 17, Digest: digest}, 1)
	if len(rest) != 2983 || rest[0] != all[17] {
		t.Fatalf("read %d behind 17", len(rest))
	}
}

func TestNothingThatIsNotAcknowledgedIsDropped(t *testing.T) {
	c := newClock()
	b := open(t, path(t), buffer.Options{Retain: time.Hour, Now: c.now})
	fill(t, b, 10, 100)
	c.t = c.t.Add(1000 * time.Hour)
	if n, err := b.Trim(); n != 0 || err != nil {
		t.Fatalf("dropped %d without any cluster, %v", n, err)
	}
	_, end := drain(t, b, origin(b), 1)
	for _, cluster := range []string{"a", "b"} {
		p := end
		if cluster == "b" {
			chunks, q, err := b.Read(origin(b), 1)
			if err != nil || len(chunks) != 1 {
				t.Fatal(err)
			}
			p = q
		}
		if err := b.Ack(cluster, p); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := b.Trim(); n != 1 || err != nil {
		t.Fatalf("dropped %d, want the one that both have, %v", n, err)
	}
	if err := b.Forget("b"); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Trim(); n != 9 || err != nil {
		t.Fatalf("dropped %d, %v", n, err)
	}
	if _, err := b.Append(buffer.Append{Frames: [][]byte{[]byte("next")}}); err != nil {
		t.Fatal(err)
	}
	got, _ := drain(t, b, end, 1)
	if fmt.Sprint(got) != "[next]" {
		t.Fatal(got)
	}
}

func TestAcknowledgedFramesStayForTheRetention(t *testing.T) {
	c := newClock()
	b := open(t, path(t), buffer.Options{Retain: time.Hour, Now: c.now})
	fill(t, b, 10, 100)
	_, end := drain(t, b, origin(b), 1)
	if err := b.Ack("a", end); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Trim(); n != 0 || err != nil {
		t.Fatal(n, err)
	}
}

func TestAFullBufferRefusesUntilAClusterHasPulledAndThenDropsTheOldestEarly(t *testing.T) {
	b := open(t, path(t), buffer.Options{MaxSize: 4000})
	f := func(i int) error {
		noise := make([]byte, 0, 600)
		for j := range 600 {
			noise = append(noise, byte(i*31+j*j*7+j>>3))
		}
		_, err := b.Append(buffer.Append{Source: slurm, Frames: [][]byte{noise}, Checkpoint: []byte{byte(i)}})
		return err
	}
	n := 0
	for ; n < 100; n++ {
		if err := f(n); errors.Is(err, buffer.ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n == 0 || n == 100 {
		t.Fatalf("full after %d", n)
	}
	if start, _ := b.Begin(slurm); start.Checkpoint[0] != byte(n-1) {
		t.Fatal("the refused append moved the checkpoint")
	}
	_, end := drain(t, b, origin(b), 1)
	if err := b.Ack("a", end); err != nil {
		t.Fatal(err)
	}
	if err := f(n); err != nil {
		t.Fatalf("after the acknowledgement: %v", err)
	}
}

func TestAWrongAcknowledgementNeverTrims(t *testing.T) {
	b := open(t, path(t), buffer.Options{})
	fill(t, b, 5, 1)
	_, end := drain(t, b, origin(b), 1)
	cases := []struct {
		name string
		p    buffer.Position
		want error
	}{
		{"other epoch", buffer.Position{Epoch: buffer.Epoch{1}, Seq: 5, Digest: end.Digest}, buffer.ErrEpoch},
		{"other history", buffer.Position{Epoch: end.Epoch, Seq: 4, Digest: end.Digest}, buffer.ErrDigest},
		{"beyond the end", buffer.Position{Epoch: end.Epoch, Seq: 6, Digest: end.Digest}, buffer.ErrAhead},
	}
	for _, c := range cases {
		if err := b.Ack("a", c.p); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if st, _ := b.Stats(); len(st.Clusters) != 0 {
		t.Error("a refused acknowledgement was kept")
	}
}

func TestALostBufferGoesBackToWhatTheClusterRemembers(t *testing.T) {
	b := open(t, path(t), buffer.Options{})
	known := buffer.Position{Epoch: buffer.Epoch{9}, Seq: 700}
	start, err := b.Begin(slurm)
	if err != nil {
		t.Fatal(err)
	}
	from, err := b.Resume(buffer.Resume{Cluster: "a", Epoch: b.Epoch(), Known: known,
		Checkpoints: map[buffer.Source][]byte{slurm: []byte("old")}, Observed: 1 << 60})
	if err != nil || from != origin(b) {
		t.Fatal(from, err)
	}
	if got := b.Clock().Observe(); got <= 1<<60 {
		t.Errorf("the clock says %d, behind what the cluster has seen", got)
	}
	_, err = b.Append(buffer.Append{Source: slurm, Generation: start.Generation, Checkpoint: []byte("fresh")})
	if !errors.Is(err, buffer.ErrSuperseded) {
		t.Fatalf("a collection from before could overwrite the checkpoint: %v", err)
	}
	start, err = b.Begin(slurm)
	if err != nil || string(start.Checkpoint) != "old" || start.Rewind != buffer.Overlap {
		t.Fatal(start, err)
	}
	a := buffer.Append{Source: slurm, Generation: start.Generation, Checkpoint: []byte("new"), Rewound: true}
	if _, err := b.Append(a); err != nil {
		t.Fatal(err)
	}
	if start, _ = b.Begin(slurm); start.Rewind != 0 || string(start.Checkpoint) != "new" {
		t.Fatal(start)
	}
}

func TestABufferFromABackupIsNoticedAndSendsAllAgainUnderANewEpoch(t *testing.T) {
	file := path(t)
	b := open(t, file, buffer.Options{})
	fill(t, b, 10, 1)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	backup, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b = open(t, file, buffer.Options{})
	fill(t, b, 5, 2)
	_, committed := drain(t, b, origin(b), 1)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	b = open(t, file, buffer.Options{})
	if _, _, err := b.Read(committed, 1); !errors.Is(err, buffer.ErrAhead) {
		t.Fatalf("shorter copy: %v", err)
	}
	fill(t, b, 8, 3)
	if _, _, err := b.Read(committed, 1); !errors.Is(err, buffer.ErrDigest) {
		t.Fatalf("copy with another history: %v", err)
	}
	old := b.Epoch()
	from, err := b.Resume(buffer.Resume{Cluster: "a", Epoch: old, Known: committed,
		Checkpoints: map[buffer.Source][]byte{slurm: {4}}, Observed: b.Clock().Last() + 5})
	if err != nil || b.Epoch() == old || from.Epoch != b.Epoch() {
		t.Fatalf("no new epoch: %v", err)
	}
	got, _ := drain(t, b, from, 1)
	if len(got) != 18 {
		t.Fatalf("sent %d again, want all 18", len(got))
	}
}

func TestACloneOnAnotherMachineGetsANewEpoch(t *testing.T) {
	file := path(t)
	b := open(t, file, buffer.Options{Machine: "one"})
	fill(t, b, 3, 1)
	old := b.Epoch()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b = open(t, file, buffer.Options{Machine: "two"}); b.Epoch() == old {
		t.Fatal("the copy kept the epoch")
	}
}

func TestNotesOnRunningJobsAreKeptPerSource(t *testing.T) {
	file := path(t)
	b := open(t, file, buffer.Options{})
	other := buffer.Source{Type: "slurm", Label: "nemo2"}
	for _, s := range []buffer.Source{slurm, other} {
		a := buffer.Append{Source: s, Opened: []buffer.OpenRun{{Run: "1", Record: "r1", Digest: 7}, {Run: "2", Record: "r2", Digest: 8}}}
		if _, err := b.Append(a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Append(buffer.Append{Source: slurm, Closed: []string{"1"}}); err != nil {
		t.Fatal(err)
	}
	runs, err := b.OpenRuns(slurm)
	if err != nil || len(runs) != 1 || runs["2"] != (buffer.OpenRun{Run: "2", Record: "r2", Digest: 8}) {
		t.Fatal(runs, err)
	}
	if runs, _ = b.OpenRuns(other); len(runs) != 2 {
		t.Fatal(runs)
	}
}

func TestTheClockNeverGoesBackOverARestart(t *testing.T) {
	c := newClock()
	file := path(t)
	b := open(t, file, buffer.Options{Now: c.now})
	last := int64(0)
	for range 5 {
		c.t = c.t.Add(-time.Hour)
		if got := b.Clock().Observe(); got <= last {
			t.Fatal("went back")
		} else {
			last = got
		}
	}
	if _, err := b.Append(buffer.Append{Frames: [][]byte{[]byte("x")}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, file, buffer.Options{Now: c.now})
	if got := b.Clock().Observe(); got <= last {
		t.Fatalf("%d after %d", got, last)
	}
}

func TestWaitReturnsWhenSomethingComes(t *testing.T) {
	b := open(t, path(t), buffer.Options{})
	done := make(chan struct{})
	go func() { b.Wait(context.Background(), 0); close(done) }()
	fill(t, b, 1, 1)
	<-done
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b.Wait(ctx, 1)
}

func TestASourceGoesBackForEveryClusterThatNeedsItOneAfterTheOther(t *testing.T) {
	b := open(t, path(t), buffer.Options{})
	source := buffer.Source{Type: "slurm", Label: "nemo"}
	resume := func(cluster, checkpoint string) {
		_, err := b.Resume(buffer.Resume{
			Cluster: cluster, Epoch: b.Epoch(), Known: buffer.Position{Epoch: buffer.Epoch{9}, Seq: 5},
			Checkpoints: map[buffer.Source][]byte{source: []byte(checkpoint)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	resume("a", "at a")
	resume("b", "at b")
	resume("a", "at a2")
	for _, want := range []string{"at a2", "at b"} {
		start, err := b.Begin(source)
		if err != nil || string(start.Checkpoint) != want || start.Rewind != buffer.Overlap {
			t.Fatalf("%+v, %v; want %s", start, err, want)
		}
		if _, err := b.Append(buffer.Append{Source: source, Generation: start.Generation + 1, Rewound: true}); !errors.Is(err, buffer.ErrSuperseded) {
			t.Fatalf("error %v", err)
		}
		if _, err := b.Append(buffer.Append{Source: source, Generation: start.Generation, Rewound: true, Checkpoint: []byte("now")}); err != nil {
			t.Fatal(err)
		}
	}
	if start, err := b.Begin(source); err != nil || string(start.Checkpoint) != "now" || start.Rewind != 0 {
		t.Fatalf("%+v, %v", start, err)
	}
}
