// Package archived is what leaves the store with an archive and comes back with a
// restore: rows as the store holds them, and the statement by which it removes them.
//
// The daemon gives the rows of a period by GET /v1/archives/rows, an action writes them
// to files, reads the files back and adds up what it read ([Sum]). The store removes
// only rows of which the sum is the same, so what leaves it is what a file has.
package archived

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// Row is a closed record as the store shows it, with all that a restore needs to bring it
// back as it was.
type Row struct {
	// Record is the body as the origin holds it. Its stop is the body's own, None where
	// only the register Stop has one.
	Record  record.Record
	Origin  record.Origin
	Rank    record.Rank
	Version record.Version

	// Stop is the last stop that a client said, None without one, and StopObserved
	// when it was said.
	Stop         record.Time
	StopObserved int64

	Seq        uint64      // number of the change
	Received   record.Time // when the id was first stored
	Changed    record.Time // when this row was made
	Supersedes uint64      // number of the change that it replaced; 0: none
}

// ShownStop returns the stop that queries see: by it a row belongs to a period.
func (r *Row) ShownStop() record.Time {
	if r.Stop != record.None {
		return r.Stop
	}
	return r.Record.Stop
}

// Shown returns the record with the stop that queries see. It shares the slices of r.
func (r *Row) Shown() record.Record {
	shown := r.Record
	shown.Stop = r.ShownStop()
	return shown
}

// ErrRow is wrapped by the errors of what is no row, or is cut off.
var ErrRow = errors.New("damaged archived row")

const (
	rowFormat = 1
	// maxRow bounds the bytes of a row: a record has at most 256 KiB.
	maxRow = 1 << 20

	flagEnded   = 1 // of the version
	flagNoParts = 2 // components is an empty list, not absent
)

// Append appends the bytes of the row, which are the same for equal rows: format, flags,
// numbers, origin, record. [Sum] is of these bytes.
func (r *Row) Append(b []byte) []byte {
	flags := byte(0)
	if r.Version.Ended {
		flags |= flagEnded
	}
	if r.Record.Components != nil && len(r.Record.Components) == 0 {
		flags |= flagNoParts
	}
	b = append(b, rowFormat, flags, byte(r.Rank))
	b = binary.AppendUvarint(b, r.Seq)
	b = binary.AppendUvarint(b, r.Supersedes)
	for _, n := range []int64{r.Version.Observed, int64(r.Stop), r.StopObserved, int64(r.Received), int64(r.Changed)} {
		b = binary.AppendVarint(b, n)
	}
	for _, s := range []string{r.Origin.Agent, r.Origin.Type, r.Origin.Label} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return wire.AppendRecord(b, &r.Record)
}

// Decode reads what [Row.Append] gave. The row shares nothing with b. The error wraps
// [ErrRow].
func Decode(b []byte) (Row, error) {
	if len(b) < 3 || b[0] != rowFormat {
		return Row{}, fmt.Errorf("%w: unknown format", ErrRow)
	}
	flags, d := b[1], decoder{b: b[3:]}
	r := Row{Rank: record.Rank(b[2]), Seq: d.readUvarint(), Supersedes: d.readUvarint()}
	r.Version = record.Version{Ended: flags&flagEnded != 0, Observed: d.readVarint()}
	r.Stop, r.StopObserved = record.Time(d.readVarint()), d.readVarint()
	r.Received, r.Changed = record.Time(d.readVarint()), record.Time(d.readVarint())
	r.Origin = record.Origin{Agent: d.readText(), Type: d.readText(), Label: d.readText()}
	if d.bad {
		return Row{}, fmt.Errorf("%w: cut off", ErrRow)
	}
	if err := wire.DecodeRecord(d.b, &r.Record); err != nil {
		return Row{}, fmt.Errorf("%w: %w", ErrRow, err)
	}
	if flags&flagNoParts != 0 && r.Record.Components == nil {
		r.Record.Components = []record.Component{}
	}
	return r, nil
}

// decoder reads the numbers and texts of a row.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) readUvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	return advanceBy(d, v, n)
}

func (d *decoder) readVarint() int64 {
	v, n := binary.Varint(d.b)
	return advanceBy(d, v, n)
}

// advanceBy drops the n bytes that v was read from; n below 1 says that the input is damaged.
func advanceBy[T any](d *decoder, v T, n int) T {
	var none T
	if n <= 0 {
		d.b, d.bad = nil, true
		return none
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) readText() string {
	n := d.readUvarint()
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// Sum is the sum of the hashes of rows, modulo 2^128, with their number: it does not
// depend on their order. The zero Sum is that of no rows.
type Sum struct {
	Count  uint64
	Hi, Lo uint64
}

// Add adds a row by its bytes, those of [Row.Append].
func (s *Sum) Add(row []byte) {
	h := sha256.Sum256(row)
	lo, carry := bits.Add64(s.Lo, binary.BigEndian.Uint64(h[8:]), 0)
	hi, _ := bits.Add64(s.Hi, binary.BigEndian.Uint64(h[:]), carry)
	s.Count, s.Hi, s.Lo = s.Count+1, hi, lo
}

// Plus returns the sum of both.
func (s Sum) Plus(o Sum) Sum {
	lo, carry := bits.Add64(s.Lo, o.Lo, 0)
	hi, _ := bits.Add64(s.Hi, o.Hi, carry)
	return Sum{Count: s.Count + o.Count, Hi: hi, Lo: lo}
}

// Digest returns the sum without the number as 32 hexadecimal digits.
func (s Sum) Digest() string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, s.Hi), s.Lo))
}

// ParseSum reads a number of rows and what [Sum.Digest] gave.
func ParseSum(count uint64, digest string) (Sum, error) {
	b, err := hex.DecodeString(digest)
	if err != nil || len(b) != 16 {
		return Sum{}, fmt.Errorf("invalid digest %q: want 32 hexadecimal digits", digest)
	}
	return Sum{Count: count, Hi: binary.BigEndian.Uint64(b), Lo: binary.BigEndian.Uint64(b[8:])}, nil
}

// Seal ends a stream of rows: the sum of all of them, and the change up to which the
// store was read.
type Seal struct {
	Sum

	UpTo uint64
}

// A stream of rows is a part for each row, its length and its bytes, and a last part of
// length 0 with the seal: count, hi, lo, up to, of 8 bytes each. A stream without a seal
// is cut off.

// AppendPart appends a row's bytes as a part of a stream.
func AppendPart(b, row []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(row))), row...)
}

// AppendSeal appends the last part of a stream.
func AppendSeal(b []byte, s Seal) []byte {
	b = append(b, 0)
	for _, n := range []uint64{s.Count, s.Hi, s.Lo, s.UpTo} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

// StreamType is the content type of a stream of rows.
const StreamType = "application/vnd.bursar.rows"

// ReadStream calls yield with each row of a stream and its bytes, which are valid until
// yield returns, and returns the seal. It is an error when the seal is missing, does not
// match the rows, or is not the end.
func ReadStream(in io.Reader, yield func(row Row, bytes []byte) error) (Seal, error) {
	r := bufio.NewReaderSize(in, 64<<10)
	var sum Sum
	var buf []byte
	for {
		n, err := binary.ReadUvarint(r)
		switch {
		case err != nil:
			return Seal{}, fmt.Errorf("%w: the rows end without their sum: %w", ErrRow, err)
		case n > maxRow:
			return Seal{}, fmt.Errorf("%w: a row of %d bytes", ErrRow, n)
		case n == 0:
			return readSeal(r, sum)
		}
		buf = append(buf[:0], make([]byte, n)...)
		if _, err := io.ReadFull(r, buf); err != nil {
			return Seal{}, fmt.Errorf("%w: the rows end in a row: %w", ErrRow, err)
		}
		row, err := Decode(buf)
		if err != nil {
			return Seal{}, err
		}
		sum.Add(buf)
		if err := yield(row, buf); err != nil {
			return Seal{}, err
		}
	}
}

func readSeal(r *bufio.Reader, sum Sum) (Seal, error) {
	var b [32]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return Seal{}, fmt.Errorf("%w: the sum of the rows is cut off: %w", ErrRow, err)
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	seal := Seal{Sum: Sum{Count: at(0), Hi: at(1), Lo: at(2)}, UpTo: at(3)}
	if seal.Sum != sum {
		return Seal{}, fmt.Errorf("%w: %d rows came, %d were sent, or they differ", ErrRow, sum.Count, seal.Count)
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		return Seal{}, fmt.Errorf("%w: more follows the sum of the rows", ErrRow)
	}
	return seal, nil
}
