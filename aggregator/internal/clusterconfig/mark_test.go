package clusterconfig

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAMarkIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	m := mark{Files: "f", Base: noBase}
	if err := writeMark(dir, m); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, markName))
	if want := `{"format":2,"files":"f","base":"none"}` + "\n"; err != nil || string(text) != want {
		t.Fatalf("%s %v", text, err)
	}
	if got, err := readMark(dir); err != nil || got.Files != "f" || got.Base != noBase {
		t.Error(got, err)
	}
}

func TestADamagedMarkIsReportedAndCommitsNothing(t *testing.T) {
	for _, text := range []string{"", "x", `{"format":3}`, `{"format":1}`, `{"format":2,"more":1}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, markName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := readMark(dir); err == nil || m.Base != "" || !strings.Contains(err.Error(), markName) {
			t.Error(text, m, err)
		}
	}
}

func TestAMarkThatCannotBeWrittenIsSaid(t *testing.T) {
	log := &strings.Builder{}
	k := &Keeper{opt: Options{Dir: filepath.Join(t.TempDir(), "none"), Log: slog.New(slog.NewTextHandler(log, nil))}}
	k.takeFiles(&Document{})
	if !strings.Contains(log.String(), "cannot be noted") {
		t.Error(log)
	}
}

func FuzzMark(f *testing.F) {
	f.Add([]byte(`{"format":2,"files":"f","base":"none"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if m, err := decodeMark(raw); err == nil && m.Format != markFormat {
			t.Error(m)
		}
	})
}
