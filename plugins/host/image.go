package host

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
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
	path   string   // what to execute
	sealed *os.File // the verified copy in memory that path points at; nil without
	stamp  stamp
	note   string // why there is no sealed copy although the file is pinned
}

func (i *image) closeImage() {
	if i.sealed != nil {
		i.sealed.Close()
	}
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

// loadImage checks the binary, of which the path without links is executed, and, when it is pinned, copies what it hashes to a
// sealed file in memory, so that what is executed is what was hashed.
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
	img := &image{path: path, stamp: stampOf(info)}
	if spec.SHA256 == "" {
		return img, nil
	}
	return img, img.pinImage(file, spec.SHA256)
}

func (i *image) pinImage(file *os.File, want string) error {
	pinned, err := hex.DecodeString(want)
	if err != nil || len(pinned) != sha256.Size {
		return fmt.Errorf("sha256 of %s: %q is not 64 hexadecimal digits", i.path, clipText(want))
	}
	memory, err := newMemoryFile(i.path)
	if err != nil {
		i.note = err.Error()
	}
	sum, script, err := digestFile(file, memory)
	if err == nil && subtle.ConstantTimeCompare(sum, pinned) != 1 {
		err = fmt.Errorf("%w: %s has sha256 %x, the configuration wants %x", ErrChecksum, i.path, sum, pinned)
	}
	if err != nil {
		closeFile(memory)
		return err
	}
	i.sealImage(memory, script)
	return nil
}

// digestFile hashes file and copies it to memory, if that is not nil.
func digestFile(file, memory *os.File) (sum []byte, script bool, err error) {
	h, first := sha256.New(), new(head)
	to := io.MultiWriter(h, first)
	if memory != nil {
		to = io.MultiWriter(h, first, memory)
	}
	if _, err := io.Copy(to, file); err != nil {
		return nil, false, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	return h.Sum(nil), bytes.Equal(first.bytes, []byte("#!")), nil
}

// sealImage makes memory what is executed. A script cannot be: its interpreter opens
// it again by name.
func (i *image) sealImage(memory *os.File, script bool) {
	switch {
	case memory == nil:
		return
	case script:
		i.note = "it is a script"
		closeFile(memory)
		return
	}
	if err := sealMemoryFile(memory); err != nil {
		i.note = err.Error()
		closeFile(memory)
		return
	}
	i.sealed, i.path = memory, fmt.Sprintf("/proc/self/fd/%d", memory.Fd())
}

func closeFile(f *os.File) {
	if f != nil {
		f.Close()
	}
}

// head keeps the first two bytes that are written to it.
type head struct{ bytes []byte }

func (h *head) Write(p []byte) (int, error) {
	h.bytes = append(h.bytes, p[:min(len(p), 2-len(h.bytes))]...)
	return len(p), nil
}
