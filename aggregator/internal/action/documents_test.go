package action

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// samples are documents with all fields, by the names of their files.
func samples() map[string]any {
	return map[string]any{
		"state": &State{
			version: version{1}, Began: 1, Next: 8, Oldest: 2, Current: 7, Last: 3, Seq: 4, Kept: 6, Since: 5,
			Requests: []Order{{By: "a", At: 9, Arguments: map[string]string{"month": "2026-10"}}, {By: "b", At: 10, Run: 3, Effect: 1}},
			Paused:   &Mark{By: "c", At: 11, Why: "d"}, Disabled: &Mark{At: 12, Why: "e", Of: "f"}, Problem: &Mark{At: 13, Why: "g"},
			Doubtful: []uint64{3, 5}, Claim: "h",
		},
		"run": &Run{
			version: version{1}, Number: 7, Why: WhyOrder, By: "a", Arguments: map[string]string{"b": "c"}, Class: 2, Version: "1.0.0", Planned: 3, Index: 4, Ended: 5,
			Effects: 15, State: true, Partial: true, Notes: []string{"d"}, Gauges: []Gauge{{Name: "e", Labels: map[string]string{"f": "g"}, Value: 1.5}},
			Counts: Counts{Done: 1, Rejected: 2, Unknown: 3, Skipped: 4, Superseded: 5},
		},
		"effect": &Effect{
			version: version{1}, Name: "a", Summary: "b", Digest: "c", Size: 3, Parts: 1, State: Unknown, Key: "d", Tries: 2,
			Attempts:  []Attempt{{Number: 2, Node: "n", Term: 3, Begun: 4, Fence: 5, Ended: 6, Outcome: Unknown, Message: "m", Reference: "r"}},
			NotBefore: 7, First: 8, By: "e",
		},
		"content": &content{version: version{1}, Payload: []byte{0, 1, 255}, Show: "a"},
		"life":    &life{version: version{1}, Life: "a"},
	}
}

// again decodes a document and encodes it.
func again(name string, raw []byte) ([]byte, error) {
	var v any
	var err error
	switch name {
	case "state":
		v, err = decodeDocument[State](raw)
	case "run":
		v, err = decodeDocument[Run](raw)
	case "effect":
		v, err = decodeDocument[Effect](raw)
	case "content":
		v, err = decodeDocument[content](raw)
	default:
		v, err = decodeDocument[life](raw)
	}
	if err != nil {
		return nil, err
	}
	return encodeDocument(v), nil
}

func TestDocumentsOfTheFirstFormatStayReadable(t *testing.T) {
	for name, v := range samples() {
		file := filepath.Join("testdata", name+"-1.golden")
		if *update {
			if err := os.WriteFile(file, encodeDocument(v), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(encodeDocument(v))); d != "" {
			t.Errorf("%s is written otherwise: -golden +now\n%s", name, d)
		}
		if got, err := again(name, want); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s comes back as %s, %v", name, got, err)
		}
	}
}

func TestDocumentsOfANewerProgramAreRefused(t *testing.T) {
	for _, raw := range []string{`{"format":2}`, `{"format":1,"wings":2}`, `{"format":1}{}`, ``, `null`, `[]`} {
		if _, err := decodeDocument[State]([]byte(raw)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func FuzzDocuments(f *testing.F) {
	for name, v := range samples() {
		f.Add(name, encodeDocument(v))
	}
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		once, err := again(name, raw)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Error(err)
			}
			return
		}
		twice, err := again(name, once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%s comes back as %s, %v", once, twice, err)
		}
	})
}
