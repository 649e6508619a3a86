package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// DevSocket is the name under which a user's own `bursar dev` is found: a link to its unix
// socket, in a folder of the user's. "" where there is no such folder.
func DevSocket(getenv func(string) string) string {
	dir := getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		if dir = getenv("HOME"); dir == "" {
			return ""
		}
		dir = filepath.Join(dir, ".cache")
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "bursar", "dev.sock")
}

// announce makes the link to the socket, and returns what takes it away. The run that
// began last has it.
func announce(getenv func(string) string, socket string) (remove func() error, err error) {
	link := DevSocket(getenv)
	none := func() error { return nil }
	if link == "" {
		return none, nil
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		return none, fmt.Errorf("link to the socket: %w", err)
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return none, fmt.Errorf("link to the socket: %w", err)
	}
	if err := os.Symlink(socket, link); err != nil {
		return none, fmt.Errorf("link to the socket: %w", err)
	}
	return func() error {
		if now, err := os.Readlink(link); err != nil || now != socket {
			return nil //nolint:nilerr // it is another run's, or gone
		}
		err := os.Remove(link)
		_ = os.Remove(filepath.Dir(link)) // unless something else is in it
		return err
	}, nil
}
