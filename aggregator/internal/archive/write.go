package archive

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/bursar-accounting/bursar/proto/image"
)

// window bounds the memory of both sides. The files are compressed already for
// the greater part.
const window = 1 << 20

// Write writes an archive of the files below dir. It sets Format, Files and
// Bytes of meta. Nothing below dir may change meanwhile.
func Write(w io.Writer, dir string, meta Meta) error {
	files, err := image.List(dir)
	if err != nil {
		return err
	}
	meta.Format, meta.Files, meta.Bytes = Format, len(files), image.Bytes(files)
	raw, err := json.MarshalIndent(meta, "", "  ")
	if err != nil {
		return err
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		return err
	}
	err = image.Write(z, tar.FormatUSTAR, dir, append(raw, '\n'), files)
	return errors.Join(err, z.Close())
}

// filesSize returns how large the files of the image are together.
func (m *Image) filesSize() (int64, error) {
	files, err := image.List(filepath.Join(m.dir, "state"))
	return image.Bytes(files), err
}
