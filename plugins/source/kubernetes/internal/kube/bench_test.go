package kube

import (
	"bytes"
	"testing"
)

// A change of a pod, with all that a real API server says of one, from the wire.
func BenchmarkDecodeEvent(b *testing.B) {
	line := bytes.Split(recorded(b, "watch-events.ndjson"), []byte("\n"))[3]
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if e, err := parseEvent(line); err != nil || e.Pod == nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pods/s")
}
