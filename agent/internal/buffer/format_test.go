package buffer

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/frame"
)

// TestEveryValueOfTheFileKeepsItsBytes: a file of this format is read by every
// later release, so that these bytes never change.
func TestEveryValueOfTheFileKeepsItsBytes(t *testing.T) {
	digest := frame.Digest(bytes.Repeat([]byte{0xab}, len(frame.Digest{})))
	at := time.UnixMicro(1_772_323_200_000_001).UTC()
	source := Source{Type: "slurm", Label: "nemo"}
	head := state{first: 3, last: 258, bytes: 65_536, digest: digest}
	for _, c := range []struct {
		what string
		got  []byte
		want string
	}{
		{"format", []byte{fileFormat}, "01"},
		{"head", head.encodeState(), "0000000000000003 0000000000000102 0000000000010000 abababababababababababababababab"},
		{"ack", encodeAck(Ack{Epoch: Epoch{1, 2, 15: 9}, Through: 258, At: at}), "01020000000000000000000000000009 0000000000000102 00064beb26c36001"},
		{"rewind", encodeRewind(Overlap, "c1"), "000000283baec000 6331"},
		{"rewind to its own", encodeRewind(Overlap, own), "000000283baec000"},
		{"note", encodeNote(OpenRun{Run: "7", Record: "nemo-7", Digest: 1 << 40}), "0000010000000000 6e656d6f2d37"},
		{"clock", (&Clock{last: at.UnixMicro()}).clockBytes(), "00064beb26c36001"},
		{"sequence", sequenceKey(258), "0000000000000102"},
		{"source", source.storageKey(), "736c75726d 00 6e656d6f"},
		{"queue", queueKey(source, "c1"), "736c75726d 00 6e656d6f 00 6331"},
		{"own queue", queueKey(source, own), "736c75726d 00 6e656d6f 00"},
		{"run", openKey(source, "7"), "736c75726d 00 6e656d6f 00 37"},
	} {
		if got, want := hex.EncodeToString(c.got), strings.ReplaceAll(c.want, " ", ""); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", c.what, got, want)
		}
	}
}

func TestAClockOfTheWrongLengthIsAnUnknownFormat(t *testing.T) {
	if _, err := parseClock([]byte{1}); err == nil {
		t.Error("taken")
	}
	if at, err := parseClock(nil); at != 0 || err != nil {
		t.Error(at, err)
	}
}

// FuzzParseHead: what is taken is written as it was, and holds together.
func FuzzParseHead(f *testing.F) {
	f.Add((&state{first: 1}).encodeState())
	f.Add((&state{first: 3, last: 9, bytes: 100}).encodeState())
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, v []byte) {
		s, err := parseHead(v)
		if err != nil {
			return
		}
		if got := s.encodeState(); !bytes.Equal(got, v) {
			t.Errorf("%x became %x", v, got)
		}
		if s.first == 0 || s.first > s.last+1 || s.bytes < 0 {
			t.Errorf("took %+v", s)
		}
	})
}

// FuzzParseValues: what the other parsers take is written as it was.
func FuzzParseValues(f *testing.F) {
	f.Add(encodeAck(Ack{Through: 1}))
	f.Add(encodeRewind(Overlap, "c"))
	f.Add(encodeNote(OpenRun{Record: "r"}))
	f.Add(bytes.Repeat([]byte{0xff}, 32))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, v []byte) {
		same := func(what string, got []byte) {
			if !bytes.Equal(got, v) {
				t.Errorf("%s: %x became %x", what, v, got)
			}
		}
		if a, ok := parseAck(v); ok {
			same("ack", encodeAck(a))
		}
		if back, cluster, ok := parseRewind(v); ok {
			same("rewind", encodeRewind(back, cluster))
			if back < 0 {
				t.Errorf("steps forward by %s", back)
			}
		}
		if o, ok := parseNote("r", v); ok {
			same("note", encodeNote(o))
		}
		if last, err := parseClock(v); err == nil && v != nil {
			same("clock", (&Clock{last: last}).clockBytes())
		}
	})
}

// FuzzStoredChunk: a value of the bucket chunks is read or refused.
func FuzzStoredChunk(f *testing.F) {
	b := frame.NewBuilder(1, frame.Digest{})
	if err := b.Append([]byte("frame")); err != nil {
		f.Fatal(err)
	}
	f.Add(append(sequenceKey(1), b.Finish()...), uint64(0))
	f.Add([]byte{1}, uint64(3))
	f.Fuzz(func(t *testing.T, v []byte, after uint64) {
		raw, header, err := chunkBehind(v, Position{Seq: after})
		if err == nil && (len(raw) == 0 || header.Count < 0) {
			t.Errorf("%x, %+v", raw, header)
		}
		writtenAt(v)
	})
}
