package follow

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	headBytes = 1024 // of a file's head, by which it is known again
	tailBytes = 256  // before the offset, by which it is known not to have been rewritten
)

// Cursor says how far a file was read, and how to know the file again: by its
// head, since a rotation keeps neither the name nor, with copytruncate, the inode.
// The zero Cursor is of no file.
type Cursor struct {
	Offset   int64  `json:"offset"`
	Length   int64  `json:"head_length"`        // of the head that Head is the hash of
	Head     string `json:"head"`               // hash of the first bytes, at most 1 KiB
	Tail     string `json:"tail,omitempty"`     // hash of the last bytes before Offset; "": not known
	Inode    uint64 `json:"inode,omitempty"`    // 0: not known
	Modified int64  `json:"modified,omitempty"` // the latest change of any file of the rotation at the last look, nanoseconds; 0: not known
}

// Check returns why c cannot be a cursor.
func (c *Cursor) Check() error {
	if c.Offset < 0 || c.Length < 0 || c.Length > headBytes || c.Length > c.Offset {
		return fmt.Errorf("a head of %d bytes and an offset of %d bytes cannot be", c.Length, c.Offset)
	}
	return nil
}

// Known reports whether c is of a file.
func (c *Cursor) Known() bool { return c.Length > 0 || c.Modified != 0 }

// isWeak reports whether other files of the rotation may begin alike: with a few
// lines of comment.
func (c *Cursor) isWeak() bool { return c.Length < headBytes }

// ErrChanged says that a file was truncated or rewritten under our hands. The next
// walk from the last state finds the rest where the rotation put it.
var ErrChanged = errors.New("it was truncated or rewritten while it was read")

// readMarks takes the marks of the file that was read up to offset. Known are those
// that it had before, which must still hold.
func readMarks(f *os.File, offset int64, known Cursor) (Cursor, error) {
	info, err := f.Stat()
	if err != nil {
		return known, err
	}
	c := Cursor{Offset: offset, Length: min(offset, headBytes), Inode: inodeOf(info), Modified: info.ModTime().UnixNano()}
	head := make([]byte, c.Length)
	if err := readAt(f, head, 0); err != nil {
		return known, err
	}
	if known.Length > 0 && known.Length <= c.Length && checksumOf(head[:known.Length]) != known.Head {
		return known, ErrChanged
	}
	c.Head = checksumOf(head)
	tail := make([]byte, min(offset, tailBytes))
	if err := readAt(f, tail, offset-int64(len(tail))); err != nil {
		return known, err
	}
	c.Tail = checksumOf(tail)
	return c, nil
}

// readAt fills b. A file that is too short was truncated.
func readAt(f *os.File, b []byte, offset int64) error {
	_, err := f.ReadAt(b, offset)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrChanged
	}
	return err
}

func checksumOf(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:16])
}

// isFile reports whether f is the file that c speaks of, as far as its bytes tell. A
// copy that was made before its last lines were written is it too.
func (c *Cursor) isFile(f file, copied bool) (bool, error) {
	if f.pack != "" {
		return c.isPacked(f)
	}
	in, err := os.Open(f.path)
	if err != nil {
		return false, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	info, err := in.Stat()
	if err != nil {
		return false, err
	}
	if info.Size() < c.Offset {
		return copied && !c.isWeak() && c.hasHead(in), nil
	}
	now, err := readMarks(in, c.Offset, Cursor{})
	if errors.Is(err, ErrChanged) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// The cursor may know less of the head.
	return c.hasHead(in) && (c.Tail == "" || now.Tail == c.Tail), nil
}

func (c *Cursor) hasHead(in io.ReaderAt) bool {
	head := make([]byte, c.Length)
	_, err := in.ReadAt(head, 0)
	return (err == nil || errors.Is(err, io.EOF)) && checksumOf(head) == c.Head
}

// isPacked compares only the head of a compressed file: to find the tail, all of
// it would have to be read.
func (c *Cursor) isPacked(f file) (bool, error) {
	in, err := unpackFile(f)
	if err != nil {
		return false, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	head := make([]byte, c.Length)
	if _, err := io.ReadFull(in, head); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		return false, fmt.Errorf("%s: %w", f.path, err)
	}
	return checksumOf(head) == c.Head, nil
}

// file is a file of a rotation as it was found.
type file struct {
	path     string
	pack     string // how it is compressed; "" not
	size     int64
	inode    uint64
	modified time.Time
}
