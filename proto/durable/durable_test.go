package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/proto/durable"
)

func TestAFileIsReplacedWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path+".new", []byte("half of what a crash left over"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"first, which is longer", "second", ""} {
		if err := durable.Replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%q, %v; want %q", got, err, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode is %s, %v", info.Mode(), err)
	}
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 {
		t.Errorf("there are %v, %v", list, err)
	}
}

func TestAFileThatCannotBeReplacedStays(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	if err := os.Mkdir(path, 0o700); err != nil { // a folder is no file
		t.Fatal(err)
	}
	if err := durable.Replace(path, []byte("x")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if err := durable.Replace(filepath.Join(dir, "nowhere", "state"), nil); err == nil {
		t.Error("a file was written into a folder that is not there")
	}
	if err := durable.SyncDir(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a folder that is not there is on the disk")
	}
}
