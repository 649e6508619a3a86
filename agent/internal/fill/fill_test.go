package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/proto/benchmark"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/wire"
)

func TestABufferIsFilledWithRecordsAndCheckpoints(t *testing.T) {
	dir := t.TempDir()
	f := filling{path: filepath.Join(dir, "buffer.db"), n: 2500, ids: "slurm", seed: 1, years: 1, sample: filepath.Join(dir, "ids")}
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

func TestMakeRecords_OfASite_AreSpreadOverYearsWithIDsOfTheirOwn(t *testing.T) {
	f := filling{n: 2501, ids: "slurm", seed: 1, site: "site3", years: 10}
	ids, years := map[string]bool{}, map[int]int{}
	for r := range f.makeRecords() {
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Meta {
			if m.Key == "site_id" && m.Values[0] != "site3" {
				t.Errorf("%s is of the site %s", r.ID, m.Values[0])
			}
		}
		if !strings.HasPrefix(r.ID, "site3-") {
			t.Errorf("%s is of another site", r.ID)
		}
		ids[r.ID] = true
		years[r.Start.Std().Year()]++
	}
	if len(ids) != f.n {
		t.Errorf("%d ids, want %d", len(ids), f.n)
	}
	for year := 2015; year <= 2024; year++ {
		if years[year] < 200 {
			t.Errorf("%d records of %d: %v", years[year], year, years)
		}
	}
}

func TestMakeRecords_OfOneYear_AreTheBenchmarkRecords(t *testing.T) {
	f := filling{n: 1000, ids: "slurm", seed: 7, years: 1}
	want := benchmark.Generator(7, 1000, "slurm")
	want.Extended = true
	for r := range f.makeRecords() {
		if w, _ := want.Next(); r.ID != w.ID || r.Stop != w.Stop {
			t.Fatalf("%s, want %s", r.ID, w.ID)
		}
	}
	if r, more := want.Next(); more {
		t.Errorf("%s is missing", r.ID)
	}
}
