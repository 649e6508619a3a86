package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// devName is what links to the unix sockets of the user's runs of `bursar dev` are called:
// by the nanosecond in which the run began, and its process.
const devName = "dev-%d-%d.sock"

// devFolder is the folder of the links; "" where the user has none.
func devFolder(getenv func(string) string) string {
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
	return filepath.Join(dir, "bursar")
}

// devLink is the link of a run.
type devLink struct {
	path  string
	began int64 // Unix time in nanoseconds
	pid   int
}

// devLinks are those in a folder, of runs that live and of runs that were killed, the
// newest first.
func devLinks(folder string) (links []devLink) {
	entries, _ := os.ReadDir(folder) // without a folder there are none
	for _, e := range entries {
		l := devLink{path: filepath.Join(folder, e.Name())}
		if _, err := fmt.Sscanf(e.Name(), devName, &l.began, &l.pid); err == nil {
			links = append(links, l)
		}
	}
	slices.SortFunc(links, func(a, b devLink) int { return cmp.Compare(b.began, a.began) })
	return links
}

// devSockets are where the user's own runs of `bursar dev` may be reached, the newest first.
func devSockets(getenv func(string) string) (paths []string) {
	for _, l := range devLinks(devFolder(getenv)) {
		paths = append(paths, l.path)
	}
	return paths
}

// linkDevSocket makes the link to the socket of the run of a process, and returns what takes
// it away. Links of processes that are gone are removed.
func linkDevSocket(getenv func(string) string, socket string, pid int) (remove func() error, err error) {
	folder := devFolder(getenv)
	none := func() error { return nil }
	if folder == "" {
		return none, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return none, fmt.Errorf("link to the socket: %w", err)
	}
	for _, l := range devLinks(folder) {
		if l.pid == pid || errors.Is(syscall.Kill(l.pid, 0), syscall.ESRCH) {
			_ = os.Remove(l.path) // what stays is not listened on, and passed over
		}
	}
	link := filepath.Join(folder, fmt.Sprintf(devName, time.Now().UnixNano(), pid))
	if err := os.Symlink(socket, link); err != nil {
		return none, fmt.Errorf("link to the socket: %w", err)
	}
	return func() error {
		err := os.Remove(link)
		_ = os.Remove(folder) // unless something else is in it
		return err
	}, nil
}
