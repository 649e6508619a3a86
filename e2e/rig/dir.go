//go:build e2e

package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// dirPrefix starts the name of every directory that a rig makes; the process id of
// the test follows, so that a later test can tell which are abandoned.
const dirPrefix = "bursar-rig-"

// tempDir makes a directory that every user may enter and that is removed at the
// end of the test. Directories of tests that were killed are removed first.
func tempDir(t testing.TB, what string) string {
	t.Helper()
	removeLeftDirs(os.TempDir())
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-%s-", dirPrefix, os.Getpid(), what))
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatalf("rig: %v", err)
	}
	return dir
}

// removeLeftDirs removes the directories below parent whose test process is gone.
func removeLeftDirs(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, dirPrefix+"*"))
	for _, dir := range dirs {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix), "-")
		pid, err := strconv.Atoi(owner)
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			os.RemoveAll(dir)
		}
	}
}

// Cache is the directory where e2e/setup.sh put what is no package of the machine.
func Cache() string {
	if dir := os.Getenv("BURSAR_E2E_CACHE"); dir != "" {
		return dir
	}
	base, err := os.UserCacheDir()
	if err != nil { // neither XDG_CACHE_HOME nor HOME is set
		base = os.TempDir()
	}
	return filepath.Join(base, "bursar-e2e")
}

// Python is the interpreter of the environment that has pyauditor and tzlocal.
func Python(t testing.TB) string {
	t.Helper()
	return requireInstalled(t, filepath.Join(Cache(), "python/bin/python"))
}

// Tardis is the interpreter of the environment that has TARDIS, as PyPI has it.
func Tardis(t testing.TB) string {
	t.Helper()
	return requireInstalled(t, filepath.Join(Cache(), "tardis/bin/python"))
}

// AuditorPlugin is a program of the environment that has AUDITOR's plugins, as PyPI has them.
func AuditorPlugin(t testing.TB, name string) string {
	t.Helper()
	return requireInstalled(t, filepath.Join(Cache(), "auditor-plugins/bin", name))
}

// Lake is the interpreter of the environment that has pyarrow, duckdb and openpyxl.
func Lake(t testing.TB) string {
	t.Helper()
	return requireInstalled(t, filepath.Join(Cache(), "lake/bin/python"))
}

// chDB is the interpreter of the environment that has the engine of a current ClickHouse.
func chDB(t testing.TB) string {
	t.Helper()
	return requireInstalled(t, filepath.Join(Cache(), "chdb/bin/python"))
}

// GrafanaFaults reads dashboards with types made from Grafana's schema, and returns a line for each
// unknown field, type or value; "" without any.
func GrafanaFaults(t testing.TB, files ...string) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	cmd := exec.CommandContext(t.Context(), requireInstalled(t, filepath.Join(Cache(), "grafana/bin/python")), append([]string{filepath.Join(filepath.Dir(file), "grafana_schema.py")}, files...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("rig: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// requireInstalled fails the test when path is not there.
func requireInstalled(t testing.TB, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("rig: %s is missing; run e2e/setup.sh as root: %v", path, err)
	}
	return path
}
