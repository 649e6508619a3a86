package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// orderFormat is the format version of an order.
const orderFormat = 1

// order names an image that replaces the State; it is the data of an entry in
// the log, and what nodes ask each other for.
type order struct {
	Format int    `json:"format"`
	SHA256 string `json:"sha256"` // of the archive
	Size   int64  `json:"size"`
}

func (o order) encodeOrder() ([]byte, error) { return json.Marshal(o) }

func readOrder(data []byte) (o order, err error) {
	if err := json.Unmarshal(data, &o); err != nil {
		return o, fmt.Errorf("%w: order for an image: %w", ErrCorrupt, err)
	}
	if o.Format != orderFormat {
		return o, fmt.Errorf("%w: order for an image: format %d, this program knows %d", ErrFormat, o.Format, orderFormat)
	}
	sum, err := hex.DecodeString(o.SHA256)
	if err != nil || len(sum) != sha256.Size || strings.ToLower(o.SHA256) != o.SHA256 || o.Size <= 0 {
		return o, fmt.Errorf("%w: order for an image: %q of %d bytes", ErrCorrupt, o.SHA256, o.Size)
	}
	return o, nil
}

// imageStore keeps the archives of images that entries in the log name, until no
// entry here does and others have had the time to ask.
type imageStore struct{ dir string }

// imageStoreTime is how long an archive stays when no entry in the log names it.
const imageStoreTime = 24 * time.Hour

// errBusy: one image at a time.
var errBusy = errors.New("another image is on its way")

func openImageStore(dir string) (*imageStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cluster: images: %w", err)
	}
	half, err := filepath.Glob(filepath.Join(dir, "*"+tempSuffix))
	for _, f := range half {
		err = errors.Join(err, os.Remove(f))
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: images: %w", err)
	}
	return &imageStore{dir: dir}, nil
}

func (s *imageStore) imagePath(sum string) string { return filepath.Join(s.dir, sum+".tar") }

// hasImage reports whether an image is there; its content is verified when it is used.
func (s *imageStore) hasImage(o order) bool {
	info, err := os.Stat(s.imagePath(o.SHA256))
	return err == nil && info.Size() == o.Size
}

// packImage makes an archive of the files in dir and keeps it.
func (s *imageStore) packImage(dir string) (order, error) {
	p, err := packImage(dir, imageMeta{})
	if err != nil {
		return order{}, err
	}
	return s.keepImage(p.size, p.writeArchive)
}

// receiveImage keeps an archive that another node sends, if it is what was ordered.
func (s *imageStore) receiveImage(o order, from io.Reader) error {
	got, err := s.keepImage(o.Size, func(w io.Writer) error {
		_, err := io.CopyN(w, from, o.Size)
		return err
	})
	if err == nil && got != o {
		err = errors.Join(fmt.Errorf("%w: image: it is %s, and %s was announced", ErrCorrupt, got.SHA256, o.SHA256),
			os.Remove(s.imagePath(got.SHA256)))
	}
	return err
}

// keepImage stores what write gives, durably and verified, under its checksum.
func (s *imageStore) keepImage(size int64, write func(io.Writer) error) (order, error) {
	f, err := os.CreateTemp(s.dir, "in-*"+tempSuffix)
	if err != nil {
		return order{}, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is renamed, or swept at the next start
	defer f.Close()
	sum := sha256.New()
	if err := write(io.MultiWriter(f, sum)); err != nil {
		return order{}, err
	}
	if err := f.Sync(); err != nil {
		return order{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return order{}, err
	}
	if _, err := readImage(f, nil); err != nil {
		return order{}, err
	}
	o := order{Format: orderFormat, SHA256: hex.EncodeToString(sum.Sum(nil)), Size: size}
	if err := os.Rename(f.Name(), s.imagePath(o.SHA256)); err != nil {
		return order{}, err
	}
	return o, durable.SyncDir(s.dir)
}

// openImage returns an archive that is here.
func (s *imageStore) openImage(o order) (*os.File, error) { return os.Open(s.imagePath(o.SHA256)) }

// sweepImages removes what no entry names and what has been here for a while.
func (s *imageStore) sweepImages(named map[string]bool) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("cluster: images: %w", err)
	}
	for _, e := range entries {
		sum, ok := strings.CutSuffix(e.Name(), ".tar")
		info, err := e.Info()
		if !ok || err != nil || named[sum] || time.Since(info.ModTime()) < imageStoreTime {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil {
			return fmt.Errorf("cluster: images: %w", err)
		}
	}
	return nil
}

// unpackImage verifies an archive while it unpacks it below parent.
func (s *imageStore) unpackImage(o order, parent string) (string, error) {
	f, err := s.openImage(o)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return unpackTemp(parent, f)
}

// dropImage removes an archive that is damaged.
func (s *imageStore) dropImage(o order) error { return os.Remove(s.imagePath(o.SHA256)) }
