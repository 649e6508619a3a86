package follow

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/bursar-accounting/bursar/proto/poison"
)

// MaxLine is how much of a line is kept.
const MaxLine = 1 << 20

// Line is a line of a file.
type Line struct {
	Text []byte // without its last newline, at most MaxLine bytes; lent until the next call
	Size int64  // of the whole line with its newline
}

// Long reports whether the line was cut.
func (l *Line) Long() bool { return l.Size > MaxLine+1 }

// reader reads the lines of one file.
type reader struct {
	path     string
	closed   bool // nothing is written to it any more: its last line needs no end
	lines    *bufio.Reader
	long     []byte
	banner   string // of the last line of each entry; "": lines are read
	entry    []byte
	lineText []byte   // the text of the last line
	plain    *os.File // nil for a compressed file
	packed   *unpacked
	head     []byte // of a compressed file
	begun    int64  // where reading began
	cursor   Cursor
}

// openReader opens a file at the cursor's offset.
func openReader(f file, from Cursor, closed bool, banner string) (*reader, error) {
	r := &reader{path: f.path, closed: closed, banner: banner, begun: from.Offset, cursor: from}
	var err error
	if f.pack == "" {
		err = r.openPlain(f)
	} else {
		err = r.openPacked(f)
	}
	if err != nil {
		r.closeReader()
		return nil, err
	}
	return r, nil
}

const readBytes = 256 << 10

func (r *reader) openPlain(f file) (err error) {
	if r.plain, err = os.Open(f.path); err != nil {
		return err
	}
	if _, err := r.plain.Seek(r.cursor.Offset, io.SeekStart); err != nil {
		return err
	}
	r.lines = bufio.NewReaderSize(r.plain, int(min(readBytes, max(f.size-r.cursor.Offset, 4<<10))))
	return nil
}

func (r *reader) openPacked(f file) (err error) {
	if r.packed, err = unpackFile(f); err != nil {
		return err
	}
	r.closed = true
	r.cursor.Inode, r.cursor.Modified, r.cursor.Tail = f.inode, f.modified.UnixNano(), ""
	r.lines = bufio.NewReaderSize(r.packed, readBytes)
	head, err := r.lines.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", f.path, err)
	}
	r.head = append(r.head, head...)
	if _, err := io.CopyN(io.Discard, r.lines, r.cursor.Offset); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", f.path, err)
	}
	return nil
}

func (r *reader) closeReader() {
	if r.plain != nil {
		r.plain.Close()
	}
	if r.packed != nil {
		r.packed.Close() //nolint:errcheck // it was only read
	}
}

// nextLine returns the next line, and io.EOF where there is none that has ended.
func (r *reader) nextLine() (Line, error) {
	poison.Bytes(r.lineText)
	r.lineText = nil
	read := r.readLine
	if r.banner != "" {
		read = r.readEntry
	}
	text, size, err := read()
	switch {
	case err == nil:
		text = text[:len(text)-1] // of a long line the newline is cut off already
	case !errors.Is(err, io.EOF):
		return Line{}, fmt.Errorf("read %s: %w", r.path, err)
	case size == 0 || !r.closed:
		return Line{}, io.EOF
	}
	r.cursor.Offset += size
	r.lineText = slices.Clip(text[:min(len(text), MaxLine)])
	return Line{Text: r.lineText, Size: size}, nil
}

// readLine reads a line with its newline, or what there is of one.
func (r *reader) readLine() ([]byte, int64, error) {
	text, err := r.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return r.readRest(text)
	}
	return text, int64(len(text)), err
}

// readEntry reads the lines of an entry, through that with the banner.
func (r *reader) readEntry() (text []byte, size int64, err error) {
	banner := []byte(r.banner)
	if n := entryLength(r.buffered(), banner); n > 0 { // as nearly always
		text, err = r.lines.Peek(n)
		_, _ = r.lines.Discard(n) // the error: so many are buffered
		return text, int64(n), err
	}
	r.entry = r.entry[:0]
	for err == nil && !bytes.HasPrefix(text, banner) {
		var n int64
		text, n, err = r.readLine()
		size += n
		r.entry = append(r.entry, text[:min(len(text), MaxLine+1-len(r.entry))]...)
	}
	return r.entry, size, err
}

// buffered is what was read of the file already.
func (r *reader) buffered() []byte {
	b, _ := r.lines.Peek(r.lines.Buffered()) // the error: so many are buffered
	return b
}

// entryLength is how many bytes the first entry of a text has; 0 where its end is not there.
func entryLength(text, banner []byte) int {
	for at := 0; ; {
		n := bytes.Index(text[at:], banner)
		if n < 0 {
			return 0
		}
		begin := at + n
		if at = begin + len(banner); begin > 0 && text[begin-1] != '\n' {
			continue // within a line
		}
		if n = bytes.IndexByte(text[at:], '\n'); n < 0 {
			return 0
		}
		return at + n + 1
	}
}

// readRest reads on in a line that is longer than the buffer.
func (r *reader) readRest(text []byte) ([]byte, int64, error) {
	size := int64(len(text))
	r.long = append(r.long[:0], text...)
	for {
		piece, err := r.lines.ReadSlice('\n')
		size += int64(len(piece))
		r.long = append(r.long, piece[:min(len(piece), MaxLine+1-len(r.long))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return r.long, size, err
		}
	}
}

// cursorState returns the cursor behind the lines that were given, after a look whether
// the file is still the same.
func (r *reader) cursorState() (Cursor, error) {
	if r.packed != nil {
		r.cursor.Length = min(r.cursor.Offset, int64(len(r.head)))
		r.cursor.Head = checksumOf(r.head[:r.cursor.Length])
		return r.cursor, nil
	}
	c, err := readMarks(r.plain, r.cursor.Offset, r.cursor)
	if err != nil {
		return r.cursor, fmt.Errorf("read %s: %w", r.path, err)
	}
	r.cursor = c
	return c, nil
}

// bytesDone is how many bytes of the file, as it is on the disk, were read.
func (r *reader) bytesDone() int64 {
	if r.packed != nil {
		return r.packed.raw.n
	}
	return r.cursor.Offset - r.begun
}
