package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
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
	gen := benchmark.Generator(f.seed, f.n, f.ids)
	gen.Extended = true
	s := sink{buffer: b, source: buffer.Source{Type: "slurm", Label: "nemo"}}
	for at := 0; ; at++ {
		r, ok := gen.Next()
		if !ok {
			return s.flush(at)
		}
		s.addFrame(&wire.Frame{Kind: wire.KindRecord, ID: r.ID, Record: r, Version: record.Version{Ended: true}})
		if err := ids.sampleID(at, r.ID); err != nil {
			return err
		}
		if len(s.frames) < perAppend {
			continue
		}
		if err := s.flush(at + 1); err != nil {
			return err
		}
		if (at+1)%perReport == 0 {
			if err := writeReport(Report{Frames: at + 1}); err != nil {
				return err
			}
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
