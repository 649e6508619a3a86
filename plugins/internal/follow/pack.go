package follow

import (
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// packSuffixes are the suffixes of compressed files that can be read.
func packSuffixes() []string { return []string{".gz", ".bz2"} }

// closedPacks are the ways to compress that cannot be read.
func closedPacks() []string { return []string{".xz", ".zst", ".lz4", ".Z", ".lzma"} }

// packOf returns the ending of a name that says how the file is compressed.
func packOf(path string) string {
	if ext := filepath.Ext(path); slices.Contains(packSuffixes(), ext) {
		return ext
	}
	return ""
}

// unpacked reads what is in a compressed file.
type unpacked struct {
	io.Reader
	file *os.File
	raw  *counter
}

// counter counts the bytes that were read.
type counter struct {
	r io.Reader
	n int64
}

// Read reads and counts.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Close closes the file.
func (u *unpacked) Close() error { return u.file.Close() }

func unpackFile(f file) (*unpacked, error) {
	in, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	u := &unpacked{file: in, raw: &counter{r: in}}
	raw := bufio.NewReaderSize(u.raw, 64<<10)
	switch f.pack {
	case ".gz":
		u.Reader, err = gzip.NewReader(raw)
	case ".bz2":
		u.Reader = bzip2.NewReader(raw)
	}
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return u, nil
}
