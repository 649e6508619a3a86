package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// offering is a shell at a server that gives these bytes as its snapshot.
func offering(t *testing.T, raw []byte) shell {
	t.Helper()
	return at(apitest.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/zstd")
		_, _ = w.Write(raw)
	})))
}

// folder returns the names of what is in it.
func folder(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestASnapshotIsSavedWholeAndReplacesTheOneBefore(t *testing.T) {
	raw, err := os.ReadFile(snapshotFile(t))
	if err != nil {
		t.Fatal(err)
	}
	s, dir := offering(t, raw), t.TempDir()
	path := write(t, dir, "saved", "the one before")
	if code, _, errs := s.bursar(t.Context(), "snapshot", "save", path); code != 0 || !strings.Contains(errs, "0 records at index 1") {
		t.Error(code, errs)
	}
	if got, err := os.ReadFile(path); err != nil || !slices.Equal(got, raw) {
		t.Errorf("%d bytes were saved of %d, %v", len(got), len(raw), err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error("others can read it:", info.Mode(), err)
	}
	if names := folder(t, dir); len(names) != 1 {
		t.Error("left behind:", names)
	}
}

func TestASnapshotThatArrivesDamagedLeavesTheOneBefore(t *testing.T) {
	raw, err := os.ReadFile(snapshotFile(t))
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(raw)
	flipped[len(raw)/2] ^= 1
	for name, sent := range map[string][]byte{"cut": raw[:len(raw)-20], "flipped": flipped, "nothing": nil, "a page": []byte("<html>")} {
		dir := t.TempDir()
		path := write(t, dir, "saved", "the one before")
		code, _, errs := offering(t, sent).bursar(t.Context(), "snapshot", "save", path)
		if code != 1 || errs == "" {
			t.Errorf("%s: %d %s", name, code, errs)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "the one before" || len(folder(t, dir)) != 1 {
			t.Errorf("%s: the file is %.40q, %v, beside %q", name, got, err, folder(t, dir))
		}
	}
	if code, _, errs := offering(t, raw).bursar(t.Context(), "snapshot", "save", filepath.Join(t.TempDir(), "none", "saved")); code != 1 || !strings.Contains(errs, "none does not exist") {
		t.Error(code, errs)
	}
}

func TestASnapshotIsRestoredOnlyWithAYes(t *testing.T) {
	path := snapshotFile(t)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stdin, options, want string
		code                 int
	}{
		{"no\n", "", "", 1},
		{"", "", "", 1},
		{"yes\n", "", "POST /v1/snapshot:restore", 0},
		{"", "-yes", "POST /v1/snapshot:restore", 0},
		{"", "-yes -foreign", "POST /v1/snapshot:restore?foreign=true", 0},
	} {
		s, a := answered(t, http.StatusOK, v1.Restored{Incarnation: "SECOND"})
		s.stdin = c.stdin
		code, _, errs := s.bursar(t.Context(), append([]string{"snapshot", "restore", path}, strings.Fields(c.options)...)...)
		var want []string
		if c.want != "" {
			want = []string{strings.TrimSpace(fmt.Sprintf("%s %s", c.want, raw))}
		}
		if code != c.code || !slices.Equal(a.Asked(), want) || (code == 0) != strings.Contains(errs, "incarnation SECOND") {
			t.Errorf("%q %s: %d %s, asked %d times", c.stdin, c.options, code, errs, len(a.Asked()))
		}
	}
}

func TestRestore_AgentsThatWereRemovedSince_AreNamed(t *testing.T) {
	for _, c := range []struct {
		answer v1.Restored
		want   string
	}{
		{v1.Restored{AgentsRemoved: []string{"head1", "head2"}}, "agents that were removed since the snapshot stay removed: head1, head2\n"},
		{v1.Restored{AgentsUnverified: []string{"head1"}}, "not known whether they were removed since: head1\nremove each that was: bursar agents remove NAME\n"},
	} {
		s, _ := answered(t, http.StatusOK, c.answer)
		if code, _, errs := s.bursar(t.Context(), "snapshot", "restore", "-yes", snapshotFile(t)); code != 0 || !strings.Contains(errs, c.want) {
			t.Error(code, errs)
		}
	}
}

func TestARestoreThatIsRefusedSaysWhy(t *testing.T) {
	path := snapshotFile(t)
	s, _ := answered(t, http.StatusConflict, client.Problem{Status: http.StatusConflict, Detail: "it is the snapshot of another cluster"})
	if code, _, errs := s.bursar(t.Context(), "snapshot", "restore", "-yes", path); code != 1 || !strings.Contains(errs, "another cluster") {
		t.Error(code, errs)
	}
	s, a := answered(t, http.StatusOK, v1.Restored{})
	bad := write(t, t.TempDir(), "bad", "this is no snapshot")
	if code, _, errs := s.bursar(t.Context(), "snapshot", "restore", "-yes", bad); code != 1 || !strings.Contains(errs, bad) || len(a.Asked()) > 0 {
		t.Error(code, errs, "asked", len(a.Asked()))
	}
}
