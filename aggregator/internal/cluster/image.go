package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/bursar-accounting/bursar/proto/durable"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// An image is a tar archive: meta.json, the files of a checkpoint below
// "state/" in sorted order, and SHA256SUMS over all of them, in the format of
// sha256sum. So its length is known before it is read, it can be written and
// verified in one pass, and an operator can look into it with common tools.
const (
	imageFormat = 1
	metaName    = "meta.json"
	sumsName    = "SHA256SUMS"
	stateDir    = "state/"
	tarBlock    = 512
	maxName     = 100     // longer names need a second tar header
	maxMeta     = 1 << 20 // of meta.json
	maxSums     = 64 << 20
)

// imageMeta is meta.json of an image.
type imageMeta struct {
	Format  int    `json:"format"`
	Applied uint64 `json:"applied"`
	Term    uint64 `json:"term"`
	Files   int    `json:"files"`
}

// imageFile is one file of a checkpoint.
type imageFile struct {
	name string // with slashes, below the directory
	size int64
}

// listImage returns the files below dir, sorted.
func listImage(dir string) ([]imageFile, error) {
	var files []imageFile
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
		return appendFile(&files, filepath.ToSlash(rel), info)
	})
	return files, err
}

func appendFile(files *[]imageFile, name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("image: %s is no regular file", name)
	}
	if len(stateDir+name) > maxName || strings.ContainsAny(name, "\n\\") {
		return fmt.Errorf("image: unfit file name %q", name)
	}
	*files = append(*files, imageFile{name: name, size: info.Size()})
	return nil
}

// imageSize is the exact length of the archive.
func imageSize(meta []byte, files []imageFile) int64 {
	sums := sumLine(metaName)
	size := member(int64(len(meta)))
	for _, f := range files {
		size += member(f.size)
		sums += sumLine(stateDir + f.name)
	}
	return size + member(sums) + 2*tarBlock
}

func member(size int64) int64 { return tarBlock + (size+tarBlock-1)/tarBlock*tarBlock }

// sumLine is the length of a line "<64 digits>  <name>\n".
func sumLine(name string) int64 { return int64(2*sha256.Size + 2 + len(name) + 1) }

// writeImage writes the archive of dir to w.
func writeImage(w io.Writer, dir string, meta []byte, files []imageFile) error {
	tw := tar.NewWriter(w)
	var sums bytes.Buffer
	if err := addMember(tw, &sums, metaName, int64(len(meta)), bytes.NewReader(meta)); err != nil {
		return err
	}
	for _, f := range files {
		if err := addFile(tw, &sums, dir, f); err != nil {
			return err
		}
	}
	if err := addMember(tw, nil, sumsName, int64(sums.Len()), bytes.NewReader(sums.Bytes())); err != nil {
		return err
	}
	return tw.Close()
}

func addFile(tw *tar.Writer, sums *bytes.Buffer, dir string, f imageFile) error {
	from, err := os.Open(filepath.Join(dir, filepath.FromSlash(f.name)))
	if err != nil {
		return err
	}
	defer from.Close()
	return addMember(tw, sums, stateDir+f.name, f.size, from)
}

func addMember(tw *tar.Writer, sums *bytes.Buffer, name string, size int64, from io.Reader) error {
	h := &tar.Header{Name: name, Size: size, Mode: 0o600, Typeflag: tar.TypeReg, Format: tar.FormatGNU}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(tw, io.TeeReader(from, sum))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("image: %s: %w", name, err)
	}
	if sums != nil {
		fmt.Fprintf(sums, "%x  %s\n", sum.Sum(nil), name)
	}
	return nil
}

// readImage reads an archive to its end and verifies it. It hands each file to
// keep as it goes by; what keep has stored counts only when readImage returns
// without an error. keep must read its reader to the end.
func readImage(r io.Reader, keep func(name string, size int64, content io.Reader) error) (imageMeta, error) {
	in := &counted{r: r}
	ir := &imageReader{tr: tar.NewReader(in), keep: keep}
	meta, err := ir.read()
	if err == nil {
		err = in.endsAt(ir.size + 2*tarBlock)
	}
	if err != nil {
		return imageMeta{}, damagedImage(err)
	}
	return meta, nil
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n int64
}

// Read reads on.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// endsAt reads to the end and says when it is not where it should be.
func (c *counted) endsAt(want int64) error {
	if _, err := io.Copy(io.Discard, c); err != nil {
		return err
	}
	if c.n != want {
		return fmt.Errorf("it has %d bytes and should have %d", c.n, want)
	}
	return nil
}

func damagedImage(err error) error {
	if errors.Is(err, ErrFormat) || errors.Is(err, ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: image: %w", ErrCorrupt, err)
}

type imageReader struct {
	tr   *tar.Reader
	keep func(string, int64, io.Reader) error
	sums bytes.Buffer
	last string
	size int64 // of the members so far
}

func (ir *imageReader) read() (imageMeta, error) {
	meta, err := ir.readMeta()
	if err != nil {
		return meta, err
	}
	for range meta.Files {
		if err := ir.readFile(); err != nil {
			return meta, err
		}
	}
	return meta, ir.readSums()
}

func (ir *imageReader) readMeta() (meta imageMeta, err error) {
	raw, err := ir.small(metaName, maxMeta)
	if err != nil {
		return meta, err
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return meta, fmt.Errorf("%s: %w", metaName, err)
	}
	if meta.Format != imageFormat {
		return meta, fmt.Errorf("%w: image format %d, this program knows %d", ErrFormat, meta.Format, imageFormat)
	}
	ir.sum(metaName, sha256.Sum256(raw))
	return meta, nil
}

func (ir *imageReader) sum(name string, sum [sha256.Size]byte) {
	fmt.Fprintf(&ir.sums, "%x  %s\n", sum, name)
}

// small reads a member that must be called name and fit into limit.
func (ir *imageReader) small(name string, limit int64) ([]byte, error) {
	h, err := ir.next()
	if err != nil {
		return nil, err
	}
	if h.Name != name || h.Size > limit {
		return nil, fmt.Errorf("%q of %d bytes where %s should be", h.Name, h.Size, name)
	}
	return io.ReadAll(ir.tr)
}

func (ir *imageReader) next() (*tar.Header, error) {
	h, err := ir.tr.Next()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if h.Typeflag != tar.TypeReg {
		return nil, fmt.Errorf("%q is no regular file", h.Name)
	}
	ir.size += member(h.Size)
	return h, nil
}

// readFile hands on one file of the state. Names grow, so none comes twice, and
// stay below the directory.
func (ir *imageReader) readFile() error {
	h, err := ir.next()
	if err != nil {
		return err
	}
	name, below := strings.CutPrefix(h.Name, stateDir)
	if !below || !filepath.IsLocal(name) || path.Clean(name) != name || strings.ContainsAny(name, "\n\\") {
		return fmt.Errorf("unfit file name %q", h.Name)
	}
	if ir.last != "" && !sortedBefore(ir.last, name) {
		return fmt.Errorf("file %q is out of order", h.Name)
	}
	ir.last = name
	sum := sha256.New()
	if err := ir.keep(name, h.Size, io.TeeReader(ir.tr, sum)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	ir.sum(h.Name, [sha256.Size]byte(sum.Sum(nil)))
	return nil
}

// sortedBefore is the order in which WalkDir comes by: by the parts of the path.
func sortedBefore(a, b string) bool {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) < 0
}

func (ir *imageReader) readSums() error {
	want, err := ir.small(sumsName, maxSums)
	if err != nil {
		return err
	}
	if !bytes.Equal(want, ir.sums.Bytes()) {
		return fmt.Errorf("%w: image: its checksums do not match", ErrCorrupt)
	}
	if _, err := ir.tr.Next(); err != io.EOF {
		return errors.New("something follows the checksums")
	}
	return nil
}

// verifyImage reads an archive and says what it holds.
func verifyImage(r io.Reader) (imageMeta, error) {
	return readImage(r, func(_ string, _ int64, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
}

// unpackTemp verifies an archive while it unpacks it into a new directory below
// parent, which it removes again when the archive is damaged.
func unpackTemp(parent string, r io.Reader) (string, error) {
	dir, err := os.MkdirTemp(parent, "in-*")
	if err != nil {
		return "", err
	}
	_, err = readImage(r, func(name string, size int64, content io.Reader) error {
		return unpackFile(filepath.Join(dir, filepath.FromSlash(name)), content)
	})
	if err != nil {
		removeAll(dir)
		return "", err
	}
	return dir, nil
}

func unpackFile(path string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Sync(), f.Close(), durable.SyncDir(filepath.Dir(path)))
}

// removeAll removes scratch files; what stays is swept at the next start.
func removeAll(dir string) { _ = os.RemoveAll(dir) }
