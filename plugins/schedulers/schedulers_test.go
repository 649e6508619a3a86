package schedulers_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/schedulers"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

// program puts a script on the path, which is nothing else.
func program(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := programtest.WriteProgram(filepath.Join(dir, name), "#!/bin/sh\n"+script+"\n"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func slurms(t *testing.T) []schedulers.Scheduler {
	t.Helper()
	return slices.DeleteFunc(schedulers.Look(t.Context()), func(s schedulers.Scheduler) bool { return s.Type != "slurm" })
}

func TestLook_SlurmElsewhere_NamesItsClusterAndItsSacct(t *testing.T) {
	dir := t.TempDir()
	program(t, dir, "sacct", "exit 0")
	program(t, dir, "scontrol", "echo 'Configuration data as of now'; echo 'ClusterName             = nemo'; echo 'ControlAddr = x'")
	list := slurms(t)
	if len(list) != 1 || list[0].Label != "nemo" || list[0].Config != `sacct = "`+filepath.Join(dir, "sacct")+`"` {
		t.Errorf("%+v", list)
	}
}

func TestLook_ClusterWithoutAUsableName_IsCalledSlurm(t *testing.T) {
	dir := t.TempDir()
	program(t, dir, "sacct", "exit 0")
	program(t, dir, "scontrol", "echo 'ClusterName = a b ${c}'")
	if list := slurms(t); len(list) != 1 || list[0].Label != "slurm" {
		t.Errorf("%+v", list)
	}
}

func TestLook_SacctThatFails_IsNoScheduler(t *testing.T) {
	program(t, t.TempDir(), "sacct", "echo no accounting storage >&2; exit 1")
	if list := slurms(t); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

func TestLook_NomadElsewhere_IsFoundByItsLeader(t *testing.T) {
	answer := `"127.0.0.1:4647"`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/status/leader" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	t.Setenv("NOMAD_ADDR", s.URL)
	t.Setenv("PATH", t.TempDir())
	nomads := func() []schedulers.Scheduler {
		return slices.DeleteFunc(schedulers.Look(t.Context()), func(s schedulers.Scheduler) bool { return s.Type != "nomad" })
	}
	if list := nomads(); len(list) != 1 || list[0].Config != `address = "`+s.URL+`"` {
		t.Errorf("%+v", list)
	}
	for _, answer = range []string{`""`, "<html>another program</html>", ""} {
		if list := nomads(); len(list) != 0 {
			t.Errorf("%q: %+v", answer, list)
		}
	}
}

func TestInstalled_Plugin_IsFoundInAnyFolder(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	program(t, b, "bursar-source-slurm", "exit 0")
	if !schedulers.Installed([]string{a, b}, "source-slurm") || schedulers.Installed([]string{a}, "source-slurm") {
		t.Error("a plugin is not found, or found where it is not")
	}
}
