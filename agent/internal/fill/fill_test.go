package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/wire"
)

func TestABufferIsFilledWithRecordsAndCheckpoints(t *testing.T) {
	dir := t.TempDir()
	f := filling{path: filepath.Join(dir, "buffer.db"), n: 2500, ids: "slurm", seed: 1, sample: filepath.Join(dir, "ids")}
	if err := f.fillBuffer(); err != nil {
		t.Fatal(err)
	}
	if err := f.fillBuffer(); err == nil {
		t.Error("a buffer that is there is filled again")
	}
	b, err := buffer.Open(f.path, buffer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	kinds := kindsOf(t, b)
	if kinds[wire.KindRecord] != 2500 || kinds[wire.KindCheckpoint] != 3 {
		t.Errorf("frames %v", kinds)
	}
	ids, err := os.ReadFile(f.sample)
	if err != nil || len(strings.Fields(string(ids))) != 2500 {
		t.Errorf("%d ids in the sample, %v", len(strings.Fields(string(ids))), err)
	}
}

func kindsOf(t *testing.T, b *buffer.Buffer) map[wire.Kind]int {
	t.Helper()
	chunks, _, err := b.Read(buffer.Position{Epoch: b.Epoch()}, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[wire.Kind]int{}
	for _, raw := range chunks {
		c, err := frame.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range c.Frames() {
			var f wire.Frame
			var d wire.Lender
			if err := d.Frame(data, &f); err != nil {
				t.Fatal(err)
			}
			kinds[f.Kind]++
		}
	}
	return kinds
}

func TestTheMappingOfTheMeasurementMapsEveryJob(t *testing.T) {
	if err := timeMapping(1); err != nil {
		t.Fatal(err)
	}
}
