package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
)

// said is one world as a source tells it, by its default mapping.
type said struct {
	origin  record.Origin
	rank    record.Rank
	records []record.Record
}

func read(t *testing.T, path string, origin record.Origin, rank record.Rank) said {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := said{origin: origin, rank: rank}
	for line := range bytes.Lines(text) {
		var in struct {
			ID         string     `json:"record_id"`
			StartTime  time.Time  `json:"start_time"`
			StopTime   *time.Time `json:"stop_time"`
			Components []struct {
				Name   string
				Amount int64
			}
		}
		if err := json.Unmarshal(line, &in); err != nil {
			t.Fatal(err)
		}
		r := record.Record{ID: in.ID, Start: record.FromStd(in.StartTime), Stop: record.None, Submit: record.None}
		for _, c := range in.Components {
			r.Components = append(r.Components, record.Component{Name: c.Name, Amount: c.Amount})
		}
		if in.StopTime != nil {
			r.Stop = record.FromStd(*in.StopTime)
		}
		out.records = append(out.records, r)
	}
	return out
}

// cores are the core-hours up to a time of all that is shown, when the sources speak in
// that order, and in how many records.
func cores(until time.Time, order ...said) (hours float64, records, conflicts int) {
	entries := map[string]*record.Entry{}
	for at, s := range order {
		for i := range s.records {
			r := &s.records[i]
			e := entries[r.ID]
			if e == nil {
				e = &record.Entry{ID: r.ID}
				entries[r.ID] = e
			}
			e.Merge(record.Write{ID: r.ID, Op: record.OpPut, Origin: s.origin, Rank: s.rank, Version: record.Version{Ended: !r.Open(), Observed: int64(at + 1)}, Record: r})
		}
	}
	for _, e := range entries {
		r := e.Shown()
		stop := record.FromStd(until)
		if !r.Open() {
			stop = min(stop, r.Stop)
		}
		for _, c := range r.Components {
			if c.Name == "Cores" {
				hours += float64(c.Amount) * float64(stop-r.Start) / float64(record.Hour)
			}
		}
		if records++; e.Conflict() {
			conflicts++
		}
	}
	return hours, records, conflicts
}

// The snapshots of the recorded cluster and what the source nomad tells of it are one
// account in either order. Open runs are told as they end in snapshots until the source
// has their end, so the comparison is of runs that ended.
func TestTheRecordedClusterBySnapshotsAndByNomadIsCountedOnce(t *testing.T) {
	nomad := read(t, "../nomad/internal/source/testdata/ai4-records.ndjson", record.Origin{Agent: "head1", Type: "nomad", Label: "cloud"}, record.RankScheduler)
	files := read(t, "testdata/records.ndjson", record.Origin{Agent: "import", Type: "ai4", Label: "cloud"}, record.RankImport)
	until := time.Date(2025, 3, 4, 4, 0, 30, 0, time.UTC)
	want, n, _ := cores(until, nomad)
	if len(files.records) != 11 || n != len(nomad.records) {
		t.Fatal(len(files.records), n)
	}
	for _, order := range [][]said{{nomad, files}, {files, nomad}, {files, nomad, files}} {
		got, records, conflicts := cores(until, order...)
		if d := got - want; d > 1e-6 || d < -1e-6 || records != n || conflicts != 0 {
			t.Errorf("%.4f core-hours in %d records, %d conflicts; by the source nomad alone %.4f in %d", got, records, conflicts, want, n)
		}
	}
	for _, r := range files.records {
		if !slices.ContainsFunc(nomad.records, func(o record.Record) bool { return o.ID == r.ID && o.Start == r.Start }) {
			t.Errorf("%s is no id of the source nomad", r.ID)
		}
	}
}
