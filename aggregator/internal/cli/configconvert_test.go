package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/porttest"
	"github.com/bursar-accounting/bursar/proto/programtest"
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

func TestConfigConvert_ArchivesOfAuditor_ThePluginAccepts(t *testing.T) {
	dir := t.TempDir()
	if err := programtest.Build(dir, map[string]string{"bursar-action-archive": "plugins/action/archive"}); err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(porttest.Free(t), ":")
	for i, more := range []string{
		"", "  archive_older_than_months: 3\n  cron_schedule: \"0 0 2 1 * *\"\n", "  archive_older_than_months: 0\n  cron_schedule: \"0 30 4 * * SUN\"\n", "  archive_older_than_months: 2000\n",
	} {
		server := write(t, dir, fmt.Sprintf("server-%d.yml", i), fmt.Sprintf("application: {port: %s}\narchival_config:\n  archive_path: %s\n%s", port, dir, more))
		made := filepath.Join(dir, fmt.Sprint("etc", i))
		if code, _, errs := (shell{}).bursar(t.Context(), "config", "convert", "-o", made, server); code != 0 {
			t.Fatal(errs)
		}
		path := filepath.Join(made, "aggregator.hcl")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = fmt.Appendf([]byte(strings.ReplaceAll(string(text), "/var/lib/bursar", filepath.Join(dir, "data"))), "plugin \"action\" \"archive\" {\n  path = %q\n}\n", filepath.Join(dir, "bursar-action-archive"))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := (shell{}).bursar(t.Context(), "aggregator", "-dev", "-config", path, "-check"); code != 0 {
			t.Errorf("%s: %d %s", more, code, errs)
		}
	}
}

func TestCheck_DirectoryOfAnActionThatCannotHoldFiles_IsNamed(t *testing.T) {
	dir := t.TempDir()
	if err := programtest.Build(dir, map[string]string{"bursar-action-archive": "plugins/action/archive", "bursar-action-energy": "plugins/action/energy"}); err != nil {
		t.Fatal(err)
	}
	file := write(t, dir, "file", "")
	for path, want := range map[string]struct {
		text string
		code int
	}{dir: {}, filepath.Join(dir, "missing"): {"is not there: mount it, or make it", 0}, file: {"cannot be a directory", 1}, file + "/below": {"cannot be a directory", 1}} {
		for _, typ := range []string{"archive", "energy"} {
			conf := write(t, dir, "a.hcl", fmt.Sprintf("aggregator {\n  name = \"a\"\n  data_dir = %q\n  api { listen = [%q] }\n}\naccess { plain_role = \"none\" }\nplugin \"action\" %q {\n  path = %q\n}\naction %q \"x\" {\n  config {\n    directory = %q\n  }\n}\n",
				filepath.Join(dir, "data"), porttest.Free(t), typ, filepath.Join(dir, "bursar-action-"+typ), typ, path))
			code, _, errs := shell{}.bursar(t.Context(), "aggregator", "-dev", "-config", conf, "-check")
			if code != want.code || !strings.Contains(errs, want.text) || strings.Contains(errs, "arning") != (want.text != "" && want.code == 0) {
				t.Errorf("%s %s: exit code %d, %s", typ, path, code, errs)
			}
		}
	}
}

func TestConfigConvert_ForeignFiles_AreNamedAndTheRestIsWritten(t *testing.T) {
	dir := t.TempDir()
	good := write(t, dir, "collector.yml", "record_prefix: hpc\nsacct_frequency: 60\n")
	foreign, typo, missing := write(t, dir, "a.yml", "colour: blue\n"), write(t, dir, "server.yml", "application:\n  prot: 8000\n"), filepath.Join(dir, "missing.yml")
	code, out, errs := shell{}.bursar(t.Context(), "config", "convert", "-o", filepath.Join(dir, "new"), missing, foreign, good, typo)
	if code != 2 || !strings.Contains(out, "agent.hcl\n") || !strings.Contains(out, "aggregator.hcl\n") || !strings.Contains(errs, "3 problems; the rest is converted") {
		t.Error(code, out, errs)
	}
	for _, want := range []string{missing + ": ", foreign + ": unknown configuration", typo + `: line 2: unknown setting "application.prot"`} {
		if !strings.Contains(errs, want) {
			t.Errorf("%s is missing: %s", want, errs)
		}
	}
	for _, files := range [][]string{{foreign}, {foreign, missing}} {
		code, out, errs := shell{}.bursar(t.Context(), append([]string{"config", "convert", "-o", filepath.Join(dir, "none")}, files...)...)
		if code != 1 || out != "" || !strings.Contains(errs, foreign+": unknown configuration") {
			t.Error(code, out, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder is made for nothing")
	}
}
