package buffer_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/proto/frame"
)

// model is what a buffer has to hold.
type model struct {
	frames     []string // all that were ever appended, in order
	checkpoint string
	acked      map[string]uint64
	at         map[string]time.Time // of a cluster's last acknowledgement
	first      uint64               // the oldest frame, when it was last looked at
}

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
		m := model{acked: map[string]uint64{}, at: map[string]time.Time{}}
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
				p := walk(t, b, &m, m.acked[cluster], rapid.IntRange(100, 5000).Draw(t, "bytes"))
				if err := b.Ack(cluster, p); err != nil {
					t.Fatal(err)
				}
				m.acked[cluster], m.at[cluster] = max(m.acked[cluster], p.Seq), clock.t
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
				for cluster, through := range m.acked {
					known := clock.t.Sub(m.at[cluster]) <= opt.Retain
					if known && stats.First != m.first && stats.First > through+1 {
						t.Fatalf("frames from %d on are kept, and a cluster is at %d", stats.First, through)
					}
				}
				m.first = stats.First
				if len(m.acked) == 0 && stats.First != 1 {
					t.Fatal("frames went that nobody has acknowledged")
				}
			},
		})
	})
}

// walk reads from the oldest frame that is kept to at least after, compares all
// frames with the model's, and returns the place that it came to.
func walk(t *rapid.T, b *buffer.Buffer, m *model, after uint64, bytes int) buffer.Position {
	stats, err := b.Stats()
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Resume(buffer.Resume{Cluster: "w", Epoch: b.Epoch()})
	if err != nil {
		t.Fatal(err)
	}
	if p.Seq+1 != stats.First {
		t.Fatalf("resumed behind %d, and the oldest frame is %d", p.Seq, stats.First)
	}
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

func compare(t *rapid.T, m *model, raw []byte) {
	chunk, err := frame.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := chunk.Verify(); err != nil {
		t.Fatal(err)
	}
	for seq, text := range chunk.Frames() {
		if m.frames[seq-1] != string(text) {
			t.Fatalf("frame %d is %.30q, not %.30q", seq, text, m.frames[seq-1])
		}
	}
}
