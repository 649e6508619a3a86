package clusterconfig

import (
	"bytes"
	"os"
	"testing"
)

func TestTheHeadOfADocumentOfFormat1IsRead(t *testing.T) {
	raw, err := os.ReadFile("testdata/committed-2.json")
	if err != nil {
		t.Fatal(err)
	}
	if h, ok := decodeHead(bytes.TrimSpace(raw)); !ok || h.By == "" || len(h.partKeys()) != 1 {
		t.Errorf("%+v", h)
	}
}

func FuzzHead(f *testing.F) {
	f.Add([]byte(`{"format":2,"by":"a","at":"2026-01-01T00:00:00Z","digest":"0000000000000000000000000000000000000000000000000000000000000000","parts":3}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if h, ok := decodeHead(raw); ok && len(h.partKeys()) != h.Parts {
			t.Error(h)
		}
	})
}
