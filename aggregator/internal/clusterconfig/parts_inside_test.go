package clusterconfig

import "testing"

func FuzzHead(f *testing.F) {
	f.Add([]byte(`{"format":2,"by":"a","at":"2026-01-01T00:00:00Z","digest":"0000000000000000000000000000000000000000000000000000000000000000","parts":3}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if h, ok := decodeHead(raw); ok && len(h.partKeys()) != h.Parts {
			t.Error(h)
		}
	})
}
