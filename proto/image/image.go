// Package image reads and writes the image of a store: a checkpoint's files in one tar,
// as nodes send it to each other and as backups hold it.
//
// The members are meta.json, the files below state/ in sorted order, and SHA256SUMS over
// all of them as sha256sum writes it. So an image is written and verified in one pass,
// its length is known before it is read, and common tools look into it. What meta.json
// says is up to the caller, and so is the [tar.Format] of the headers, which differ in
// their magic alone: released formats have either.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// The members of an image.
const (
	MetaName = "meta.json"
	SumsName = "SHA256SUMS"
	stateDir = "state/"
)

// block is the unit of a tar.
const block = 512

// Limits of an image. They bound what a hostile one can cost.
const (
	maxFiles = 1 << 18             // Pebble has a few thousand in a store of 50 million records
	maxName  = 100 - len(stateDir) // so that one header holds it
	maxMeta  = 64 << 10
	maxSums  = maxFiles * (2*sha256.Size + 2 + 100 + 1)
)

// File is one file of a checkpoint.
type File struct {
	Name string // with slashes, below the directory
	Size int64
}

// List returns the files below dir in the order in which they are stored.
func List(dir string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if !info.Mode().IsRegular() || !isValidName(name) {
			return fmt.Errorf("cannot store %s in an image: not a regular file, or its name is too long or has special characters", p)
		}
		files = append(files, File{name, info.Size()})
		return nil
	})
	return files, err
}

// comparePaths compares by the parts of the path, as [filepath.WalkDir] goes.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

// isValidName reports whether name stays below the directory that it is unpacked into
// and needs one tar header and one line of the checksums.
func isValidName(name string) bool {
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }
	return len(name) <= maxName && !strings.ContainsFunc(name, odd) &&
		filepath.IsLocal(name) && path.Clean(name) == name && name != "."
}

// Bytes is how large the files are together.
func Bytes(files []File) (sum int64) {
	for _, f := range files {
		sum += f.Size
	}
	return sum
}

// Size is the exact length of an image.
func Size(meta []byte, files []File) int64 {
	sums := sumLength(MetaName)
	size := memberSize(int64(len(meta)))
	for _, f := range files {
		size += memberSize(f.Size)
		sums += sumLength(stateDir + f.Name)
	}
	return size + memberSize(sums) + 2*block
}

func memberSize(size int64) int64 { return block + (size+block-1)/block*block }

func sumLength(name string) int64 { return int64(2*sha256.Size + 2 + len(name) + 1) }

// Write writes an image of files, which [List] found below dir. Nothing below dir may
// change meanwhile. The headers have the format, or GNU's where files are too large for it.
func Write(w io.Writer, format tar.Format, dir string, meta []byte, files []File) error {
	out := writer{tar: tar.NewWriter(w), format: format}
	if err := out.addMember(MetaName, int64(len(meta)), bytes.NewReader(meta)); err != nil {
		return err
	}
	for _, f := range files {
		if err := out.addFile(dir, f); err != nil {
			return err
		}
	}
	sums := bytes.Clone(out.sums.Bytes())
	if err := out.addMember(SumsName, int64(len(sums)), bytes.NewReader(sums)); err != nil {
		return err
	}
	return out.tar.Close()
}

type writer struct {
	tar    *tar.Writer
	format tar.Format
	sums   bytes.Buffer
}

func (w *writer) addFile(dir string, f File) error {
	from, err := os.Open(filepath.Join(dir, filepath.FromSlash(f.Name)))
	if err != nil {
		return err
	}
	defer from.Close()
	return w.addMember(stateDir+f.Name, f.Size, from)
}

func (w *writer) addMember(name string, size int64, from io.Reader) error {
	h := &tar.Header{Name: name, Size: size, Mode: 0o600, Typeflag: tar.TypeReg, Format: w.format}
	if size >= 8<<30 { // more than USTAR has digits for
		h.Format = tar.FormatGNU
	}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(w.tar, io.TeeReader(from, sum))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("write %s into the image: %w", name, err)
	}
	sumLine(&w.sums, name, sum.Sum(nil))
	return nil
}

// sumLine writes a line as sha256sum does.
func sumLine(sums *bytes.Buffer, name string, sum []byte) { fmt.Fprintf(sums, "%x  %s\n", sum, name) }

// Into returns what has [Read] leave the files in dir, synced.
func Into(dir string) func(name string, size int64, content io.Reader) error {
	return func(name string, _ int64, content io.Reader) error {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Sync(), f.Close(), durable.SyncDir(filepath.Dir(p)))
	}
}
