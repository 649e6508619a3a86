package sums

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns/columnstest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

var benchRecords = flag.Int("records", 500_000, "how many records the benchmarks have, over a year")

// filled is a store on disk with the benchmark records.
func filled(b *testing.B) (s *store.Store, first record.Time) {
	s, err := store.Open(store.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	gen := columnstest.Generator(1, *benchRecords, columnstest.Slurm)
	rows, n, index, last := columns.NewBuilder(), int64(0), uint64(0), &store.Cursor{}
	flush := func() {
		c := &store.IngestCommand{Agent: "head1", Epoch: store.Epoch{1}, From: last.Seq + 1, To: last.Seq + uint64(rows.Len()), Now: t0, Rows: rows.Bytes(), Before: last.Digest}
		if index == 0 {
			c.Begin = &store.Begin{}
		}
		index++
		r, err := s.Apply(index, 1, store.Encode(c))
		if err != nil {
			b.Fatal(err)
		}
		*last = r.(store.IngestResult).Cursor
		rows.Reset()
	}
	for r, ok := gen.Next(); ok; r, ok = gen.Next() {
		if n++; n == 1 {
			first = r.Start
		}
		rows.Add(&columns.Row{Record: r, Origin: source(), Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: n}, Stop: record.None})
		if rows.Full() {
			flush()
		}
	}
	if rows.Len() > 0 {
		flush()
	}
	return s, first
}

func BenchmarkUsage(b *testing.B) {
	s, first := filled(b)
	opt := Options{Views: s, Life: life}
	dims := []string{"site_id", "group_id", "user_id"}
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			if err := newIndex(b, opt, dims).Follow(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N**benchRecords), "ns/record")
	})
	x := newIndex(b, opt, dims)
	if err := x.Follow(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d tuples, %d with a shape, %d MiB", len(x.series), len(x.slots), x.bytes>>20)
	opt.Dir, opt.MaxBytes = b.TempDir(), x.bytes/4
	small := newIndex(b, opt, dims)
	if err := firstError(small.Follow(context.Background()), small.Save(context.Background())); err != nil {
		b.Fatal(err)
	}
	b.Logf("of %d months the days are on disk: %d MiB in memory, %d MiB in files", len(small.away), small.bytes>>20, small.awayBytes()>>20)
	year := []record.Time{first - first%record.Day}
	for range 365 {
		year = append(year, year[len(year)-1]+record.Day)
	}
	odd := []record.Time{year[30] + 12345678, year[300] + 87654321012}
	hours := []IntensityStep{}
	for at := year[0]; at < year[365]; at += record.Hour {
		hours = append(hours, IntensityStep{From: at, Grams: int64(300_000_000 + at/record.Hour%24*1_000_000)})
	}
	class := &EnergyClass{Intensity: NewIntensity(hours), Overheads: []Overhead{{
		PUE: 1_200_000_000, Powers: []Power{{Component: "Cores", Full: 5_520_000_000_000, Idle: 2_208_000_000_000, Busy: "TotalCPU", Embodied: 1000}},
	}}}
	energy := &EnergyModel{Measured: "Energy", Components: []string{"Cores"}, Class: func([]string, []bool) *EnergyClass { return class }}
	for _, ask := range []struct {
		name string
		q    Query
	}{
		{"energy and CO2 of a year by user", Query{Edges: []record.Time{year[0], year[365]}, By: []string{"user_id"}, Energy: energy}},
		{"energy and CO2 of a month by user", Query{Edges: []record.Time{year[150], year[180]}, By: []string{"user_id"}, Energy: energy}},
		{"year by user and day", Query{Edges: year, By: []string{"user_id"}, Components: []string{"Cores"}, Unscored: []string{"Cores"}}},
		{"year by user and day, counts", Query{Edges: year, By: []string{"user_id"}, Components: []string{"Cores"}, Counts: true}},
		{"any window by group", Query{Edges: odd, By: []string{"group_id"}, Counts: true}},
		{"month by user", Query{Edges: []record.Time{year[0], year[31]}, By: []string{"user_id"}, Counts: true}},
		{"year by partition, scanned", Query{Edges: []record.Time{year[0], year[365]}, By: []string{"partition"}, Counts: true}},
	} {
		for _, from := range []struct {
			name   string
			answer func(context.Context, Query) (*Answer, error)
		}{{"memory", x.Answer}, {"disk", small.Answer}, {"rows", func(ctx context.Context, q Query) (*Answer, error) { return Rows(ctx, s, q) }}} {
			b.Run(ask.name+"/"+from.name, func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					if _, err := from.answer(context.Background(), ask.q); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			})
		}
	}
}
