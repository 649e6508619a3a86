package preflight_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/hcl/preflight"
	"github.com/bursar-accounting/bursar/proto/local"
)

func TestFolder_BelowAFile_IsAnErrorAtAnyDepth(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for below := ""; len(below) < 10; below += "/d" {
		if diags := preflight.Folder(file+below, hcl.Range{}); !diags.HasErrors() {
			t.Errorf("%s: %v", file+below, diags)
		}
		if diags := preflight.Folder(dir+below, hcl.Range{}); len(diags) > 0 {
			t.Errorf("%s: %v", dir+below, diags)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("something was made: %v, %v", list, err)
	}
}

func TestListen_TakenAddress_IsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if diags := preflight.Listen(l.Addr().String(), hcl.Range{}); !diags.HasErrors() {
		t.Error(diags)
	}
	if diags := preflight.Listen("127.0.0.1:0", hcl.Range{}); len(diags) > 0 {
		t.Error(diags)
	}
	if diags := preflight.Listen("192.0.2.1:80", hcl.Range{}); diags.HasErrors() || len(diags) == 0 {
		t.Error("an address of another machine is not a warning:", diags)
	}
}

func TestIsRunning_Socket_WhileItIsListenedAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	if preflight.IsRunning(t.Context(), path) {
		t.Error("runs without a socket")
	}
	l, err := local.Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if !preflight.IsRunning(t.Context(), path) {
		t.Error("does not run")
	}
	l.Close()
	if preflight.IsRunning(t.Context(), path) {
		t.Error("runs after its end")
	}
}

func TestSocket_TakenOrBelowAFile_IsAnError(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.sock")
	if diags := preflight.Socket(path, hcl.Range{}); len(diags) > 0 {
		t.Error(diags)
	}
	l, err := local.Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if diags := preflight.Socket(path, hcl.Range{}); !diags.HasErrors() {
		t.Error("a socket that is listened at:", diags)
	}
	if diags := preflight.Socket(path+"/b.sock", hcl.Range{}); !diags.HasErrors() {
		t.Error("a socket below a file:", diags)
	}
}
