package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// spillDir is the directory of the files in which queries sort, below the store's.
	spillDir = "spill"
	// spillPrefix begins the names of these files.
	spillPrefix = "run-"
)

// spill makes the files in which queries sort.
type spill struct {
	dir string // "" is the system's for temporary files
	may func() error
}

func (o *Options) newSpill() *spill { return &spill{o.SpillDir, o.MaySpill} }

// createFile makes a file that has no name any more, so that it goes with the process,
// however that ends.
func (s *spill) createFile() (*os.File, error) {
	if err := s.checkRoom(); err != nil {
		return nil, err
	}
	if s.dir != "" {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSpill, err)
		}
	}
	f, err := os.CreateTemp(s.dir, spillPrefix)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpill, err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrSpill, err), f.Close())
	}
	return f, nil
}

// checkRoom returns an error when the disk has no room for more.
func (s *spill) checkRoom() error {
	if err := s.may(); err != nil {
		return fmt.Errorf("%w: %w", ErrSpill, err)
	}
	return nil
}

// clearSpill removes files that a kill left between their making and the loss of
// their names.
func (o *Options) clearSpill() error {
	if o.SpillDir == "" || o.readOnly {
		return nil
	}
	names, err := os.ReadDir(o.SpillDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if strings.HasPrefix(name.Name(), spillPrefix) {
			err = errors.Join(err, os.Remove(filepath.Join(o.SpillDir, name.Name())))
		}
	}
	return err
}
