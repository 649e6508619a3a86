package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files")

// build returns the chunk of the frames, all of which must fit.
func build(t testing.TB, first uint64, before Digest, frames ...[]byte) []byte {
	t.Helper()
	b := NewBuilder(first, before)
	for _, f := range frames {
		if err := b.Append(f); err != nil {
			t.Fatal(err)
		}
	}
	return b.Finish()
}

func parse(t testing.TB, chunk []byte) *Chunk {
	t.Helper()
	c, err := Parse(chunk)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func collect(c *Chunk) (seqs []uint64, frames [][]byte) {
	for seq, f := range c.Frames() {
		seqs, frames = append(seqs, seq), append(frames, f)
	}
	return seqs, frames
}

func numbered(n int) [][]byte {
	frames := make([][]byte, n)
	for i := range frames {
		frames[i] = fmt.Appendf(nil, "frame number %d of the benchmark", i)
	}
	return frames
}

// reseal makes the chunk's sum right again after a test has changed it.
func reseal(chunk []byte) []byte {
	binary.LittleEndian.PutUint32(chunk[50:], chunkSum(chunk))
	return chunk
}

func TestWhatIsBuiltIsParsed(t *testing.T) {
	frames := [][]byte{[]byte("one"), {0}, bytes.Repeat([]byte("x"), 5000)}
	c := parse(t, build(t, 41, Digest{7}, frames...))
	seqs, got := collect(c)
	if diff := cmp.Diff(frames, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint64{41, 42, 43}, seqs); diff != "" {
		t.Error(diff)
	}
	if c.First != 41 || c.Last() != 43 || c.Count != 3 || c.Before != (Digest{7}) {
		t.Errorf("header %+v", c.Header)
	}
	if err := c.Verify(); err != nil {
		t.Error(err)
	}
	if c.Frame(42)[0] != 0 || c.Frame(40) != nil || c.Frame(44) != nil {
		t.Error("Frame gives another frame")
	}
}

func TestAChainGoesOnFromChunkToChunk(t *testing.T) {
	b := NewBuilder(1, Digest{})
	var chunks [][]byte
	want := Digest{}
	for _, f := range numbered(20000) {
		want = want.Next(f)
		if err := b.Append(f); errors.Is(err, ErrFull) {
			chunks = append(chunks, b.Finish())
			err = b.Append(f)
			if err != nil {
				t.Fatal(err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
	}
	chunks = append(chunks, b.Finish())
	if len(chunks) < 2 {
		t.Fatal("one chunk only")
	}
	at, last := Digest{}, uint64(0)
	for _, raw := range chunks {
		c := parse(t, raw)
		if c.Before != at || c.First != last+1 || c.Size > Target {
			t.Fatalf("chunk %+v does not follow %d", c.Header, last)
		}
		if err := c.Verify(); err != nil {
			t.Fatal(err)
		}
		at, last = c.After, c.Last()
	}
	if at != want || last != 20000 {
		t.Errorf("ends at %d with %s, want %s", last, at, want)
	}
}

func TestTheLargestFrameHasAChunkOfItsOwn(t *testing.T) {
	large := make([]byte, MaxFrame)
	for i := range large {
		large[i] = byte(i*i>>3 ^ i*7919>>5)
	}
	b := NewBuilder(1, Digest{})
	if err := b.Append(large); err != nil {
		t.Fatal(err)
	}
	if err := b.Append([]byte("next")); !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
	if !bytes.Equal(parse(t, b.Finish()).Frame(1), large) {
		t.Error("another frame")
	}
	for _, bad := range [][]byte{nil, make([]byte, MaxFrame+1)} {
		if err := b.Append(bad); !errors.Is(err, ErrFrame) {
			t.Errorf("%d bytes: got %v", len(bad), err)
		}
	}
	if b.Len() != 0 || b.Last() != 1 || b.Finish() != nil {
		t.Error("a refused frame left something")
	}
}

func TestASliceIsTheChunkOfTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 40), 1, 20).Draw(t, "frames")
		b := NewBuilder(10, Digest{1})
		for _, f := range frames {
			if err := b.Append(f); err != nil {
				t.Fatal(err)
			}
		}
		c, err := Parse(b.Finish())
		if err != nil {
			t.Fatal(err)
		}
		after := rapid.Uint64Range(9, c.Last()-1).Draw(t, "after")
		raw, err := c.Slice(after)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(); err != nil {
			t.Fatal(err)
		}
		_, got := collect(s)
		if diff := cmp.Diff(frames[after-9:], got); diff != "" || s.First != after+1 || s.After != c.After {
			t.Fatal(diff, s.Header)
		}
		if at, ok := c.DigestAt(after); !ok || at != s.Before {
			t.Fatal("the slice begins with another digest")
		}
	})
}

func TestAFrameOutsideTheChunkIsRefused(t *testing.T) {
	c := parse(t, build(t, 10, Digest{}, numbered(3)...))
	for _, after := range []uint64{0, 8, 12, 13, 1 << 63} {
		if _, err := c.Slice(after); !errors.Is(err, ErrRange) {
			t.Errorf("slice behind %d: %v", after, err)
		}
	}
	for _, seq := range []uint64{0, 8, 13} {
		if _, ok := c.DigestAt(seq); ok {
			t.Errorf("a digest at %d", seq)
		}
	}
}

func TestAnyFlippedBitIsNoticed(t *testing.T) {
	for _, frames := range [][][]byte{numbered(40), {{1}}} {
		chunk := build(t, 5, Digest{9}, frames...)
		for i := range len(chunk) * 8 {
			bad := bytes.Clone(chunk)
			bad[i/8] ^= 1 << (i % 8)
			if _, err := Parse(bad); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
				t.Fatalf("bit %d: %v", i, err)
			}
		}
		for n := range chunk {
			if _, err := Parse(chunk[:n]); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("first %d bytes: %v", n, err)
			}
		}
		if _, err := Parse(append(bytes.Clone(chunk), 0)); !errors.Is(err, ErrCorrupt) {
			t.Error("a byte too many:", err)
		}
	}
}

func TestAHeaderThatLiesIsRefused(t *testing.T) {
	plain := [][]byte{{1}, {2, 3}}
	cases := []struct {
		name string
		lie  func(b []byte) []byte
		want error
	}{
		{"a later format", func(b []byte) []byte { b[0] = 2; return b }, ErrVersion},
		{"an unknown flag", func(b []byte) []byte { b[1] |= 0x80; return b }, ErrVersion},
		{"sequence number zero", func(b []byte) []byte { clear(b[2:10]); return b }, ErrCorrupt},
		{"numbers beyond the last", func(b []byte) []byte { copy(b[2:10], "\xff\xff\xff\xff\xff\xff\xff\xff"); return b }, ErrCorrupt},
		{"no frame", func(b []byte) []byte { clear(b[10:14]); return b }, ErrCorrupt},
		{"too many frames", func(b []byte) []byte { b[13] = 0xff; return b }, ErrCorrupt},
		{"one frame more", func(b []byte) []byte { b[10]++; return b }, ErrCorrupt},
		{"one frame less", func(b []byte) []byte { b[10]--; return b }, ErrCorrupt},
		{"a body of 4 GiB", func(b []byte) []byte { copy(b[14:18], "\xff\xff\xff\xff"); return b }, ErrCorrupt},
		{"a frame's sum", func(b []byte) []byte { b[headerSize+1]++; return b }, ErrCorrupt},
		{"a frame of no bytes", func(b []byte) []byte { b[headerSize] = 0; return b }, ErrCorrupt},
		{"a frame beyond the body", func(b []byte) []byte { b[headerSize] = 0x7f; return b }, ErrCorrupt},
		{"a compressed body that is none", func(b []byte) []byte { b[1] = flagS2; return b }, ErrCorrupt},
		{"a compressed body that is a bomb", func(b []byte) []byte {
			b[1] = flagS2
			return append(b[:headerSize], s2.EncodeBest(nil, make([]byte, 8<<20))...)
		}, ErrCorrupt},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bad := reseal(c.lie(build(t, 1, Digest{}, plain...)))
			if _, err := Parse(bad); !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAReplacedFrameBreaksTheChain(t *testing.T) {
	chunk := build(t, 1, Digest{}, numbered(5)...)
	other := build(t, 1, Digest{}, append(numbered(4), []byte("something else"))...)
	copy(other[34:50], chunk[34:50])
	c := parse(t, reseal(other))
	if err := c.Verify(); !errors.Is(err, ErrChain) {
		t.Errorf("Verify: %v", err)
	}
	if _, err := c.Slice(2); !errors.Is(err, ErrChain) {
		t.Errorf("Slice: %v", err)
	}
}

func TestPeekReadsTheHeaderAlone(t *testing.T) {
	chunk := build(t, 3, Digest{1}, numbered(4)...)
	h, err := Peek(chunk[:headerSize])
	if err != nil {
		t.Fatal(err)
	}
	if c := parse(t, chunk); h != c.Header || h.Last() != 6 {
		t.Errorf("%+v", h)
	}
}

// goldenFrames are the frames of the golden files, for ever.
func goldenFrames() [][]byte {
	return [][]byte{[]byte("first"), bytes.Repeat([]byte("again "), 60), {0xff, 0x00}}
}

func TestChunksOfFormat1StayReadable(t *testing.T) {
	for name, frames := range map[string][][]byte{
		"format1-packed.chunk": goldenFrames(),
		"format1-plain.chunk":  {[]byte("first"), {0xff, 0x00}},
	} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, build(t, 1001, Digest{1, 2, 3}, frames...), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c := parse(t, raw)
		if _, got := collect(c); !cmp.Equal(frames, got) {
			t.Errorf("%s: %s", name, cmp.Diff(frames, got))
		}
		if err := c.Verify(); err != nil || c.First != 1001 || c.Before != (Digest{1, 2, 3}) {
			t.Errorf("%s: %v, %+v", name, err, c.Header)
		}
	}
}

func TestTheChainNeverChanges(t *testing.T) {
	d := Digest{}
	for _, f := range goldenFrames() {
		d = d.Next(f)
	}
	if got, want := d.String(), "9947504aadd1236aaaa54c3ba8760899"; got != want {
		t.Errorf("chain ends with %s, want %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(build(f, 1, Digest{}, numbered(30)...))
	f.Add(build(f, 1, Digest{}, []byte{1}, []byte{2, 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = Parse(b)
		if len(b) < headerSize {
			return
		}
		c, err := Parse(reseal(bytes.Clone(b)))
		if err != nil {
			return
		}
		seqs, _ := collect(c)
		if len(seqs) != c.Count || seqs[len(seqs)-1] != c.Last() {
			t.Fatalf("%d frames, header %+v", len(seqs), c.Header)
		}
		if raw, err := c.Slice(c.Last() - 1); err == nil && c.Verify() == nil && !bytes.Equal(parse(t, raw).Frame(c.Last()), c.Frame(c.Last())) {
			t.Fatal("the slice has another frame")
		}
	})
}

func BenchmarkParse(b *testing.B) {
	chunk := build(b, 1, Digest{}, numbered(4000)...)
	b.ReportAllocs()
	for b.Loop() {
		c, err := Parse(chunk)
		if err != nil || c.Verify() != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*4000/b.Elapsed().Seconds(), "frames/s")
}

func BenchmarkBuild(b *testing.B) {
	frames := numbered(4000)
	for b.Loop() {
		build(b, 1, Digest{}, frames...)
	}
	b.ReportMetric(float64(b.N)*4000/b.Elapsed().Seconds(), "frames/s")
}
