package cli

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/proto/local"
)

// devRun is a run of `bursar dev` as other commands see it.
type devRun struct {
	unlink func() error
	listen net.Listener
	link   string
}

// endedPID is the number of a process that has ended.
func endedPID(t *testing.T) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// Runs begin and end in any order, by themselves or killed: commands ask the newest that lives.
func TestNearest_RunsOfDev_NewestThatLives(t *testing.T) {
	home := t.TempDir()
	getenv := func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": home}[name] }
	p := &Program{Getenv: getenv}
	begin := func(pid int) *devRun {
		socket := filepath.Join(t.TempDir(), "api.sock")
		unlink, err := linkDevSocket(getenv, socket, pid)
		if err != nil {
			t.Fatal(err)
		}
		l, err := local.Listen(socket, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return &devRun{unlink, l, devLinks(devFolder(getenv))[0].path}
	}
	want := func(how string, run *devRun) {
		t.Helper()
		address := defaultAddress
		if run != nil {
			address = "unix:" + run.link
		}
		if got := p.nearestAddress().address; got != address {
			t.Errorf("%s: %s, want %s", how, got, address)
		}
	}
	end := func(run *devRun) {
		if err := run.unlink(); err != nil {
			t.Error(err)
		}
		run.listen.Close()
	}
	want("none", nil)
	a := begin(os.Getpid())
	want("one", a)
	b := begin(os.Getppid())
	want("the second", b)
	end(b)
	want("the second has ended", a)
	killed := begin(endedPID(t))
	want("a third", killed)
	killed.listen.Close()
	want("the third was killed", a)
	b = begin(os.Getppid())
	if left := len(devLinks(devFolder(getenv))); left != 2 {
		t.Errorf("%d links, want those of the two that live", left)
	}
	end(a)
	want("the first has ended", b)
	end(b)
	want("all have ended", nil)
	if _, err := os.Lstat(devFolder(getenv)); !os.IsNotExist(err) {
		t.Error("the folder of the links is left")
	}
}
