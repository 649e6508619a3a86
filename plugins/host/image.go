package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
)

// ErrChecksum says that a plugin's binary is not the one that was pinned.
var ErrChecksum = errors.New("checksum of the plugin binary does not match")

// image is the program that is started.
type image struct {
	path  string // what to execute, without links
	stamp stamp
}

// stamp tells one version of a file from the next.
type stamp struct {
	device, inode uint64
	size          int64
	modified      time.Time
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), modified: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.device, s.inode = uint64(st.Dev), st.Ino //nolint:unconvert // of another size on other systems
	}
	return s
}

// loadImage checks the binary, and its checksum when it is pinned. A file that takes its place
// after that is found by [Process.Stale].
func loadImage(spec *Spec) (*image, error) {
	w := &walk{dev: spec.Dev, plugin: true}
	path, err := checkPath(spec.Path, w)
	if err != nil {
		return nil, hcl.FileError(err)
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || w.checkFile(path, st) != nil {
		return nil, unsafePath(path, "it was replaced while it was looked at")
	}
	if err := checkDigest(file, spec.SHA256); err != nil {
		return nil, err
	}
	return &image{path: path, stamp: stampOf(info)}, nil
}

// checkDigest returns an error unless the content of a file has the digest that is wanted, in
// hexadecimal digits; "" wants none.
func checkDigest(file *os.File, want string) error {
	if want == "" {
		return nil
	}
	pinned, err := hex.DecodeString(want)
	if err != nil || len(pinned) != sha256.Size {
		return fmt.Errorf("sha256 of %s: %q is not 64 hexadecimal digits", file.Name(), clipText(want))
	}
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return fmt.Errorf("read %s: %w", file.Name(), err)
	}
	if sum := h.Sum(nil); !bytes.Equal(sum, pinned) {
		return fmt.Errorf("%w: %s has sha256 %x, the configuration wants %x", ErrChecksum, file.Name(), sum, pinned)
	}
	return nil
}
