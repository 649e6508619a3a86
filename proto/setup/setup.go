// Package setup puts the files of a daemon in place on a machine, with the owner and the
// mode that the daemon needs, and starts its unit.
package setup

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/durable"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Owner is to whom files are given. The zero value leaves them to who makes them.
type Owner struct {
	uid, gid int
	known    bool
}

// Daemon is the user of a daemon. Only root can give files away: for others it is the
// zero Owner.
func Daemon(name string) (Owner, error) {
	if os.Geteuid() != 0 {
		return Owner{}, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return Owner{}, fmt.Errorf("%w: the package makes this user, and -user names another one", err)
	}
	uid, bad := strconv.Atoi(u.Uid)
	gid, worse := strconv.Atoi(u.Gid)
	return Owner{uid, gid, true}, errors.Join(bad, worse)
}

// Dir makes a folder, or gives one that is there its mode and owner.
func (o Owner) Dir(path string, mode os.FileMode) error {
	return errors.Join(os.MkdirAll(path, mode), os.Chmod(path, mode), o.changeOwner(path))
}

// Write puts a file in its place, whole.
func (o Owner) Write(path string, text []byte, mode os.FileMode) error {
	err := durable.ReplaceWith(path, mode, func(f *os.File) error {
		_, err := f.Write(text)
		return errors.Join(err, o.changeOwner(f.Name()))
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Root writes a file that root keeps and the daemon's group may read.
func (o Owner) Root(path string, text []byte) error {
	if o.known {
		o.uid = 0
	}
	return o.Write(path, text, 0o640)
}

// Key returns the key in a file, which is made when it is not there.
func (o Owner) Key(path string) (*ecdsa.PrivateKey, error) {
	key, err := identity.KeepKey(path)
	if err != nil {
		return nil, err
	}
	return key, o.changeOwner(path)
}

func (o Owner) changeOwner(path string) error {
	if !o.known {
		return nil
	}
	return os.Lchown(path, o.uid, o.gid)
}

// Files are the certificates of a daemon in a folder of its own, to which it can write
// when it renews them.
func Files(config, daemon string) identity.Files {
	dir := filepath.Join(filepath.Dir(config), "tls", daemon)
	return identity.Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, daemon+".pem"), Key: filepath.Join(dir, daemon+".key")}
}

// Folder makes the folder of a daemon's certificates.
func (o Owner) Folder(files identity.Files) error {
	dir := filepath.Dir(files.Key)
	return errors.Join(Public(filepath.Dir(dir)), o.Dir(dir, 0o750))
}

// Public makes a folder that everyone may look into, as /etc is.
func Public(dir string) error {
	return os.MkdirAll(dir, 0o755) //nolint:gosec // what is secret in it has folders and modes of its own
}

// Quote writes a string of HCL.
func Quote(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(s))
}

// ErrEdited says that a configuration file is not as the package, or this command, wrote it.
var ErrEdited = errors.New("the file was edited and stays as it is")

// Replaceable returns nil when a configuration file is not there, is that of the package,
// or holds the text already; otherwise the error wraps [ErrEdited].
func Replaceable(path string, packaged, text []byte) error {
	there, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist), err == nil && (string(there) == string(packaged) || string(there) == string(text)):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s: %w: put this into it and run the command again, or -force replaces it\n\n%s", path, ErrEdited, text)
}

// Systemd reports whether systemd runs this machine.
func Systemd() bool {
	info, err := os.Stat("/run/systemd/system")
	return err == nil && info.IsDir()
}

// startTime bounds the start of a unit.
const startTime = 5 * time.Minute

// Start starts a unit now and at every start of the machine. A running one is restarted.
func Start(ctx context.Context, unit string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for _, args := range [][]string{{"enable", unit}, {"restart", unit}} {
		out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("systemctl %s: %w: %s; journalctl -u %s says more", strings.Join(args, " "), err, strings.TrimSpace(string(out)), unit)
		}
	}
	return nil
}

// Name is the name of this machine, without its domain.
func Name() (string, error) {
	host, err := os.Hostname()
	name, _, _ := strings.Cut(host, ".")
	return name, err
}
