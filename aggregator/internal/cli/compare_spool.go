package cli

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// side is where an entry of a comparison comes from.
type side byte

const (
	sideHere side = iota
	sideThere
	sideInvalid // of there, and not a record
	sideLeftOut // of there, by the mapping
)

// comparand is a record of one side, or what stands in its place.
type comparand struct {
	record.Record

	side side
	note string // of a list the amount as it is written; of what is not a record, why
}

// newPlaceholder makes an entry without a record.
func newPlaceholder(s side, id, note string) *comparand {
	return &comparand{record.Record{ID: id, Start: record.None, Stop: record.None, Submit: record.None}, s, note}
}

// spoolParts is how many files entries are spread over: a part of two million records
// takes some 20 MB of memory.
const spoolParts = 128

// spool spreads entries over files by their job, so that those of a job are read together,
// a part at a time, however many there are.
type spool struct {
	dir    string
	files  [spoolParts]*os.File
	out    [spoolParts]*bufio.Writer
	buffer []byte
}

func newSpool() (*spool, error) {
	dir, err := os.MkdirTemp("", "bursar-compare-")
	if err != nil {
		return nil, fmt.Errorf("temporary folder: %w; set TMPDIR to a folder with room for the records", err)
	}
	return &spool{dir: dir}, nil
}

// close removes the files.
func (s *spool) close() error {
	var err error
	for _, f := range s.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// addEntry writes an entry to the file of its job.
func (s *spool) addEntry(e *comparand) error {
	i := xxhash.Sum64String(jobID(e.ID)) % spoolParts
	if s.files[i] == nil {
		f, err := os.Create(filepath.Join(s.dir, strconv.FormatUint(i, 10)))
		if err != nil {
			return err
		}
		s.files[i], s.out[i] = f, bufio.NewWriterSize(f, 16<<10)
	}
	s.buffer = append(s.buffer[:0], byte(e.side))
	s.buffer = append(binary.AppendUvarint(s.buffer, uint64(len(e.note))), e.note...)
	s.buffer = wire.AppendRecord(s.buffer, &e.Record)
	var size [binary.MaxVarintLen64]byte
	_, err := s.out[i].Write(binary.AppendUvarint(size[:0], uint64(len(s.buffer))))
	if err == nil {
		_, err = s.out[i].Write(s.buffer)
	}
	return err
}

// eachPart yields all entries, those of a job in one part and in the order in which they came.
// An error is the last that it yields. Nothing can be added any more.
func (s *spool) eachPart() iter.Seq2[[]*comparand, error] {
	return func(yield func([]*comparand, error) bool) {
		for i, f := range s.files {
			if f == nil {
				continue
			}
			part, err := s.readPart(i)
			if !yield(part, err) || err != nil {
				return
			}
		}
	}
}

func (s *spool) readPart(i int) (list []*comparand, err error) {
	if err := s.out[i].Flush(); err != nil {
		return nil, err
	}
	s.out[i] = nil
	if _, err := s.files[i].Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	all, err := io.ReadAll(s.files[i])
	if err != nil {
		return nil, err
	}
	var lender wire.Lender // all stays as it is
	for len(all) > 0 {
		size, n := binary.Uvarint(all)
		if n <= 0 || size < 2 || size > uint64(len(all)-n) {
			return nil, fmt.Errorf("%s: %w", s.files[i].Name(), io.ErrUnexpectedEOF)
		}
		entry := all[n : n+int(size)]
		all = all[n+int(size):]
		e := &comparand{side: side(entry[0])}
		size, n = binary.Uvarint(entry[1:])
		if n <= 0 || size > uint64(len(entry)-1-n) {
			return nil, fmt.Errorf("%s: %w", s.files[i].Name(), io.ErrUnexpectedEOF)
		}
		body := entry[1+n:]
		e.note = string(body[:size])
		if err := lender.Record(body[size:], &e.Record); err != nil {
			return nil, fmt.Errorf("%s: %w", s.files[i].Name(), err)
		}
		list = append(list, e)
	}
	return list, nil
}
