package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Read reads an archive to its end and verifies all of it: form, sizes, order
// and names of the files, every checksum, and that nothing follows. approve,
// which may be nil, sees what the archive says of itself before any file goes
// by, and may refuse it. keep gets each file and must read it to its end; what
// it has kept counts only when Read returns no error.
//
// An error wraps [ErrDamaged] or [ErrFormat] and says where the archive is
// wrong, or it is the one of r, approve or keep.
func Read(r io.Reader, approve func(Meta) error, keep func(name string, size int64, content io.Reader) error) (Meta, error) {
	in, err := open(r)
	if err != nil {
		return Meta{}, err
	}
	defer in.z.Close()
	in.keep = keep
	meta, err := in.all(approve)
	if err != nil {
		return Meta{}, in.damaged(err)
	}
	return meta, nil
}

// ReadMeta reads what an archive says of itself, and no further.
func ReadMeta(r io.Reader) (Meta, error) {
	in, err := open(r)
	if err != nil {
		return Meta{}, err
	}
	defer in.z.Close()
	meta, err := in.meta()
	if err != nil {
		return Meta{}, in.damaged(err)
	}
	return meta, nil
}

// Verify reads an archive to its end and keeps nothing.
func Verify(r io.Reader) (Meta, error) {
	return Read(r, nil, func(_ string, _ int64, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
}

// reader reads one archive.
type reader struct {
	source *source
	frame  *oneFrame
	z      *zstd.Decoder
	tar    *tar.Reader
	keep   func(string, int64, io.Reader) error

	member string // that is read, for errors
	sums   bytes.Buffer
	last   string
	bytes  int64 // of the files that are still to come
}

// source remembers the error of what is read from, which is not the archive's.
type source struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// given is an error of approve or keep, to be handed through.
type given struct{ error }

func open(r io.Reader) (*reader, error) {
	in := &reader{source: &source{r: r}, member: metaName}
	in.frame = newOneFrame(in.source)
	var err error
	in.z, err = zstd.NewReader(in.frame, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8*window))
	if err != nil {
		return nil, err
	}
	in.tar = tar.NewReader(in.z)
	return in, nil
}

// damaged says where the archive is wrong.
func (in *reader) damaged(err error) error {
	if g, ok := errors.AsType[given](err); ok {
		return g.error
	}
	if in.source.err != nil {
		return fmt.Errorf("read the archive: %w", in.source.err)
	}
	if errors.Is(err, ErrFormat) {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("it ends too early: %w", err)
	}
	return fmt.Errorf("%w: near byte %d, in %s: %w", ErrDamaged, in.frame.n, in.member, err)
}

func (in *reader) all(approve func(Meta) error) (Meta, error) {
	meta, err := in.meta()
	if err != nil {
		return meta, err
	}
	if approve != nil {
		if err := approve(meta); err != nil {
			return meta, given{err}
		}
	}
	in.bytes = meta.Bytes
	for range meta.Files {
		if err := in.file(); err != nil {
			return meta, err
		}
	}
	if in.bytes != 0 {
		return meta, fmt.Errorf("the files have %d bytes less than %s says", in.bytes, metaName)
	}
	if err := in.checksums(); err != nil {
		return meta, err
	}
	return meta, in.end()
}

// next goes on to the next member.
func (in *reader) next() (*tar.Header, error) {
	h, err := in.tar.Next()
	if err != nil {
		return nil, short(err)
	}
	in.member = fmt.Sprintf("%q", h.Name)
	if h.Typeflag != tar.TypeReg || h.Format&(tar.FormatUSTAR|tar.FormatGNU) == 0 || len(h.PAXRecords) > 0 {
		return nil, errors.New("it is no plain file")
	}
	return h, nil
}

// small reads a member that must be called name and fit into limit.
func (in *reader) small(name string, limit int64) ([]byte, error) {
	h, err := in.next()
	if err != nil {
		return nil, err
	}
	if h.Name != name || h.Size > limit {
		return nil, fmt.Errorf("it has %d bytes and stands where %s should be", h.Size, name)
	}
	return io.ReadAll(in.tar)
}

func (in *reader) meta() (meta Meta, err error) {
	raw, err := in.small(metaName, maxMeta)
	if err != nil {
		return meta, err
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return meta, err
	}
	sum := sha256.Sum256(raw)
	sumLine(&in.sums, metaName, sum[:])
	return meta, meta.validate()
}

// file hands on one file. Names grow, so that none comes twice.
func (in *reader) file() error {
	h, err := in.next()
	if err != nil {
		return err
	}
	name, below := strings.CutPrefix(h.Name, stateDir)
	if !below || !fit(name) {
		return errors.New("it has a name that no file of an archive has")
	}
	if in.last != "" && order(in.last, name) >= 0 {
		return fmt.Errorf("it comes after %q", stateDir+in.last)
	}
	if h.Size > in.bytes {
		return fmt.Errorf("with its %d bytes the files are larger than %s says", h.Size, metaName)
	}
	in.last, in.bytes = name, in.bytes-h.Size
	sum := sha256.New()
	content := &content{r: io.TeeReader(in.tar, sum)}
	if err := in.keep(name, h.Size, content); err != nil {
		if content.err != nil {
			return content.err
		}
		return given{fmt.Errorf("%s: %w", name, err)}
	}
	if content.n != h.Size {
		return given{fmt.Errorf("%s: only %d of %d bytes were taken", name, content.n, h.Size)}
	}
	sumLine(&in.sums, h.Name, sum.Sum(nil))
	return nil
}

// content tells errors of the archive from those of whom it is given to.
type content struct {
	r   io.Reader
	n   int64
	err error
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

func (in *reader) checksums() error {
	want, err := in.small(sumsName, maxSums)
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

// end makes sure that nothing follows.
func (in *reader) end() error {
	if _, err := in.tar.Next(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows it: %w", errors.Join(err, errors.New("not the end of the archive")))
	}
	in.member = "the end"
	if n, err := io.Copy(io.Discard, in.z); err != nil || n > 0 {
		return errors.Join(fmt.Errorf("%d bytes follow the last member", n), err)
	}
	switch n, err := io.ReadFull(in.source, make([]byte, 1)); {
	case n > 0:
		return errors.New("something follows the archive")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}
