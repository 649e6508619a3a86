package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Caller is the error of a function that was given to [Read]: the image is not to blame.
type Caller struct{ Err error }

// Error implements error.
func (c Caller) Error() string { return c.Err.Error() }

// Unwrap returns the error of the function.
func (c Caller) Unwrap() error { return c.Err }

// Content is what meta.json says of the files: how many there are, and how large they are
// together; less than 0 where it does not say.
type Content struct {
	Files int
	Bytes int64
}

// Read reads an image to its end and verifies all of it: form, sizes, order and names of
// the files, every checksum, and that nothing follows. begin sees meta.json before any file
// goes by; its error is the image's unless it is a [Caller]. keep, which may be nil, gets
// each file; what it leaves unread is read all the same. What it has kept counts only when
// Read returns no error. An error of keep is a [Caller]; any other says what is wrong with
// the image, in which member.
func Read(r io.Reader, begin func(meta []byte) (Content, error), keep func(name string, size int64, content io.Reader) error) error {
	from := &counted{r: r}
	in := &reader{tar: tar.NewReader(from), keep: keep}
	err := in.readAll(begin)
	if err == nil {
		in.member = "the end"
		err = in.checkEnd(from)
	}
	return in.withMember(err)
}

// ReadMeta reads meta.json, and no further.
func ReadMeta(r io.Reader) ([]byte, error) {
	in := &reader{tar: tar.NewReader(r)}
	meta, err := in.readSmall(MetaName, maxMeta)
	return meta, in.withMember(err)
}

type reader struct {
	tar  *tar.Reader
	keep func(string, int64, io.Reader) error

	member string // that is read, for errors
	size   int64  // of the members so far
	sums   bytes.Buffer
	last   string

	bounded bool
	bytes   int64 // of the files that are still to come, if bounded
}

// withMember adds to an error where the image is damaged.
func (in *reader) withMember(err error) error {
	if err == nil || in.member == "" {
		return err
	}
	if c, ok := errors.AsType[Caller](err); ok {
		return c
	}
	return fmt.Errorf("%s: %w", in.member, err)
}

func (in *reader) readAll(begin func([]byte) (Content, error)) error {
	meta, err := in.readSmall(MetaName, maxMeta)
	if err != nil {
		return err
	}
	content, err := begin(meta)
	if err != nil {
		return err
	}
	if content.Files < 1 || content.Files > maxFiles {
		return fmt.Errorf("%d files", content.Files)
	}
	sum := sha256.Sum256(meta)
	sumLine(&in.sums, MetaName, sum[:])
	in.bounded, in.bytes = content.Bytes >= 0, content.Bytes
	for range content.Files {
		if err := in.readFile(); err != nil {
			return err
		}
	}
	if in.bounded && in.bytes != 0 {
		return fmt.Errorf("the files have %d bytes less than %s says", in.bytes, MetaName)
	}
	return in.checkSums()
}

// nextMember goes on to the next member.
func (in *reader) nextMember() (*tar.Header, error) {
	h, err := in.tar.Next()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	in.member = fmt.Sprintf("%q", h.Name)
	in.size += memberSize(h.Size)
	if h.Typeflag != tar.TypeReg || h.Format&(tar.FormatUSTAR|tar.FormatGNU) == 0 || len(h.PAXRecords) > 0 {
		return nil, errors.New("not a plain file")
	}
	return h, nil
}

// readSmall reads a member that must be called name and fit into limit.
func (in *reader) readSmall(name string, limit int64) ([]byte, error) {
	h, err := in.nextMember()
	if err != nil {
		return nil, err
	}
	if h.Name != name || h.Size > limit {
		return nil, fmt.Errorf("it has %d bytes and stands where %s should be", h.Size, name)
	}
	return io.ReadAll(in.tar)
}

// readFile hands on one file. Names grow, so that none comes twice.
func (in *reader) readFile() error {
	h, err := in.nextMember()
	if err != nil {
		return err
	}
	name, below := strings.CutPrefix(h.Name, stateDir)
	if !below || !isValidName(name) {
		return errors.New("invalid name of a file")
	}
	if in.last != "" && comparePaths(in.last, name) >= 0 {
		return fmt.Errorf("it comes after %q", stateDir+in.last)
	}
	if in.bounded && h.Size > in.bytes {
		return fmt.Errorf("with its %d bytes the files are larger than %s says", h.Size, MetaName)
	}
	in.last, in.bytes = name, in.bytes-h.Size
	sum := sha256.New()
	content := &content{r: io.TeeReader(in.tar, sum)}
	if in.keep != nil {
		if err = in.keep(name, h.Size, content); err != nil && content.err == nil {
			return Caller{fmt.Errorf("%s: %w", name, err)}
		}
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	sumLine(&in.sums, h.Name, sum.Sum(nil))
	return nil
}

// content tells errors of the image from those of the function that reads it.
type content struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

func (in *reader) checkSums() error {
	want, err := in.readSmall(SumsName, maxSums)
	if err != nil {
		return err
	}
	got := in.sums.Bytes()
	if bytes.Equal(want, got) {
		return nil
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Errorf("the checksum of line %d differs: it says %q, and what was read is %q", i+1, a[i], b[i])
		}
	}
	return fmt.Errorf("it has %d lines and should have %d", len(a)-1, len(b)-1)
}

// checkEnd makes sure that the image ends as it should and nothing follows.
func (in *reader) checkEnd(from *counted) error {
	if _, err := in.tar.Next(); !errors.Is(err, io.EOF) {
		return errors.Join(errors.New("something follows the checksums"), err)
	}
	if _, err := io.Copy(io.Discard, from); err != nil {
		return err
	}
	if want := in.size + 2*block; from.n != want {
		return fmt.Errorf("the image has %d bytes and should have %d", from.n, want)
	}
	return nil
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
