package columns

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/bursar-accounting/bursar/proto/record"
)

// format is the version of the layout of batches, blocks and rows.
const format = 1

// What an encoding is.
const (
	kindBatch = 'B'
	kindBlock = 'K'
	kindRow   = 'R'
)

// The columns of numbers. Their numbers are part of the stored formats. A
// column that is not there is zero in all rows.
const (
	colSeq          = iota
	colFlags        // see flagOpen and the others
	colStop         // shown stop; start of an open row
	colRuntime      // colStop - start
	colWait         // start - submit, with flagSubmit
	colObserved     // version's observed
	colStopObserved // when the stop register was written, with flagRegister
	colBodyStop     // body's stop - shown stop, with flagBodyStop
	colReceived
	colChanged    // changed - received
	colSupersedes // the seq itself
	colSet        // numbers of dictionary entries; 0: the entry is in the row
	colTemplate
	colOrigin
	colEnd
	colID
	colTextLen  // bytes of the id in blobText; with colID = 0
	colExtraLen // bytes of the row in blobExtra
	colNumber   // the first of maxNumbers columns of numbers in ids

	colAmount = 32 // the first of maxAmounts columns of amounts, by position
	numCols   = colAmount + maxAmounts
)

// entryColumns are the columns of numbers of dictionary entries.
var entryColumns = [...]int{colSet, colTemplate, colOrigin, colEnd, colID}

// tableOf is the table that one of the entryColumns refers to; 0 for others.
func tableOf(c int) Table {
	switch c {
	case colSet:
		return TableSet
	case colTemplate:
		return TableTemplate
	case colOrigin:
		return TableOrigin
	case colEnd:
		return TableEnd
	case colID:
		return TableID
	}
	return 0
}

// maxAmounts is how many amounts of a record have columns. Those beyond are in
// the row's extras.
const maxAmounts = 32

// Bits of colFlags.
const (
	flagOpen      = 1 << iota // no stop is shown
	flagTombstone             //
	flagRegister              // there is a stop register
	flagBodyStop              // and the body has a stop of its own
	flagSubmit                // there is a submit time
	flagUnended               // version's ended is not whether the body has a stop
	flagNoParts               // components is an empty list, not absent
	flagArchived              // the body has lost details to an archive
)

// The blobs: bytes of all rows, one after the other.
const (
	blobText  = numCols + iota // ids that have no template
	blobHex                    // hex digits of ids
	blobExtra                  // what is in the row: see extras
	blobTable                  // blobTable + t: entries of table t, each with its length (batches)

	numParts = blobTable + numTables
)

// HeaderSize is how many bytes a block begins with before its parts.
const HeaderSize = 10 + headerBody

const headerBody = 3*4 + 6*8

// Header sums up a block: the zone map. It can be read without the rest.
type Header struct {
	Rows       int // 1 … [MaxRows]
	Open       int // rows without a stop that are no tombstones
	Tombstones int

	FirstSeq, LastSeq uint64

	// The range of starts of all rows that are no tombstones; the least is
	// above the greatest when there is none. MinStop and MaxStop are the same
	// for the shown stops of rows that have one.
	MinStart, MaxStart record.Time
	MinStop, MaxStop   record.Time
}

func emptyHeader() Header {
	return Header{MinStart: math.MaxInt64, MaxStart: math.MinInt64, MinStop: math.MaxInt64, MaxStop: math.MinInt64}
}

// addRow takes a row into the zone map.
func (h *Header) addRow(flags, stop, runtime uint64) {
	h.Rows++
	if flags&flagTombstone != 0 {
		h.Tombstones++
		return
	}
	start := record.Time(stop - runtime)
	h.MinStart, h.MaxStart = min(h.MinStart, start), max(h.MaxStart, start)
	if flags&flagOpen != 0 {
		h.Open++
		return
	}
	h.MinStop, h.MaxStop = min(h.MinStop, record.Time(stop)), max(h.MaxStop, record.Time(stop))
}

func (h *Header) appendHeader(b []byte) []byte {
	for _, v := range []int{h.Rows, h.Open, h.Tombstones} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	for _, v := range []uint64{h.FirstSeq, h.LastSeq, uint64(h.MinStart), uint64(h.MaxStart), uint64(h.MinStop), uint64(h.MaxStop)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func (h *Header) readHeader(r *reader) {
	h.Rows, h.Open, h.Tombstones = int(r.uint32()), int(r.uint32()), int(r.uint32())
	h.FirstSeq, h.LastSeq = r.uint64(), r.uint64()
	h.MinStart, h.MaxStart = record.Time(r.uint64()), record.Time(r.uint64())
	h.MinStop, h.MaxStop = record.Time(r.uint64()), record.Time(r.uint64())
}

// frame is the outer layout of batches and blocks: a header and parts, which
// are columns and blobs.
type frame struct {
	header Header
	parts  [numParts][]byte // as stored; nil: not there
}

// appendFrame writes
//
//	version, kind, CRC32C of the header, header, CRC32C of the rest,
//	count of parts, (number, length) each, the parts
func (f *frame) appendFrame(b []byte, kind byte) []byte {
	at := len(b)
	b = append(b, format, kind, 0, 0, 0, 0)
	b = f.header.appendHeader(b)
	binary.LittleEndian.PutUint32(b[at+2:], checksumOf(b[at:at+2], b[at+6:]))
	b = append(b, 0, 0, 0, 0)
	body := len(b)
	b = f.appendDirectory(b)
	for _, part := range f.parts {
		b = append(b, part...)
	}
	binary.LittleEndian.PutUint32(b[body-4:], checksumOf(b[body:]))
	return b
}

func (f *frame) appendDirectory(b []byte) []byte {
	count := 0
	for _, part := range f.parts {
		if part != nil {
			count++
		}
	}
	b = binary.AppendUvarint(b, uint64(count))
	for id, part := range f.parts {
		if part != nil {
			b = binary.AppendUvarint(b, uint64(id))
			b = binary.AppendUvarint(b, uint64(len(part)))
		}
	}
	return b
}

func checksumOf(parts ...[]byte) uint32 {
	sum := uint32(0)
	for _, p := range parts {
		sum = crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), p)
	}
	return sum
}

func checkFormat(data []byte, kind byte) error {
	if len(data) < 2 || data[1] != kind {
		return corruptError("not the beginning of a %q", kind)
	}
	if data[0] != format {
		return fmt.Errorf("%w %d", ErrFormat, data[0])
	}
	return nil
}

func readHeader(data []byte, kind byte) (Header, error) {
	h := Header{}
	if err := checkFormat(data, kind); err != nil {
		return h, err
	}
	if len(data) < HeaderSize {
		return h, corruptError("header is cut off")
	}
	if binary.LittleEndian.Uint32(data[2:]) != checksumOf(data[:2], data[6:6+headerBody]) {
		return h, corruptError("checksum of the header")
	}
	h.readHeader(&reader{b: data[6 : 6+headerBody]})
	if h.Rows < 1 || h.Rows > MaxRows {
		return h, corruptError("%d rows", h.Rows)
	}
	return h, nil
}

// parseFrame reads a frame. The parts are views of data.
func (f *frame) parseFrame(data []byte, kind byte) error {
	h, err := readHeader(data, kind)
	if err != nil {
		return err
	}
	f.header = h
	body := data[HeaderSize:]
	if binary.LittleEndian.Uint32(data[HeaderSize-4:]) != checksumOf(body) {
		return corruptError("checksum")
	}
	return f.parseParts(reader{b: body})
}

func (f *frame) parseParts(r reader) error {
	var lengths [numParts]uint64
	next := uint64(0)
	for range r.readUvarint() {
		id, n := r.readUvarint(), r.readUvarint()
		if r.bad || id < next || id >= numParts || n == 0 {
			return corruptError("directory")
		}
		lengths[id], next = n, id+1 //nolint:gosec // id < numParts
	}
	for id, n := range lengths {
		if n > 0 {
			f.parts[id] = r.nextBytes(n)
		}
	}
	if !r.isDone() {
		return corruptError("parts are cut off or too long")
	}
	return nil
}
