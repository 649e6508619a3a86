package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns/columnstest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// batches returns n benchmark records as the commands that a leader proposes.
func batches(n int, kind string, reusing ...record.Origin) (list [][]byte, ids []string) {
	gen := columnstest.Generator(1, n, kind)
	b := columns.NewBuilder()
	seq := uint64(0)
	flush := func() {
		c := &IngestCommand{Agent: "head1", Epoch: Epoch{1}, From: seq + 1, To: seq + uint64(b.Len()), Now: t0, Rows: b.Bytes(), Reusing: reusing,
			Before: chainAt(seq), After: chainAt(seq + uint64(b.Len()))}
		if seq == 0 {
			c.Begin = &Begin{}
		}
		seq = c.To
		list = append(list, Encode(c))
		b.Reset()
	}
	for {
		r, ok := gen.Next()
		if !ok {
			break
		}
		ids = append(ids, r.ID)
		if len(reusing) > 0 {
			r.Submit = r.Start - record.Minute
		}
		b.Add(&columns.Row{Record: r, Origin: slurm, Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: int64(len(ids))}, Stop: record.None})
		if b.Full() {
			flush()
		}
	}
	if b.Len() > 0 {
		flush()
	}
	return list, ids
}

func chainAt(seq uint64) (c Chain) {
	for i := range 8 {
		c[i] = byte(seq >> (8 * i))
	}
	return c
}

// filled is a store on disk with n benchmark records.
func filled(b *testing.B, n int, kind string) (*Store, []string) {
	list, ids := batches(n, kind)
	s, err := Open(Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	ingestAll(b, s, list)
	return s, ids
}

func ingestAll(b *testing.B, s *Store, list [][]byte) {
	first, _ := s.Applied()
	for i, data := range list {
		r, err := s.Apply(first+uint64(i)+1, 1, data)
		if err != nil || !r.(IngestResult).Accepted {
			b.Fatalf("batch %d: %+v %v", i, r, err)
		}
	}
}

const benchRows = 1_000_000

func benchmarkIngest(b *testing.B, kind string, reusing ...record.Origin) {
	list, _ := batches(benchRows, kind, reusing...)
	for b.Loop() {
		s, err := Open(Options{Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		start, used := time.Now(), cpu(b)
		ingestAll(b, s, list)
		b.ReportMetric(benchRows/time.Since(start).Seconds(), "records/s")
		b.ReportMetric(float64(cpu(b)-used)/benchRows, "cpu-ns/record")
		if err := s.Compact(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(s.bytesOf(0, 0xff))/benchRows, "B/record")
		b.ReportMetric(float64(s.bytesOf(tableBlock, tableBlock+1))/benchRows, "block-B/record")
		b.ReportMetric(float64(s.bytesOf(tableIndex, tableIndex+1))/benchRows, "index-B/record")
		s.Close()
	}
}

func (s *Store) bytesOf(from, to byte) uint64 {
	n, _ := s.disk.db.EstimateDiskUsage([]byte{from}, []byte{to})
	return n
}

func BenchmarkIngest(b *testing.B) { benchmarkIngest(b, columnstest.Slurm) }

// BenchmarkIngestReused is of a source that reuses ids and knows the submit times.
func BenchmarkIngestReused(b *testing.B) { benchmarkIngest(b, columnstest.Slurm, slurm) }

func BenchmarkIngestUUID(b *testing.B) { benchmarkIngest(b, columnstest.UUID) }

func BenchmarkReads(b *testing.B) {
	s, ids := filled(b, benchRows/2, columnstest.Slurm)
	v, err := s.View()
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	b.Run("get", func(b *testing.B) {
		rng := rand.New(rand.NewPCG(1, 1))
		used := cpu(b)
		for b.Loop() {
			if _, ok, err := v.Get(ids[rng.IntN(len(ids))]); err != nil || !ok {
				b.Fatal(ok, err)
			}
		}
		b.ReportMetric(float64(cpu(b)-used)/float64(b.N), "cpu-ns/lookup")
	})
	b.Run("stream", func(b *testing.B) { benchQuery(b, v, Query{}, len(ids)) })
	b.Run("streamByStart", func(b *testing.B) { benchQuery(b, v, Query{Order: ByStart}, len(ids)) })
	b.Run("sorted", func(b *testing.B) { benchQuery(b, v, Query{Order: ByRuntime}, len(ids)) })
	b.Run("scan", func(b *testing.B) {
		q := Query{Amounts: []AmountTest{{Name: "Cores"}}}
		q.Amounts[0].Amount.GTE(8)
		used := cpu(b)
		for b.Loop() {
			err := v.Scan(context.Background(), q, func(*columns.Block, columns.Mask) error { return nil }, func(*columns.Row) error { return nil })
			if err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b, len(ids), used)
	})
	b.Run("metaCounts", func(b *testing.B) {
		used := cpu(b)
		for b.Loop() {
			if _, err := v.MetaCounts(context.Background(), "group_id"); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b, len(ids), used)
	})
}

// BenchmarkFirst asks for a page of the first rows of orders that the blocks do not have.
func BenchmarkFirst(b *testing.B) {
	s, ids := filled(b, benchRows, columnstest.Slurm)
	v, err := s.View()
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	for name, q := range map[string]Query{"runtime": {Order: ByRuntime}, "amount": {Order: ByAmount, By: "Cores"}, "used": {Order: ByUsed, By: "Cores"}, "value": {Order: ByMeta, By: "user_id"}} {
		for _, q.Limit = range []int{101, 10_001} {
			q.Desc = true
			b.Run(fmt.Sprint(name, "/", q.Limit), func(b *testing.B) {
				used := cpu(b)
				for b.Loop() {
					n := 0
					err := v.Query(context.Background(), q, func(*columns.Row) error { n++; return nil })
					if err != nil || n != q.Limit {
						b.Fatal(n, err)
					}
				}
				perSecond(b, len(ids), used)
			})
		}
	}
}

// cpu is the time that this process has had, in nanoseconds: on a machine with
// other load it says more than the clock.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func perSecond(b *testing.B, rows int, used int64) {
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(cpu(b)-used)/float64(b.N)/float64(rows), "cpu-ns/record")
}

func benchQuery(b *testing.B, v *View, q Query, want int) {
	used := cpu(b)
	for b.Loop() {
		n := 0
		q.ReuseRows = true
		err := v.Query(context.Background(), q, func(*columns.Row) error { n++; return nil })
		if err != nil || n != want {
			b.Fatal(n, err)
		}
	}
	perSecond(b, want, used)
}

func BenchmarkResend(b *testing.B) {
	list, _ := batches(100_000, columnstest.Slurm)
	s, err := Open(Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ingestAll(b, s, list)
	index, _ := s.Applied()
	end, err := Decode(list[len(list)-1])
	if err != nil {
		b.Fatal(err)
	}
	last := end.(*IngestCommand)
	used := cpu(b)
	for b.Loop() {
		for i, data := range list {
			c, err := Decode(data)
			if err != nil {
				b.Fatal(err)
			}
			again := c.(*IngestCommand)
			if again.Begin = nil; i == 0 {
				again.Begin = &Begin{Replaces: Epoch{1}, ReplacesSeq: last.To, ReplacesDigest: last.After}
			}
			index++
			r, err := s.Apply(index, 1, Encode(again))
			if err != nil || !r.(IngestResult).Accepted {
				b.Fatal(r, err)
			}
		}
	}
	perSecond(b, 100_000, used)
}

func BenchmarkOpen(b *testing.B) {
	list, _ := batches(benchRows, columnstest.Slurm)
	dir := b.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	ingestAll(b, s, list)
	s.Close()
	used := cpu(b)
	for b.Loop() {
		s, err := Open(Options{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
	perSecond(b, benchRows, used)
}

// BenchmarkJobIDs looks up the ids of a job among a million, behind prefixes and among UUIDs.
func BenchmarkJobIDs(b *testing.B) {
	for _, kind := range []string{columnstest.Slurm, columnstest.UUID} {
		b.Run(kind, func(b *testing.B) {
			s, ids := filled(b, benchRows, kind)
			v, err := s.View()
			if err != nil {
				b.Fatal(err)
			}
			defer v.Close()
			rng, seeks := rand.New(rand.NewPCG(1, 1)), 0
			for b.Loop() {
				id := ids[rng.IntN(len(ids))]
				found := false
				if _, err := v.JobIDs(id[strings.LastIndexByte(id, '-')+1:], func(other string) error {
					seeks++
					found = found || other == id
					return nil
				}); err != nil || !found && kind == columnstest.Slurm {
					b.Fatal(id, err)
				}
			}
			b.ReportMetric(float64(seeks)/float64(b.N), "ids/op")
		})
	}
}
