package buffer_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
)

// frames are about as long as those of real records.
func frames(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = append(bytes.Repeat([]byte("site=nemo user=alice "), 10), byte(i), byte(i>>8))
	}
	return out
}

// BenchmarkAppend is one durable transaction of 1 000 frames.
func BenchmarkAppend(b *testing.B) {
	buf, err := buffer.Open(filepath.Join(b.TempDir(), "buffer.db"), buffer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer buf.Close()
	a := buffer.Append{Source: buffer.Source{Type: "a", Label: "b"}, Frames: frames(1000), Checkpoint: []byte("here")}
	for b.Loop() {
		if _, err := buf.Append(a); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "frames/s")
}

// BenchmarkRead pulls a backlog of 200 000 frames in answers of 4 MiB.
func BenchmarkRead(b *testing.B) {
	buf, err := buffer.Open(filepath.Join(b.TempDir(), "buffer.db"), buffer.Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	defer buf.Close()
	for range 200 {
		if _, err := buf.Append(buffer.Append{Frames: frames(1000)}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		p := buffer.Position{Epoch: buf.Epoch()}
		for p.Seq < 200_000 {
			if _, p, err = buf.Read(p, 4<<20); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*200_000/b.Elapsed().Seconds(), "frames/s")
}
