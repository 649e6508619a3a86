package buffer_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// model is what a buffer has to hold.
type model struct {
	frames     []string // all that were ever appended, in order
	checkpoint string
	acked      map[string]uint64
	began      map[string]uint64    // behind which frame each cluster came for the first time
	told       map[string][2]uint64 // how far the frames had gone when it was told so, and in which frame
	first      uint64               // the oldest frame, when it was last looked at
}

// gapText stands for a frame that the buffer made itself.
const gapText = "gap"

// TestTheBufferIsAQueueThatLosesNothing holds the buffer against a list in
// memory, over appends, partial reads, acknowledgements, trims and restarts.
func TestTheBufferIsAQueueThatLosesNothing(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		clock := newClock()
		file := filepath.Join(dir, fmt.Sprint(n))
		opt := buffer.Options{MaxSize: 20_000, Retain: time.Hour, Now: clock.now, NoSync: true, Machine: "m"}
		b, err := buffer.Open(file, opt)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { b.Close() }()
		m := model{acked: map[string]uint64{}, began: map[string]uint64{}, told: map[string][2]uint64{}, first: 1}
		source := buffer.Source{Type: "a", Label: "b"}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				a := buffer.Append{Source: source}
				for i := range rapid.IntRange(0, 20).Draw(t, "frames") {
					a.Frames = append(a.Frames, fmt.Appendf(nil, "%d/%d/%0*d", len(m.frames), i, rapid.IntRange(1, 900).Draw(t, "size"), 0))
				}
				a.Checkpoint = fmt.Appendf(nil, "%d", len(m.frames)+len(a.Frames))
				start, err := b.Begin(source)
				if err != nil {
					t.Fatal(err)
				}
				a.Generation = start.Generation
				last, err := b.Append(a)
				switch {
				case errors.Is(err, buffer.ErrFull):
					return
				case err != nil:
					t.Fatal(err)
				}
				for _, f := range a.Frames {
					m.frames = append(m.frames, string(f))
				}
				m.checkpoint = string(a.Checkpoint)
				if last != uint64(len(m.frames)) {
					t.Fatalf("last is %d, not %d", last, len(m.frames))
				}
			},
			"acknowledge": func(t *rapid.T) {
				cluster := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "cluster")
				p := walk(t, b, &m, cluster, rapid.IntRange(100, 5000).Draw(t, "bytes"))
				if err := b.Ack(cluster, p); err != nil {
					t.Fatal(err)
				}
				m.acked[cluster] = p.Seq
			},
			"forget": func(t *rapid.T) {
				cluster := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "cluster")
				_, known := m.acked[cluster]
				if err := b.Forget(cluster); (err == nil) != known || err != nil && !errors.Is(err, buffer.ErrCluster) {
					t.Fatal(err)
				}
				delete(m.acked, cluster)
			},
			"trim": func(t *rapid.T) {
				clock.t = clock.t.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "minutes")) * time.Minute)
				for cluster := range m.acked {
					stats, err := b.Stats()
					if err != nil {
						t.Fatal(err)
					}
					if stats.Clusters[cluster].Through != m.acked[cluster] {
						t.Fatalf("cluster %s is at %d, not %d", cluster, stats.Clusters[cluster].Through, m.acked[cluster])
					}
				}
				if _, err := b.Trim(); err != nil {
					t.Fatal(err)
				}
			},
			"restart": func(t *rapid.T) {
				epoch := b.Epoch()
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
				if b, err = buffer.Open(file, opt); err != nil {
					t.Fatal(err)
				}
				if b.Epoch() != epoch {
					t.Fatal("a restart gave a new epoch")
				}
			},
			"": func(t *rapid.T) {
				start, err := b.Begin(source)
				if err != nil || string(start.Checkpoint) != m.checkpoint {
					t.Fatalf("checkpoint %q, not %q; %v", start.Checkpoint, m.checkpoint, err)
				}
				stats, err := b.Stats()
				if err != nil {
					t.Fatal(err)
				}
				for _, through := range m.acked {
					if stats.First > through+1 {
						t.Fatalf("frames from %d on are kept, and a cluster is at %d", stats.First, through)
					}
				}
				if len(m.acked) == 0 && stats.First != m.first {
					t.Fatal("frames went that nobody has acknowledged")
				}
				m.first = stats.First
			},
		})
	})
}

// walk resumes the cluster at the oldest frame that is kept, reads to at least
// where it was, compares all frames with the model's, and returns the place that
// it came to.
func walk(t *rapid.T, b *buffer.Buffer, m *model, cluster string, bytes int) buffer.Position {
	stats, err := b.Stats()
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Resume(buffer.Resume{Cluster: cluster, Epoch: b.Epoch()})
	if err != nil {
		t.Fatal(err)
	}
	if p.Seq+1 != stats.First {
		t.Fatalf("resumed behind %d, and the oldest frame is %d", p.Seq, stats.First)
	}
	told(t, b, m, cluster, stats)
	after := m.acked[cluster]
	for {
		chunks, end, err := b.Read(p, bytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range chunks {
			compare(t, m, raw)
		}
		if len(chunks) == 0 || end.Seq >= after {
			return end
		}
		p = end
	}
}

// told makes sure that a cluster that resumed without a position, although it has
// been here before, was told of a gap when frames have gone since, and only then, once.
func told(t *rapid.T, b *buffer.Buffer, m *model, cluster string, before buffer.Stats) {
	now, err := b.Stats()
	if err != nil {
		t.Fatal(err)
	}
	began, known := m.began[cluster]
	lacks := known && before.First-1 > began
	again := lacks && m.told[cluster][0] == before.First-1 && m.told[cluster][1] >= before.First
	if (lacks && !again) != (now.Last == before.Last+1) || now.Last > before.Last+1 {
		t.Fatalf("the cluster began behind %d (%v), frames from %d on are kept, and %d frames were told", began, known, before.First, now.Last-before.Last)
	}
	if !known {
		m.began[cluster] = before.First - 1
	}
	if now.Last > before.Last {
		m.frames = append(m.frames, gapText)
		m.told[cluster] = [2]uint64{before.First - 1, now.Last}
	}
	if lacks {
		goesBackAndOn(t, b, m)
	}
}

// goesBackAndOn lets the source, which starts over for a cluster that lacks
// frames, come to its own checkpoint again. It has nothing to send meanwhile.
func goesBackAndOn(t *rapid.T, b *buffer.Buffer, m *model) {
	source := buffer.Source{Type: "a", Label: "b"}
	for _, want := range []string{"", m.checkpoint} {
		start, err := b.Begin(source)
		if err != nil || string(start.Checkpoint) != want || start.Rewind != buffer.Overlap {
			t.Fatalf("%+v, %v; want %q", start, err, want)
		}
		if _, err := b.Append(buffer.Append{Source: source, Generation: start.Generation, Rewound: true}); err != nil {
			t.Fatal(err)
		}
	}
}

func compare(t *rapid.T, m *model, raw []byte) {
	chunk, err := frame.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := chunk.Verify(); err != nil {
		t.Fatal(err)
	}
	for seq, text := range chunk.Frames() {
		var f wire.Frame
		if m.frames[seq-1] == gapText && wire.DecodeFrame(text, &f) == nil && f.Kind == wire.KindGap {
			continue
		}
		if m.frames[seq-1] != string(text) {
			t.Fatalf("frame %d is %.30q, not %.30q", seq, text, m.frames[seq-1])
		}
	}
}

// site is a scheduler with jobs, one agent, and two clusters that pull from it.
type site struct {
	t        *rapid.T
	file     string
	buffer   *buffer.Buffer
	jobs     int
	clusters map[string]*cluster
}

// cluster is what a cluster has committed.
type cluster struct {
	known      buffer.Position
	checkpoint []byte
	jobs       map[int]bool
}

func (s *site) open() {
	var err error
	if s.buffer, err = buffer.Open(s.file, buffer.Options{Retain: time.Hour, NoSync: true, Machine: "m"}); err != nil {
		s.t.Fatal(err)
	}
}

// collect takes up to n jobs from the checkpoint on, in appends of step; the
// overlap helps with none of them. It reports whether it came to the end.
func (s *site) collect(n, step int) bool {
	start, err := s.buffer.Begin(slurm)
	if err != nil {
		s.t.Fatal(err)
	}
	at := 0
	if start.Checkpoint != nil {
		at = int(start.Checkpoint[0])
	}
	for ; n > 0 && at < s.jobs; n -= step {
		a := buffer.Append{Source: slurm, Generation: start.Generation}
		for range step {
			if at < s.jobs {
				at++
				a.Frames = append(a.Frames, fmt.Appendf(nil, "job %d", at))
			}
		}
		a.Checkpoint = []byte{byte(at)}
		a.Frames = append(a.Frames, fmt.Appendf(nil, "checkpoint %d", at))
		s.append(a)
	}
	if at == s.jobs && start.Rewind > 0 {
		s.append(buffer.Append{Source: slurm, Generation: start.Generation, Rewound: true})
		return false
	}
	return at == s.jobs
}

func (s *site) append(a buffer.Append) {
	if _, err := s.buffer.Append(a); err != nil {
		s.t.Fatal(err)
	}
}

// pull commits up to n frames and reports whether there are more.
func (s *site) pull(name string, n int) bool {
	c := s.clusters[name]
	chunks, _, err := s.buffer.Read(c.known, 1)
	if err != nil {
		c.known, err = s.buffer.Resume(buffer.Resume{Cluster: name, Epoch: s.buffer.Epoch(), Known: c.known, Checkpoints: c.checkpoints()})
		if err != nil {
			s.t.Fatal(err)
		}
		return true
	}
	for _, raw := range chunks {
		chunk, err := frame.Parse(raw)
		if err != nil {
			s.t.Fatal(err)
		}
		for seq, text := range chunk.Frames() {
			if n == 0 {
				break
			}
			n--
			c.commit(string(text))
			c.known.Seq = seq
			c.known.Digest, _ = chunk.DigestAt(seq)
		}
	}
	if err := s.buffer.Ack(name, c.known); err != nil {
		s.t.Fatal(err)
	}
	return len(chunks) > 0
}

func (c *cluster) commit(text string) {
	var n int
	if _, err := fmt.Sscanf(text, "job %d", &n); err == nil {
		c.jobs[n] = true
	}
	if _, err := fmt.Sscanf(text, "checkpoint %d", &n); err == nil {
		c.checkpoint = []byte{byte(n)}
	}
}

func (c *cluster) checkpoints() map[buffer.Source][]byte {
	if c.checkpoint == nil {
		return nil
	}
	return map[buffer.Source][]byte{slurm: c.checkpoint}
}

// copyFile copies the closed buffer.
func (s *site) copyFile(to, from string) {
	if err := s.buffer.Close(); err != nil {
		s.t.Fatal(err)
	}
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.open()
}

// TestBothClustersGetEveryJobAlthoughOldCopiesOfTheBufferAreRestored: whatever
// only one of them had committed when the buffer went back in time reaches the
// other one too.
func TestBothClustersGetEveryJobAlthoughOldCopiesOfTheBufferAreRestored(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		s := &site{t: t, file: filepath.Join(dir, fmt.Sprint(n)), clusters: map[string]*cluster{"a": {jobs: map[int]bool{}}, "b": {jobs: map[int]bool{}}}}
		s.open()
		defer func() { s.buffer.Close() }()
		names := []string{"a", "b"}
		for _, name := range names {
			s.pull(name, 0)
		}
		backup := s.file + ".old"
		s.copyFile(backup, s.file)
		t.Repeat(map[string]func(*rapid.T){
			"jobs end": func(t *rapid.T) { s.jobs = min(200, s.jobs+rapid.IntRange(1, 5).Draw(t, "jobs")) },
			"collect": func(t *rapid.T) {
				s.collect(rapid.IntRange(1, 20).Draw(t, "jobs"), rapid.IntRange(1, 3).Draw(t, "step"))
			},
			"pull": func(t *rapid.T) {
				s.pull(rapid.SampledFrom(names).Draw(t, "cluster"), rapid.IntRange(1, 9).Draw(t, "frames"))
			},
			"back up": func(*rapid.T) { s.copyFile(backup, s.file) },
			"restore": func(*rapid.T) { s.copyFile(s.file, backup) },
		})
		s.settle(names)
		for _, name := range names {
			for job := 1; job <= s.jobs; job++ {
				if !s.clusters[name].jobs[job] {
					t.Fatalf("cluster %s lacks job %d of %d", name, job, s.jobs)
				}
			}
		}
	})
}

// settle goes on until nothing happens any more.
func (s *site) settle(names []string) {
	for more := true; more; {
		more = !s.collect(1000, 7)
		for _, name := range names {
			more = s.pull(name, 1000) || more
		}
	}
}
