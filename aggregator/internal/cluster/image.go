package cluster

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/bursar-accounting/bursar/proto/image"
)

// imageFormat is the version of meta.json of an image that nodes send to each other.
const imageFormat = 1

// imageMeta is meta.json of an image.
type imageMeta struct {
	Format  int    `json:"format"`
	Applied uint64 `json:"applied"`
	Term    uint64 `json:"term"`
	Files   int    `json:"files"`
	// Terms are those of the entries up to the snapshot's index.
	Terms []termStart `json:"terms,omitempty"`
}

// packed is an image that can be written, and its exact length.
type packed struct {
	dir   string
	meta  []byte
	files []image.File
	size  int64
}

// packImage prepares the image of the files in dir.
func packImage(dir string, meta imageMeta) (p packed, err error) {
	if p.files, err = image.List(dir); err != nil {
		return p, err
	}
	if len(p.files) == 0 {
		return p, fmt.Errorf("%s holds no files", dir)
	}
	meta.Format, meta.Files = imageFormat, len(p.files)
	p.dir = dir
	p.meta, err = json.Marshal(meta)
	p.size = image.Size(p.meta, p.files)
	return p, err
}

func (p *packed) writeArchive(w io.Writer) error {
	return image.Write(w, tar.FormatGNU, p.dir, p.meta, p.files)
}

// readImage reads an image to its end and verifies it; keep may be nil.
func readImage(r io.Reader, keep func(name string, size int64, content io.Reader) error) (meta imageMeta, err error) {
	err = image.Read(r, func(raw []byte) (of image.Content, err error) {
		if err := json.Unmarshal(raw, &meta); err != nil {
			return of, err
		}
		if meta.Format != imageFormat {
			return of, fmt.Errorf("%w: image format %d, this program knows %d", ErrFormat, meta.Format, imageFormat)
		}
		return image.Content{Files: meta.Files, Bytes: -1}, nil
	}, keep)
	if _, ours := errors.AsType[image.Caller](err); err != nil && !ours && !errors.Is(err, ErrFormat) {
		err = fmt.Errorf("%w: image: %w", ErrCorrupt, err)
	}
	return meta, err
}

// unpackTemp verifies an image while it unpacks it into a new directory below
// parent, which it removes again when the image is damaged.
func unpackTemp(parent string, r io.Reader) (string, error) {
	dir, err := os.MkdirTemp(parent, "in-*")
	if err != nil {
		return "", err
	}
	if _, err := readImage(r, image.Into(dir)); err != nil {
		removeAll(dir)
		return "", err
	}
	return dir, nil
}

// removeAll removes scratch files; what stays is swept at the next start.
func removeAll(dir string) { _ = os.RemoveAll(dir) }
