//go:build e2e

package rig

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/porttest"
)

// auditorVersion is that of e2e/setup.sh.
const auditorVersion = "0.11.2"

// AuditorServer starts AUDITOR itself, the program of the crate auditor, over a database of
// [Postgres] that has its table, whose socket is in folder, and returns its address. It is
// stopped at the end of the test.
func AuditorServer(t testing.TB, folder string) string {
	t.Helper()
	program := requireInstalled(t, filepath.Join(Cache(), "auditor-"+auditorVersion, "bin/auditor"))
	dir := tempDir(t, "auditor")
	_, port, err := net.SplitHostPort(porttest.Free(t))
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	config := filepath.Join(dir, "auditor.yaml")
	text := fmt.Sprintf("application:\n  addr: [127.0.0.1]\n  port: %s\ndatabase:\n  host: %s\n  port: 5432\n  username: postgres\n  password: none\n  database_name: postgres\n  require_ssl: false\nlog_level: warn\n", port, folder)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatalf("rig: %v", err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	defer log.Close()
	cmd := exec.Command(program, config)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	server, err := startTied(cmd)
	if err != nil {
		t.Fatalf("rig: start AUDITOR: %v", err)
	}
	t.Cleanup(func() {
		server.stop(syscall.SIGTERM, time.Minute)
		if said, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the end of AUDITOR's log:\n%s", said[max(0, len(said)-3000):])
		}
	})
	url := "http://127.0.0.1:" + port
	waitFor(t, "AUDITOR", time.Minute, func() error {
		answer, err := http.Get(url + "/health_check") //nolint:gosec,noctx // of this machine
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("GET /health_check: %s", answer.Status)
		}
		return nil
	})
	return url
}
