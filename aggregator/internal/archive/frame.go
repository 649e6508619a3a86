package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// oneFrame hands on exactly one zstd frame (RFC 8878) of a stream, and ends with
// it. A decoder alone would go on with further frames and overlook those that
// are to be skipped, so that what follows an archive would go unnoticed.
type oneFrame struct {
	r     io.Reader
	n     int64  // bytes handed on
	left  int64  // of the part that is handed on
	head  []byte // read ahead, to be handed on first
	check int64  // bytes of the checksum behind the last block
	part  func() error
	err   error
}

func newOneFrame(r io.Reader) *oneFrame {
	f := &oneFrame{r: r}
	f.part = f.readMagic
	return f
}

var errNoFrame = errors.New("it is not compressed with zstd")

// Read implements io.Reader.
func (f *oneFrame) Read(p []byte) (int, error) {
	for len(f.head) == 0 && f.left == 0 && f.err == nil {
		f.err = f.part()
	}
	switch {
	case len(p) == 0:
		return 0, nil
	case len(f.head) > 0:
		n := copy(p, f.head)
		f.head = f.head[n:]
		f.n += int64(n)
		return n, nil
	case f.left > 0:
		n, err := f.r.Read(p[:min(int64(len(p)), f.left)])
		f.left -= int64(n)
		f.n += int64(n)
		return n, asTruncated(err)
	}
	return 0, f.err
}

// asTruncated makes of an end in the middle what it is.
func asTruncated(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// takeBytes reads n bytes that are handed on.
func (f *oneFrame) takeBytes(n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(f.r, b); err != nil {
		return nil, asTruncated(err)
	}
	f.head = append(f.head, b...)
	return b, nil
}

const magic = 0xFD2FB528

// readMagic reads the magic number and the header.
func (f *oneFrame) readMagic() error {
	b, err := f.takeBytes(5)
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(b) != magic {
		f.head = nil // a decoder would have words of its own
		return errNoFrame
	}
	flags := b[4]
	single := flags>>5&1 == 1
	size := []int{0, 2, 4, 8}[flags>>6] // of the content's size
	if single && size == 0 {
		size = 1
	}
	if !single {
		size++ // the window
	}
	f.check = int64(flags>>2&1) * 4
	f.part = f.readBlockHeader
	_, err = f.takeBytes(size + []int{0, 1, 2, 4}[flags&3])
	return err
}

// readBlockHeader reads the header of a block.
func (f *oneFrame) readBlockHeader() error {
	b, err := f.takeBytes(3)
	if err != nil {
		return err
	}
	head := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
	f.left = int64(head >> 3)
	switch head >> 1 & 3 {
	case 1: // one byte, many times
		f.left = 1
	case 3:
		return fmt.Errorf("%w: a block of an unknown kind", errNoFrame)
	}
	if head&1 == 1 {
		f.left += f.check
		f.part = func() error { return io.EOF }
	}
	return nil
}
