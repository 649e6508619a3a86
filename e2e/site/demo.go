//go:build e2e

package site

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Demo is a running `bursar dev` without a scheduler, and a folder from which its user
// calls the programs.
type Demo struct {
	site *Site
	dir  string
	env  []string
}

// Demo starts `bursar dev`, and waits until all that is wrong in the demo on purpose
// has been found.
func (s *Site) Demo() *Demo {
	s.t.Helper()
	d := &Demo{site: s, dir: s.path("user"), env: []string{"XDG_RUNTIME_DIR=" + s.Dir, "TMPDIR=" + s.Dir, "BURSAR_ADDR="}}
	none := s.path("none") // of the schedulers that this machine may have
	for _, dir := range []string{d.dir, none} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := os.Symlink(s.Bin, filepath.Join(d.dir, "bin")); err != nil {
		s.t.Fatal(err)
	}
	dev := s.Daemon("dev", "bursar", "dev", "-listen", "127.0.0.1:0")
	dev.Env = append([]string{"PATH=" + none}, d.env...)
	dev.Start()
	d.env = append(d.env, "PATH="+s.Bin+":"+os.Getenv("PATH"))
	s.Eventually("the demo finds its failed day", func() (bool, string) {
		if dev.Ended() {
			s.t.Fatalf("the demo has ended:\n%s", dev.Log(100))
		}
		out, err := d.Run("bursar completeness -check")
		var failed *exec.ExitError
		return errors.As(err, &failed) && failed.ExitCode() == 2 && strings.Contains(dev.Log(100), "Ctrl-C stops"), out + dev.Log(100)
	})
	return d
}

// Run runs a command of the shell as the demo's user would, and returns what it printed.
func (d *Demo) Run(command string) (out string, err error) {
	ctx, cancel := context.WithTimeout(d.site.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env, cmd.WaitDelay = d.dir, append(os.Environ(), d.env...), time.Second
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// Login returns the link that opens the demo's pages in a browser, and the address that they
// are at.
func (d *Demo) Login() (link, base string) {
	d.site.t.Helper()
	link, err := d.Run("bursar login")
	base, _, found := strings.Cut(link, "/ui/")
	if err != nil || !found {
		d.site.t.Fatal(link, err)
	}
	return strings.TrimSpace(link), base
}
