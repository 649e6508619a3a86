package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/proto/benchmark"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// filling fills a buffer as a source does: a transaction for each thousand jobs,
// with the checkpoint behind them.
type filling struct {
	path   string
	n      int
	ids    string
	seed   uint64
	sample string
	site   string // in place of the sites of the benchmark record; "": as they are
	years  int    // over which the stops are spread, of which 2024 is the last
}

// The sizes of a transaction, of what is reported, and of the sample.
const (
	perAppend = 1000
	perReport = 50_000
	samples   = 20_000
)

func (f *filling) fillBuffer() (err error) {
	if _, err := os.Stat(f.path); err == nil {
		return fmt.Errorf("%s is there already", f.path)
	}
	begun := time.Now()
	b, err := buffer.Open(f.path, buffer.Options{MaxSize: 1 << 40})
	if err != nil {
		return err
	}
	ids, err := newSampler(f.sample, max(f.n/samples, 1))
	if err != nil {
		return errors.Join(err, b.Close())
	}
	if err := errors.Join(f.appendRecords(b, ids), ids.close(), b.Close()); err != nil {
		return err
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	return writeReport(Report{Done: true, Frames: f.n, Bytes: info.Size(), Seconds: time.Since(begun).Seconds()})
}

func (f *filling) appendRecords(b *buffer.Buffer, ids *sampler) error {
	s := sink{buffer: b, source: buffer.Source{Type: "slurm", Label: "nemo"}}
	at := 0
	for r := range f.makeRecords() {
		s.addFrame(&wire.Frame{Kind: wire.KindRecord, ID: r.ID, Record: r, Version: record.Version{Ended: true}})
		if err := ids.sampleID(at, r.ID); err != nil {
			return err
		}
		if at++; len(s.frames) < perAppend {
			continue
		}
		if err := s.flush(at); err != nil {
			return err
		}
		if at%perReport == 0 {
			if err := writeReport(Report{Frames: at}); err != nil {
				return err
			}
		}
	}
	return s.flush(at)
}

// makeRecords yields the benchmark records, a year after the other.
func (f *filling) makeRecords() iter.Seq[record.Record] {
	return func(yield func(record.Record) bool) {
		for k := range f.years {
			back := f.years - 1 - k
			gen := benchmark.Generator(f.seed+uint64(back), f.n*(k+1)/f.years-f.n*k/f.years, f.ids)
			gen.Extended = true
			for r := range gen.All() {
				if f.site != "" || back > 0 {
					f.moveRecord(&r, 2024-back)
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}

// moveRecord makes a record one of the site and of a year, with an id that no other year has.
func (f *filling) moveRecord(r *record.Record, year int) {
	by := record.FromStd(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)) - record.FromStd(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
	r.Submit, r.Start, r.Stop = r.Submit+by, r.Start+by, r.Stop+by
	site, rest, _ := strings.Cut(r.ID, "-")
	site = cmp.Or(f.site, site)
	r.ID = fmt.Sprint(site, "-", year, "-", rest)
	for i := range r.Meta {
		if r.Meta[i].Key == "site_id" {
			r.Meta[i].Values = []string{site}
		}
	}
}

// sink collects frames until they are appended.
type sink struct {
	buffer *buffer.Buffer
	source buffer.Source
	frames [][]byte
}

func (s *sink) addFrame(f *wire.Frame) {
	f.SourceType, f.SourceLabel, f.Rank = s.source.Type, s.source.Label, record.RankScheduler
	f.Version.Observed = s.buffer.Clock().Observe()
	s.frames = append(s.frames, wire.AppendFrame(nil, f))
}

// flush appends the frames and a checkpoint behind them.
func (s *sink) flush(at int) error {
	if len(s.frames) == 0 {
		return nil
	}
	checkpoint := fmt.Appendf(nil, `{"read":%d}`, at)
	s.addFrame(&wire.Frame{Kind: wire.KindCheckpoint, Checkpoint: checkpoint})
	start, err := s.buffer.Begin(s.source)
	if err != nil {
		return err
	}
	_, err = s.buffer.Append(buffer.Append{Source: s.source, Generation: start.Generation, Frames: s.frames, Checkpoint: checkpoint})
	s.frames = s.frames[:0]
	return err
}

// sampler writes every so manyth id to a file; nil writes none.
type sampler struct {
	every int
	file  *os.File
	out   *bufio.Writer
}

func newSampler(path string, every int) (*sampler, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &sampler{every: every, file: f, out: bufio.NewWriter(f)}, nil
}

func (s *sampler) sampleID(at int, id string) error {
	if s == nil || at%s.every != 0 {
		return nil
	}
	_, err := s.out.WriteString(id + "\n")
	return err
}

func (s *sampler) close() error {
	if s == nil {
		return nil
	}
	return errors.Join(s.out.Flush(), s.file.Close())
}
