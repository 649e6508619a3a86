//go:build e2e

package packages

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// boot makes a machine's root and becomes its systemd. $1 is the root that is left as
// it is, $2 a folder for what the machine writes, $3 the packages, which it sees as
// /packages. The kernel's settings cannot be changed from inside.
const boot = `
set -e
base=$1 dir=$2 packages=$3
mount --make-rprivate /
mkdir "$dir/upper" "$dir/work" "$dir/root"
mount -t overlay -o "lowerdir=$base,upperdir=$dir/upper,workdir=$dir/work" overlay "$dir/root"
cd "$dir/root"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs dev
for n in null zero full random urandom tty; do : > dev/$n; mount --bind /dev/$n dev/$n; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir packages old
mount --bind "$packages" packages
ip link set lo up
rm -f usr/sbin/policy-rc.d # packages may start what they want
for unit in systemd-modules-load.service systemd-logind.service munge.service getty.target; do
	ln -sf /dev/null "etc/systemd/system/$unit"
done
: > etc/machine-id
pivot_root . old
umount -l old
exec env -i container=bursar-e2e PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
	/lib/systemd/systemd --log-target=journal --show-status=0
`

// machine is a running machine.
type machine struct {
	t    testing.TB
	dir  string
	pid  int // of its systemd
	done chan struct{}
}

// startMachine starts a machine that sees the packages, with a network of its own, or with
// that of a process when network is not 0. It is gone when the test ends.
func startMachine(t testing.TB, packages string, network int) *machine {
	t.Helper()
	base := filepath.Join(rig.Cache(), "bookworm")
	if _, err := os.Stat(filepath.Join(base, ".bursar-e2e")); err != nil {
		t.Fatalf("%s is missing; run e2e/setup.sh as root: %v", base, err)
	}
	dir, err := os.MkdirTemp("", "bursar-machine-") // mount takes no comma in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &machine{t: t, dir: dir, done: make(chan struct{})}
	group := newGroup(t)
	args := []string{"unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--cgroup", "--propagation", "private"}
	if network == 0 {
		args = append(args, "--net")
	} else {
		args = append([]string{"nsenter", "-t", strconv.Itoa(network), "--net"}, args...)
	}
	args = append(args, "/bin/sh", "-c", boot, "machine", base, m.dir, packages)
	// The shell goes into the control group first, so that all others start in it.
	cmd := exec.Command("/bin/sh", append([]string{"-c", "echo $$ > " + group + "/cgroup.procs && exec \"$@\"", "enter"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // it is killed
		close(m.done)
	}()
	t.Cleanup(func() { m.killMachine(cmd.Process.Pid) })
	m.awaitBoot(cmd.Process.Pid, &out)
	return m
}

// newGroup makes a control group that is removed at the end of the test.
func newGroup(t testing.TB) string {
	t.Helper()
	top := "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(top, "cgroup.procs")); err != nil {
		top = filepath.Join(top, "unified")
	}
	group, err := os.MkdirTemp(top, "bursar-e2e-")
	if err != nil {
		t.Fatalf("make a control group (needs root and cgroup 2): %v", err)
	}
	t.Cleanup(func() {
		for range 100 { // a process that was killed leaves its group a moment later
			var dirs []string
			_ = filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return nil
			})
			for i := range dirs {
				_ = syscall.Rmdir(dirs[len(dirs)-1-i])
			}
			if _, err := os.Stat(group); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("the control group %s cannot be removed", group)
	})
	return group
}

// awaitBoot waits until systemd has started everything.
func (m *machine) awaitBoot(parent int, out *bytes.Buffer) {
	m.t.Helper()
	m.eventually("systemd runs", func() (bool, string) {
		select {
		case <-m.done:
			m.t.Fatalf("the machine ended: %s", out)
		default:
		}
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
		m.pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", m.pid)); strings.TrimSpace(string(comm)) != "systemd" {
			return false, "no systemd yet"
		}
		state, _ := m.runCommand("systemctl", "is-system-running")
		return strings.HasPrefix(state, "running"), state
	})
}

// killMachine kills the machine and waits until it is gone.
func (m *machine) killMachine(parent int) {
	if m.t.Failed() && m.pid != 0 {
		log, _ := m.runCommand("journalctl", "--no-pager", "-q", "-n", "60", "-o", "short")
		m.t.Logf("the end of the machine's journal:\n%s", log)
	}
	if m.pid != 0 {
		_ = syscall.Kill(m.pid, syscall.SIGKILL) // its first process: all others end with it
	}
	_ = syscall.Kill(parent, syscall.SIGKILL)
	<-m.done
}

// commandLimit is how long a command may take on a machine.
const commandLimit = 3 * time.Minute

// runCommand runs a command on the machine as root and returns all that it prints.
func (m *machine) runCommand(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	line := append([]string{"-t", strconv.Itoa(m.pid), "--all", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "SYSTEMD_PAGER=", "HOME=/root", name}, args...)
	cmd := exec.CommandContext(ctx, "nsenter", line...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return string(out), err
}

// mustRun is run of what has to work.
func (m *machine) mustRun(name string, args ...string) string {
	m.t.Helper()
	out, err := m.runCommand(name, args...)
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// pathOf is where the test finds a file of the machine.
func (m *machine) pathOf(path string) string { return fmt.Sprintf("/proc/%d/root%s", m.pid, path) }

func (m *machine) readFile(path string) string {
	m.t.Helper()
	text, err := os.ReadFile(m.pathOf(path))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text)
}

func (m *machine) writeFile(path, text string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.pathOf(path)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.pathOf(path), []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// property is what systemd says of a unit.
func (m *machine) property(unit, name string) string {
	m.t.Helper()
	return m.mustRun("systemctl", "show", "-P", name, unit)
}

// eventually is [site.Eventually].
func (m *machine) eventually(what string, ok func() (bool, string)) {
	m.t.Helper()
	site.Eventually(m.t, what, ok)
}
