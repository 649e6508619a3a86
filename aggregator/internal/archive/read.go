package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/bursar-accounting/bursar/proto/image"
)

// Read reads an archive to its end and verifies all of it: the image ([image.Read]), the
// sizes, and that nothing follows. approve, which may be nil, sees what the archive says of
// itself before any file goes by, and may refuse it. keep, which may be nil, gets each file;
// what it has kept counts only when Read returns no error.
//
// An error wraps [ErrDamaged] or [ErrFormat] and says where the archive is
// wrong, or it is the one of r, approve or keep.
func Read(r io.Reader, approve func(Meta) error, keep func(name string, size int64, content io.Reader) error) (Meta, error) {
	in, err := openReader(r)
	if err != nil {
		return Meta{}, err
	}
	defer in.z.Close()
	meta, err := in.readAll(approve, keep)
	if err != nil {
		return Meta{}, in.damagedError(err)
	}
	return meta, nil
}

// ReadMeta reads what an archive says of itself, and no further.
func ReadMeta(r io.Reader) (meta Meta, err error) {
	in, err := openReader(r)
	if err != nil {
		return meta, err
	}
	defer in.z.Close()
	raw, err := image.ReadMeta(in.z)
	if err == nil {
		meta, err = parseMeta(raw)
	}
	if err != nil {
		return Meta{}, in.damagedError(err)
	}
	return meta, nil
}

// Verify reads an archive to its end and keeps nothing.
func Verify(r io.Reader) (Meta, error) { return Read(r, nil, nil) }

func parseMeta(raw []byte) (meta Meta, err error) {
	if err := json.Unmarshal(raw, &meta); err != nil {
		return meta, err
	}
	return meta, meta.validateMeta()
}

// reader reads one archive.
type reader struct {
	source *source
	frame  *oneFrame
	z      *zstd.Decoder
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

func openReader(r io.Reader) (*reader, error) {
	in := &reader{source: &source{r: r}}
	in.frame = newOneFrame(in.source)
	var err error
	in.z, err = zstd.NewReader(in.frame, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8*window))
	return in, err
}

// damagedError says where the archive is wrong.
func (in *reader) damagedError(err error) error {
	if c, ok := errors.AsType[image.Caller](err); ok {
		return c.Err
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
	return fmt.Errorf("%w: near byte %d: %w", ErrDamaged, in.frame.n, err)
}

func (in *reader) readAll(approve func(Meta) error, keep func(string, int64, io.Reader) error) (meta Meta, err error) {
	err = image.Read(in.z, func(raw []byte) (of image.Content, err error) {
		if meta, err = parseMeta(raw); err != nil {
			return of, err
		}
		if approve != nil {
			if err := approve(meta); err != nil {
				return of, image.Caller{Err: err}
			}
		}
		return image.Content{Files: meta.Files, Bytes: meta.Bytes}, nil
	}, keep)
	if err != nil {
		return meta, err
	}
	switch n, err := io.ReadFull(in.source, make([]byte, 1)); {
	case n > 0:
		return meta, errors.New("something follows the archive")
	case !errors.Is(err, io.EOF):
		return meta, err
	}
	return meta, nil
}
