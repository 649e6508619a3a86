package store

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
)

// everyResult has one result of each kind, and a group of all of them.
func everyResult() []any {
	list := []any{
		nil,
		IngestResult{Accepted: true, Cursor: Cursor{
			Agent: "head1", Epoch: Epoch{1, 2}, Seq: 77, Digest: Chain{3, 4}, Observed: -5, Pulled: record.Time(6),
			Checkpoints: []Checkpoint{{Source: slurm, State: []byte("s")}}, Watermarks: []Watermark{{Source: slurm, CompleteTo: t0}},
		}, Counts: Counts{Pulled: 9, Added: 1, Merged: 1, Unchanged: 1, Stale: 1, Withdrawn: 1, Deleted: 1, Conflicting: 1, Quarantined: 2}},
		PostResult{Existing: []string{"a", "b"}, Refused: "why", Unknown: true, Added: 3, Seq: 1 << 40},
		PutResult{Found: true},
		PutResult{Found: true, Archived: "2026-03"},
		ArchiveResult{Refused: "no", State: ArchiveRemoving, Done: true, Changed: 3, Left: 4},
		DeleteResult{Changed: 12},
		"cluster",
		uint32(1<<32 - 1),
		HashResult{Index: 5, Hash: Hash{Hi: 1 << 63, Lo: 7}},
		DocumentResult{Done: true, Index: 99},
	}
	return append(list, append([]any(nil), list...))
}

func TestEveryResultTravelsToAnotherNode(t *testing.T) {
	for _, want := range everyResult() {
		b, err := EncodeResult(want)
		if err != nil {
			t.Fatalf("%T: %v", want, err)
		}
		if got, err := DecodeResult(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%T: %+v %v, want %+v", want, got, err, want)
		}
	}
}

// TestTheResultOfEveryCommandTravels applies every command: a new kind of result
// must be known to the codec.
func TestTheResultOfEveryCommandTravels(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, c := range everyCommand() {
		result, err := s.Apply(uint64(i+1), 1, Encode(c))
		if err != nil {
			continue // the samples of some commands are for the codec only
		}
		if _, err := EncodeResult(result); err != nil {
			t.Errorf("%T: %v", c, err)
		}
	}
}

func TestAResultThatIsUnknownOrDamagedIsAnError(t *testing.T) {
	if _, err := EncodeResult(struct{}{}); !errors.Is(err, ErrResult) {
		t.Error(err)
	}
	if _, err := EncodeResult([]any{[]any{}}); !errors.Is(err, ErrResult) {
		t.Error(err)
	}
	for _, b := range []string{"", "\x01", "\x02\x00", "\x01\x00\x00", "\x01\x63", "\x01\x09\x01\x09\x00", "\x01\x09\xff\xff\xff\xff\x0f"} {
		if got, err := DecodeResult([]byte(b)); !errors.Is(err, ErrResult) {
			t.Errorf("%q: %v %v", b, got, err)
		}
	}
}

func TestTheFormatOfResultsStays(t *testing.T) {
	const file = "testdata/results-1.golden"
	var now strings.Builder
	for _, r := range everyResult() {
		b, err := EncodeResult(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&now, "%T %s\n", r, hex.EncodeToString(b))
	}
	if *update {
		if err := os.WriteFile(file, []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != now.String() {
		t.Errorf("the bytes of results have changed (%v):\n%s", err, now.String())
	}
}

func FuzzDecodeResult(f *testing.F) {
	for _, r := range everyResult() {
		b, err := EncodeResult(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		result, err := DecodeResult(data)
		if err != nil {
			return
		}
		once, err := EncodeResult(result)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeResult(once)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := EncodeResult(again); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%x %x %v", once, twice, err)
		}
	})
}
