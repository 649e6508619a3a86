package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigConvert_FilesOfOneDaemon_GoToStdout(t *testing.T) {
	path := write(t, t.TempDir(), "collector.yml", "record_prefix: hpc\nsacct_frequency: 60\nearliest_datetime: \"2026-01-01T00:00:00Z\"\n")
	code, out, errs := shell{}.bursar(t.Context(), "config", "convert", path)
	if code != 0 || !strings.Contains(out, `source "slurm" "hpc" {`) || !strings.Contains(errs, "requeued jobs") {
		t.Error(code, out, errs)
	}
}

func TestConfigConvert_FilesOfBothDaemons_GoToNewFiles(t *testing.T) {
	dir := t.TempDir()
	files := []string{
		write(t, dir, "collector.yml", "record_prefix: hpc\nsacct_frequency: 60\n"),
		write(t, dir, "server.yml", "application: {port: 8000}\n"),
	}
	if code, _, errs := (shell{}).bursar(t.Context(), append([]string{"config", "convert"}, files...)...); code != 1 || !strings.Contains(errs, "with -o") {
		t.Error(code, errs)
	}
	for n, want := range []int{0, 1} { // the second time the files exist
		code, out, errs := shell{}.bursar(t.Context(), append([]string{"config", "convert", "-o", filepath.Join(dir, "new", "etc")}, files...)...)
		if code != want || n == 1 && strings.Count(errs, "exists") != 2 {
			t.Error(n, code, out, errs)
		}
	}
	if code, out, errs := (shell{}).bursar(t.Context(), "config", "validate", filepath.Join(dir, "new", "etc", "aggregator.hcl")); code != 0 {
		t.Error(code, out, errs)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "new", "etc", "agent.hcl")); err != nil || !strings.Contains(string(text), `"hpc"`) {
		t.Error(err, string(text))
	}
}
