//go:build e2e

package rig

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// MariaDB is a private database server with the defaults of its package, which listens
// on a unix socket only.
type MariaDB struct{ socket string }

// StartMariaDB starts an empty one with a database "test". It is stopped and removed at
// the end of the test.
func StartMariaDB(t testing.TB) MariaDB {
	t.Helper()
	requireInstalled(t, "/usr/sbin/mariadbd")
	dir := tempDir(t, "mariadb")
	cred := serverUser(t, dir, "mysql")
	command := func(ctx context.Context, name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
		return cmd
	}
	data := "--datadir=" + filepath.Join(dir, "data")
	if _, err := output(command(t.Context(), "mariadb-install-db", "--no-defaults", data, "--tmpdir="+dir, "--auth-root-authentication-method=normal", "--skip-name-resolve")); err != nil {
		t.Fatalf("rig: %v", err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	defer log.Close()
	db := MariaDB{filepath.Join(dir, "socket")}
	cmd := command(context.Background(), "/usr/sbin/mariadbd", "--no-defaults", data, "--tmpdir="+dir, "--socket="+db.socket, "--pid-file="+filepath.Join(dir, "pid"), "--skip-networking")
	cmd.Stdout, cmd.Stderr = log, log
	srv, err := startTied(cmd)
	if err != nil {
		t.Fatalf("rig: start MariaDB: %v", err)
	}
	t.Cleanup(func() { srv.stop(syscall.SIGTERM, time.Minute) })
	waitFor(t, "MariaDB", time.Minute, func() error {
		_, err := db.SQL(t.Context(), "create database if not exists test")
		return err
	})
	return db
}

// SQL runs statements in one session and returns the rows, tab-separated, one a line,
// without a heading. It ends at the first error, and what was not committed is undone.
func (db MariaDB) SQL(ctx context.Context, statements string) (string, error) {
	cmd := exec.CommandContext(ctx, "mariadb", "--no-defaults", "-u", "root", "-S", db.socket, "-N", "-B")
	cmd.Stdin = strings.NewReader(statements)
	return output(cmd)
}
