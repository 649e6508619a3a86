//go:build e2e

package rig

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bursar-accounting/bursar/proto/programtest"
)

// boxHost is the host name inside every box.
const boxHost = "rig"

// searchPath is PATH inside a box.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// box is a set of namespaces (processes, mounts, network, host name, IPC) with a
// process of its own at the head. When that process ends the kernel kills all
// others in the box and drops its mounts; it ends when its standard input closes,
// so also when the process that made the box is killed.
type box struct {
	dir  string // visible inside under the same path
	root string // directory that processes see as /; "" for the machine's own
	init *exec.Cmd
	hold io.Closer
}

// boxInit prepares a box from inside and then waits. $1 is the directory whose etc/
// holds the files that replace those in /etc, $2 the root ("" or a directory), and
// what follows are paths to be shown under the same name below that root.
const boxInit = `
set -e
dir=$1 root=$2; shift 2
mount --make-rprivate /
mount -t proc proc "$root/proc"
if [ -n "$root" ]; then
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
	for p in "$dir" "$@"; do
		if [ -d "$p" ]; then mkdir -p "$root$p"; else mkdir -p "${root}${p%/*}"; : >> "$root$p"; fi
		mount --rbind "$p" "$root$p"
	done
fi
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir -m 1777 "$root/run/munge"
for f in passwd group hosts; do mount --bind "$dir/etc/$f" "$root/etc/$f"; done
echo ` + boxHost + ` > "$root/proc/sys/kernel/hostname"
ip link set lo up
ip address add 192.0.2.1/32 dev lo # name look-ups that ask for AI_ADDRCONFIG want more than 127.0.0.1
echo ready
exec 3<&0
cat <&3 >/dev/null &
wait $!
`

// newBox makes a box over dir and root; the paths in show exist inside it too. The
// files dir/etc/passwd, group and hosts must exist already.
func newBox(dir, root string, show []string) (*box, error) {
	args := append([]string{"-c", boxInit, "rig-box", dir, root}, show...)
	b := &box{dir: dir, root: root, init: exec.Command("/bin/sh", args...)}
	b.init.Env = []string{"PATH=" + searchPath}
	b.init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Setpgid:    true, // an interrupt at the terminal is for the test, which then cleans up
	}
	if err := b.start(); err != nil {
		return nil, fmt.Errorf("make namespaces (needs root): %w", err)
	}
	return b, nil
}

func (b *box) start() error {
	var diag bytes.Buffer
	b.init.Stderr = &diag
	in, err := b.init.StdinPipe()
	if err != nil {
		return err
	}
	out, err := b.init.StdoutPipe()
	if err != nil {
		return err
	}
	if err := b.init.Start(); err != nil {
		return err
	}
	b.hold = in
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		b.endProcesses()
		return fmt.Errorf("prepare: %w: %s", errors.Join(err), strings.TrimSpace(diag.String()))
	}
	return nil
}

// endProcesses ends every process in the box and waits until they are gone.
func (b *box) endProcesses() {
	b.hold.Close()
	_ = b.init.Process.Kill()
	_ = b.init.Wait()
}

// enterCommand is the command line that runs what follows it inside the box. With inPID it
// also joins the process namespace, so what runs ends with the box at the latest;
// without, the started process itself becomes the command and takes its signals.
func (b *box) enterCommand(inPID bool) []string {
	line := []string{"nsenter", "-t", strconv.Itoa(b.init.Process.Pid), "-m", "-u", "-i", "-n"}
	if inPID {
		line = append(line, "-p")
	}
	line = append(line, "--")
	if b.root != "" {
		line = append(line, "chroot", b.root)
	}
	return line
}

// command prepares a command inside the box, run as user in the directory wd, with
// the environment env beside PATH, HOME and USER.
func (b *box) command(ctx context.Context, user, wd string, env []string, name string, args ...string) *exec.Cmd {
	line := b.enterCommand(true)
	if user != "root" {
		line = append(line, "setpriv", "--reuid", user, "--regid", user, "--init-groups")
	}
	line = append(line, "env", "-i", "-C", wd, "PATH="+searchPath, "LC_ALL=C.UTF-8", "HOME="+wd, "USER="+user, "LOGNAME="+user)
	line = append(line, env...)
	line = append(line, name)
	line = append(line, args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.WaitDelay = time.Second
	return cmd
}

// writeWrapper writes a script at path that runs program inside the box as whoever calls
// it, with the caller's environment and env on top.
func (b *box) writeWrapper(path string, env []string, program string) error {
	line := append(b.enterCommand(false), append(append([]string{"env"}, env...), program)...)
	text := "#!/bin/sh\nexec " + strings.Join(line, " ") + " \"$@\"\n"
	return programtest.WriteProgram(path, text)
}

// account is a user of the box with a group of the same name and id.
type account struct {
	name string
	id   int
}

// writeEtc puts passwd, group and hosts for a box into dir/etc: those of root, with
// the given accounts in place of any of the same name, and with the box's host name.
func writeEtc(dir, root string, accounts []account) error {
	for _, f := range []string{"passwd", "group"} {
		old, err := os.ReadFile(filepath.Join(root, "/etc", f))
		if err != nil {
			return fmt.Errorf("copy user database: %w", err)
		}
		text := withAccounts(f, string(old), dir, accounts)
		if err := os.WriteFile(filepath.Join(dir, "etc", f), []byte(text), 0o644); err != nil {
			return err
		}
	}
	hosts := "127.0.0.1 localhost " + boxHost + "\n::1 localhost ip6-localhost\n"
	return os.WriteFile(filepath.Join(dir, "etc/hosts"), []byte(hosts), 0o644)
}

func withAccounts(file, old, dir string, accounts []account) string {
	var b strings.Builder
	for line := range strings.Lines(old) {
		if name, _, _ := strings.Cut(line, ":"); !hasAccount(accounts, name) {
			b.WriteString(line)
		}
	}
	for _, a := range accounts {
		if file == "group" {
			fmt.Fprintf(&b, "%s:x:%d:\n", a.name, a.id)
		} else {
			fmt.Fprintf(&b, "%s:x:%d:%d:The rig's %s,,,:%s/home/%s:/bin/bash\n", a.name, a.id, a.id, a.name, dir, a.name)
		}
	}
	return b.String()
}

func hasAccount(accounts []account, name string) bool {
	for _, a := range accounts {
		if a.name == name {
			return true
		}
	}
	return false
}
