package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// window bounds the memory of both sides. The files are compressed already for
// the greater part.
const window = 1 << 20

// Write writes an archive of the files below dir. It sets Format, Files and
// Bytes of meta. Nothing below dir may change meanwhile.
func Write(w io.Writer, dir string, meta Meta) error {
	files, err := list(dir)
	if err != nil {
		return err
	}
	meta.Format, meta.Files, meta.Bytes = Format, len(files), 0
	for _, f := range files {
		meta.Bytes += f.size
	}
	raw, err := json.MarshalIndent(meta, "", "  ")
	if err != nil {
		return err
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		return err
	}
	err = writeTar(z, dir, append(raw, '\n'), files)
	return errors.Join(err, z.Close())
}

// writeTar writes the members: the meta data, the files, the checksums.
func writeTar(w io.Writer, dir string, meta []byte, files []file) error {
	tw, sums := tar.NewWriter(w), new(bytes.Buffer)
	if err := add(tw, sums, metaName, int64(len(meta)), bytes.NewReader(meta)); err != nil {
		return err
	}
	for _, f := range files {
		if err := addFile(tw, sums, dir, f); err != nil {
			return err
		}
	}
	if err := add(tw, nil, sumsName, int64(sums.Len()), sums); err != nil {
		return err
	}
	return tw.Close()
}

func addFile(tw *tar.Writer, sums *bytes.Buffer, dir string, f file) error {
	from, err := os.Open(filepath.Join(dir, filepath.FromSlash(f.name)))
	if err != nil {
		return err
	}
	defer from.Close()
	return add(tw, sums, stateDir+f.name, f.size, from)
}

func add(tw *tar.Writer, sums *bytes.Buffer, name string, size int64, from io.Reader) error {
	h := &tar.Header{Name: name, Size: size, Mode: 0o600, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	if size >= 8<<30 { // more than USTAR has digits for
		h.Format = tar.FormatGNU
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(tw, io.TeeReader(from, sum))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("archive %s: %w", name, err)
	}
	if sums != nil {
		sumLine(sums, name, sum.Sum(nil))
	}
	return nil
}

// sumLine writes a line as sha256sum does.
func sumLine(sums *bytes.Buffer, name string, sum []byte) { fmt.Fprintf(sums, "%x  %s\n", sum, name) }
