package setup_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/programtest"
	"github.com/bursar-accounting/bursar/proto/setup"
)

// systemctl puts a program of that name first on the path, which notes its arguments.
func systemctl(t *testing.T, then string) (called func() string) {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	script := "#!/bin/sh\necho \"$@\" >> " + calls + "\n" + then + "\n"
	if err := programtest.WriteProgram(filepath.Join(dir, "systemctl"), script); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		text, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

func TestStart_Unit_IsEnabledAndRestarted(t *testing.T) {
	called := systemctl(t, "exit 0")
	if err := setup.Start(t.Context(), "bursar"); err != nil || called() != "enable bursar\nrestart bursar\n" {
		t.Error(err, called())
	}
}

func TestStart_UnitThatFails_SaysWhyAndWhereToLook(t *testing.T) {
	called := systemctl(t, `[ "$1" = enable ] || { echo Job for bursar.service failed; exit 1; }`)
	err := setup.Start(t.Context(), "bursar")
	if err == nil || !strings.Contains(err.Error(), "Job for bursar.service failed") || !strings.Contains(err.Error(), "journalctl -u bursar") {
		t.Error(err)
	}
	if called() != "enable bursar\nrestart bursar\n" {
		t.Error(called())
	}
}

func TestReplaceable_FileThatWasEdited_Stays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.hcl")
	packaged, text := []byte("packaged"), []byte("ours")
	if err := setup.Replaceable(path, packaged, text); err != nil {
		t.Error("no file: ", err)
	}
	for content, want := range map[string]error{"packaged": nil, "ours": nil, "edited": setup.ErrEdited, "": setup.ErrEdited} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := setup.Replaceable(path, packaged, text); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", content, err, want)
		}
	}
}

func TestFiles_OfADaemon_AreInAFolderOfItsOwnAndPrivate(t *testing.T) {
	files := setup.Files(filepath.Join(t.TempDir(), "bursar", "agent.hcl"), "bursar-agent")
	if !strings.HasSuffix(files.Key, "/bursar/tls/bursar-agent/bursar-agent.key") {
		t.Error(files)
	}
	var owner setup.Owner
	if err := owner.Folder(files); err != nil {
		t.Fatal(err)
	}
	key, err := owner.Key(files.Key)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := owner.Key(files.Key); err != nil || !again.Equal(key) {
		t.Error("another key was made: ", err)
	}
	if err := owner.Write(files.Cert, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{files.Key: 0o600, files.Cert: 0o644, filepath.Dir(files.Key): 0o750 | os.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %s", path, info.Mode(), err, want)
		}
	}
}

func TestDaemon_UserThatThereIsNot_NamesTheOption(t *testing.T) {
	_, err := setup.Daemon("no-such-user-of-bursar")
	if os.Geteuid() != 0 {
		if err != nil {
			t.Error("files cannot be given away: ", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), "-user") {
		t.Error(err)
	}
}

func TestQuote_TextWithTemplates_StaysText(t *testing.T) {
	if got := setup.Quote(`a "b" ${c} %{d}`); got != `"a \"b\" $${c} %%{d}"` {
		t.Error(got)
	}
}
