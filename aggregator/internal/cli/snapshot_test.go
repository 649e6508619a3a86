package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// snapshotFile makes a snapshot of a small store.
func snapshotFile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(store.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Apply(1, 1, store.Encode(&store.SetClusterCommand{ID: "CLUSTER"})); err != nil {
		t.Fatal(err)
	}
	shop := &archive.Archiver{Store: s, Scratch: filepath.Join(dir, "scratch"), Node: "agg1", Version: "v1", Now: time.Now}
	if err := shop.Sweep(); err != nil {
		t.Fatal(err)
	}
	image, err := shop.Image()
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	var out bytes.Buffer
	if err := image.Write(&out); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bursar.snapshot")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASnapshotIsInspectedAndVerified(t *testing.T) {
	path := snapshotFile(t)
	code, out, _ := (shell{}).bursar(t.Context(), "snapshot", "inspect", path)
	if code != 0 || !strings.Contains(out, "CLUSTER") || !strings.Contains(out, "state hash") {
		t.Errorf("inspect: %d\n%s", code, out)
	}
	code, out, _ = (shell{}).bursar(t.Context(), "snapshot", "inspect", "-format", "json", path)
	var meta archive.Meta
	if err := json.Unmarshal([]byte(out), &meta); err != nil || code != 0 || meta.Node != "agg1" {
		t.Errorf("inspect as json: %d %v\n%s", code, err, out)
	}
	scratch := t.TempDir()
	code, _, talk := (shell{}).bursar(t.Context(), "snapshot", "verify", "-scratch", scratch, path)
	if code != 0 || !strings.Contains(talk, "is sound: 0 records at index 1") {
		t.Errorf("verify: %d\n%s", code, talk)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestADamagedSnapshotIsRefusedWithWhere(t *testing.T) {
	path := snapshotFile(t)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw[:len(raw)-10], 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, talk := (shell{}).bursar(t.Context(), "snapshot", "verify", path)
	if code != 1 || !strings.Contains(talk, "damaged archive: near byte") || !strings.Contains(talk, path) {
		t.Errorf("verify: %d\n%s", code, talk)
	}
}
