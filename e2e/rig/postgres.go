//go:build e2e

package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// postgresBin is where Debian keeps PostgreSQL 15's server programs.
const postgresBin = "/usr/lib/postgresql/15/bin"

// Postgres starts a private, empty PostgreSQL 15 that listens on a unix socket only,
// with its default durability, and returns the DSN of its database "postgres" for a
// superuser. It is stopped and removed at the end of the test.
func Postgres(t testing.TB) string {
	t.Helper()
	requireInstalled(t, filepath.Join(postgresBin, "postgres"))
	dir := tempDir(t, "postgres")
	cred := serverUser(t, dir, "postgres")
	postgresRun(t, dir, cred, "initdb", "-D", dir+"/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	cmd := postgresCommand(context.Background(), dir, cred, "postgres", "-D", dir+"/data", "-k", dir, "-h", "")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	srv, err := startTied(cmd)
	if err != nil {
		t.Fatalf("rig: start PostgreSQL: %v", err)
	}
	t.Cleanup(func() { srv.stop(syscall.SIGINT, time.Minute) })
	waitFor(t, "PostgreSQL", time.Minute, func() error {
		return postgresCommand(t.Context(), dir, cred, "pg_isready", "-q", "-h", dir).Run()
	})
	return fmt.Sprintf("host=%s user=postgres dbname=postgres sslmode=disable", dir)
}

// serverUser gives dir to the user that a database runs as: that of its package for root,
// who may not run it, and the test's own user otherwise (nil).
func serverUser(t testing.TB, dir, name string) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatalf("rig: %v", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func postgresCommand(ctx context.Context, dir string, cred *syscall.Credential, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(postgresBin, name), args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + searchPath, "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	return cmd
}

func postgresRun(t testing.TB, dir string, cred *syscall.Credential, name string, args ...string) {
	t.Helper()
	if out, err := postgresCommand(t.Context(), dir, cred, name, args...).CombinedOutput(); err != nil {
		t.Fatalf("rig: %s: %v\n%s", name, err, out)
	}
}
